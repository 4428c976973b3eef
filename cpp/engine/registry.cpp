#include "engine/registry.h"

#include <charconv>
#include <optional>

#include "core/error.h"
#include "cpu/cpu_device.h"
#include "cpu/topology.h"
#include "metal/choose/plan_device.h"
#ifdef AKUNU_CUDA
#include "cuda/host/cuda_device.h"
#include "cuda/host/cuda_group.h"
#include "cuda/host/plan_device.h"
#endif
#ifdef AKUNU_METAL
#include "metal/host/metal_device.h"
#endif

namespace akunu {

namespace {

constexpr std::string_view kPlan = "plan:";

#ifdef AKUNU_CUDA
// The GPUs of "cuda", "cuda:1" or "cuda:0,1"; nothing where an id is none of these.
std::optional<std::vector<int>> gpus_of(std::string_view id) {
    constexpr std::string_view kCuda = "cuda";
    if (id == kCuda) return std::vector{0};
    if (!id.starts_with(kCuda) || id.substr(kCuda.size(), 1) != ":") return std::nullopt;
    std::vector<int> numbers;
    const char *at = id.data() + kCuda.size() + 1, *const end = id.data() + id.size();
    for (bool more = true; more; ++at) {
        int number = -1;
        const auto [stop, error] = std::from_chars(at, end, number);
        more = stop != end && *stop == ',';
        if (error != std::errc{} || number < 0 || (stop != end && !more)) {
            throw DeviceError("device '" + std::string(id) +
                              "' names no GPUs: expected their numbers, as in 'cuda:1' or 'cuda:0,1'");
        }
        numbers.push_back(number);
        at = stop;
    }
    return numbers;
}
#endif

}  // namespace

std::vector<DeviceEntry> list_devices() {
    std::vector<DeviceEntry> found{{"cpu", "CPU", cpu::cpu_name(), std::string(cpu::select_kernels().isa),
                                    cpu::usable_cores(), cpu::total_memory(), cpu::memory_nodes()}};
#ifdef AKUNU_METAL
    if (const auto gpu = metal::find_gpu()) {
        // The emulator is a test tool: nobody is to get it without asking.
#ifdef AKUNU_METAL_EMULATED
        const auto at = found.end();
#else
        const auto at = found.begin();
#endif
        found.insert(at, {"metal", "Metal", gpu->name, gpu->isa, 1, gpu->memory});
    }
#endif
#ifdef AKUNU_CUDA
    std::string why;
    auto first = found.begin();
    for (const cuda::Gpu& gpu : cuda::find_gpus(why)) {
        const std::string id = gpu.number == 0 ? "cuda" : "cuda:" + std::to_string(gpu.number);
        const std::uint32_t rows = cuda::device_traits().prompt_rows;
        first = found.insert(first, {id, "CUDA", gpu.name, gpu.isa, 1, gpu.memory, {}, rows}) + 1;
    }
#endif
    return found;
}

std::vector<MissingDevice> missing_devices() {
    std::vector<MissingDevice> missing;
#ifdef AKUNU_CUDA
    std::string why;
    if (cuda::find_gpus(why).empty()) missing.push_back({"CUDA", why});
#endif
    return missing;
}

std::future<std::shared_ptr<void>> open_ahead() {
#ifdef AKUNU_CUDA
    return cuda::open_ahead();
#else
    return {};
#endif
}

bool is_planned(std::string_view id) { return id.starts_with(kPlan); }

std::unique_ptr<Device> open_device(const std::string& id, int threads) {
    const std::vector<DeviceEntry> devices = list_devices();
    const std::string& wanted = id == "auto" ? devices.front().id : id;
    if (wanted == "cpu") return std::make_unique<cpu::CpuDevice>(threads);
#ifdef AKUNU_CUDA
    if (const auto numbers = gpus_of(wanted)) {
        if (numbers->size() > 1) return std::make_unique<cuda::CudaGroup>(*numbers);
        return std::make_unique<cuda::CudaDevice>(numbers->front());
    }
#endif
#ifdef AKUNU_METAL
    if (wanted == "metal") return std::make_unique<metal::MetalDevice>();
#endif
    if (is_planned(wanted)) {
        const std::string_view chip = std::string_view(wanted).substr(kPlan.size());
#ifdef AKUNU_CUDA
        if (const cuda::Chip* nvidia = cuda::find_chip(chip)) return std::make_unique<cuda::PlanDevice>(*nvidia);
#endif
        return std::make_unique<metal::PlanDevice>(metal::find_chip(chip));
    }
    std::string known;
    for (const DeviceEntry& d : devices) known += (known.empty() ? "" : ", ") + d.id;
    throw DeviceError("device '" + id + "' is not available here; available: " + known);
}

std::vector<InstructionSet> instruction_sets() {
    std::vector<InstructionSet> sets;
    for (const cpu::KernelSet* set : cpu::kernel_sets()) sets.push_back({std::string(set->isa), set->supported()});
    return sets;
}

std::unique_ptr<Device> open_processor(int threads, const std::string& isa) {
    return std::make_unique<cpu::CpuDevice>(threads, cpu::kernel_set(isa, "isa"));
}

Peaks measure_peaks(int threads, double seconds) { return cpu::measure_peaks(threads, seconds); }

}  // namespace akunu
