#include "cuda/host/gpu.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/environment.h"
#include "core/error.h"
#include "cuda/host/compiler.h"

namespace akunu::cuda {

Limits limits_of(const Driver& d, CUdevice device) {
    const auto attribute = [&](int which) {
        int value = 0;
        d.check(d.cuDeviceGetAttribute(&value, which, device), "asking the GPU for attribute " + std::to_string(which));
        return value;
    };
    Limits l;
    char name[256] = {};
    d.check(d.cuDeviceGetName(name, sizeof name, device), "asking the GPU's name");
    std::size_t memory = 0;
    d.check(d.cuDeviceTotalMem(&memory, device), "asking the GPU's memory");
    d.check(d.cuDriverGetVersion(&l.driver_version), "asking the driver's version");
    l.name = name;
    l.compute_major = attribute(kComputeMajor);
    l.arch = "sm_" + std::to_string(l.compute_major) + std::to_string(attribute(kComputeMinor));
    l.memory = memory;
    l.shared_bytes = static_cast<std::uint64_t>(attribute(kSharedMemoryPerBlock));
    l.shared_bytes = std::min(l.shared_bytes, static_cast<std::uint64_t>(environment_number(
                                                  "AKUNU_CUDA_SHARED_BYTES", static_cast<double>(l.shared_bytes))));
    l.cache_bytes = static_cast<std::uint64_t>(attribute(kCacheBytes));
    // What CUDA keeps of a block's memory lies in front of the block's own since Hopper, behind it before.
    l.shared_base = l.compute_major >= 9 ? attribute(kSharedMemoryReserved) : 0;
    if (const char* arch = std::getenv("AKUNU_CUDA_ARCH"); arch && *arch) {
        constexpr std::string_view kPrefix = "compute_";
        const std::string_view given = arch;
        const char* const end = given.data() + given.size();
        int number = 0;
        if (!given.starts_with(kPrefix) || std::from_chars(arch + kPrefix.size(), end, number).ptr != end ||
            number < 10) {
            throw InvalidArgumentError("AKUNU_CUDA_ARCH=" + std::string(given) +
                                       " is no architecture of PTX; compute_80 is one");
        }
        l.arch = given;
        l.compute_major = number / 10;
    }
    l.cooperative = attribute(kCooperativeLaunch) != 0;
    l.checks_races = environment_number("AKUNU_CUDA_RACECHECK", 0) != 0;
    l.has_display = attribute(kRunTimeLimit) != 0;
    l.multiprocessors = static_cast<unsigned>(attribute(kMultiprocessors));
    // By the data sheet; some 94 % of it can be had. Two transfers a clock; both clocks are in kHz.
    const double bytes = 0.94 * 2 * attribute(kMemoryClock) * (attribute(kMemoryBits) / 8.0);
    if (bytes > 0) l.cycles_of_kb = static_cast<unsigned>(1024.0 * l.multiprocessors * attribute(kClock) / bytes);
    return l;
}

Context::Context(const Driver& driver, CUdevice device) : driver_(driver), device_(device) {
    driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device), "opening the GPU");
}

Context::~Context() {
    if (is_here()) driver_.cuDevicePrimaryCtxRelease(device_);
}

void Context::use() const {
    if (!is_here()) {
        throw Error(
            "this model was loaded before the process was forked, and the GPU does not work in this process; start the "
            "process by the method 'spawn', and load it there");
    }
    driver_.check(driver_.cuCtxSetCurrent(context_), "taking the GPU's context");
}

void Context::reach(const Context& other) const {
    use();
    int can = 0;
    driver_.check(driver_.cuDeviceCanAccessPeer(&can, device_, other.device_), "asking which GPUs reach one another");
    const CUresult result = can ? driver_.cuCtxEnablePeerAccess(other.context_, 0) : kSuccess;
    if (can && (result == kSuccess || result == kPeersAlready)) return;
    const std::string mine = std::to_string(device_);
    throw DeviceError("GPU " + mine + " does not reach the memory of GPU " + std::to_string(other.device_) +
                      (can ? ": " + driver_.message(result) : ", by NVLink or by PCIe") +
                      ", which a model on both needs; device 'cuda:" + mine + "' runs it on one");
}

Modules::~Modules() {
    for (const Loaded& l : loaded_) driver_.cuModuleUnload(l.module);
}

CUfunction Modules::interpreter(const Needs& needs, const Needs& all, const Poll& poll) {
    const auto found = std::ranges::find_if(loaded_, [&](const Loaded& l) { return l.needs.covers(needs); });
    if (found != loaded_.end()) return found->function;
    // One GPU runs a sum of several where somebody gives it that alone.
    const u32 cards = all.ops.contains(kOpAllReduce) ? std::max(cards_, 2u) : cards_;
    const std::string memory = "#define AKUNU_SHARED_BASE " + std::to_string(limits_.shared_base) +
                               "\n#define AKUNU_SHARED_BYTES " + std::to_string(limits_.shared_bytes) +
                               "\n#define AKUNU_CARDS " + std::to_string(cards) + "\n#define AKUNU_RACECHECK " +
                               std::to_string(int{limits_.checks_races}) + "\n";
    const std::string source = memory + all.definitions() + std::string(kernel_source());
    // Warpgroups' products are of this one GPU's own code.
    const std::string target = limits_.arch == "sm_90" ? "sm_90a" : limits_.arch;
    const std::vector<char> cubin = compile_kernels(source, target, limits_.driver_version, limits_.checks_races, poll);
    if (cubin.empty()) return nullptr;
    Loaded kept{all, nullptr, nullptr};
    driver_.check(driver_.cuModuleLoadData(&kept.module, cubin.data()), "loading the kernels");
    try {
        driver_.check(driver_.cuModuleGetFunction(&kept.function, kept.module, "akunu_replay"), "finding akunu_replay");
        driver_.check(
            driver_.cuFuncSetAttribute(kept.function, kFunctionDynamicShared, static_cast<int>(limits_.shared_bytes)),
            "giving akunu_replay its shared memory");
        int resident = 0;
        driver_.check(driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                          &resident, kept.function, static_cast<int>(kBlockThreads), limits_.shared_bytes),
                      "asking whether akunu_replay fits a multiprocessor");
        if (resident < 1) {
            throw DeviceError("the kernels do not fit a multiprocessor of " + limits_.name + ": a block of " +
                              std::to_string(kBlockThreads) + " threads and " + std::to_string(limits_.shared_bytes) +
                              " bytes of shared memory cannot be resident");
        }
    } catch (...) {
        driver_.cuModuleUnload(kept.module);
        throw;
    }
    loaded_.push_front(kept);
    return kept.function;
}

}  // namespace akunu::cuda
