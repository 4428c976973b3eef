#include "cuda/host/gpu.h"

#include <algorithm>

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
    // What CUDA keeps of a block's memory lies in front of the block's own since Hopper, behind it before.
    l.shared_base = l.compute_major >= 9 ? attribute(kSharedMemoryReserved) : 0;
    l.multiprocessors = static_cast<unsigned>(attribute(kMultiprocessors));
    // By the data sheet; some 94 % of it can be had. Two transfers a clock; both clocks are in kHz.
    const double bytes = 0.94 * 2 * attribute(kMemoryClock) * (attribute(kMemoryBits) / 8.0);
    if (bytes > 0) l.cycles_of_kb = static_cast<unsigned>(1024.0 * l.multiprocessors * attribute(kClock) / bytes);
    return l;
}

Context::Context(const Driver& driver, CUdevice device) : driver_(driver), device_(device) {
    driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device), "opening the GPU");
}

Context::~Context() { driver_.cuDevicePrimaryCtxRelease(device_); }

Modules::~Modules() {
    for (const Loaded& l : loaded_) driver_.cuModuleUnload(l.module);
}

CUfunction Modules::interpreter(const Needs& needs, const Needs& all, const Poll& poll) {
    const auto found = std::ranges::find_if(loaded_, [&](const Loaded& l) { return l.needs.covers(needs); });
    if (found != loaded_.end()) return found->function;
    const std::string base = "#define AKUNU_SHARED_BASE " + std::to_string(limits_.shared_base) + "\n";
    const std::string source = base + all.definitions() + std::string(kernel_source());
    // Warpgroups' products are of this one GPU's own code.
    const std::string target = limits_.arch == "sm_90" ? "sm_90a" : limits_.arch;
    const std::vector<char> cubin = compile_kernels(source, target, limits_.driver_version, poll);
    if (cubin.empty()) return nullptr;
    Loaded l{all, nullptr, nullptr};
    driver_.check(driver_.cuModuleLoadData(&l.module, cubin.data()), "loading the kernels");
    loaded_.push_front(l);
    Loaded& kept = loaded_.front();
    driver_.check(driver_.cuModuleGetFunction(&kept.function, kept.module, "akunu_replay"), "finding akunu_replay");
    driver_.check(
        driver_.cuFuncSetAttribute(kept.function, kFunctionDynamicShared, static_cast<int>(limits_.shared_bytes)),
        "giving akunu_replay its shared memory");
    return kept.function;
}

}  // namespace akunu::cuda
