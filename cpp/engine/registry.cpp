#include "engine/registry.h"

#include "core/error.h"
#include "cpu/cpu_device.h"
#include "cpu/topology.h"
#include "metal/choose/plan_device.h"
#ifdef AKUNU_CUDA
#include "cuda/host/cuda_device.h"
#include "cuda/host/plan_device.h"
#endif
#ifdef AKUNU_METAL
#include "metal/host/metal_device.h"
#endif

namespace akunu {

namespace {

constexpr std::string_view kPlan = "plan:";

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
    if (const auto gpu = cuda::find_gpu(why)) {
        found.insert(found.begin(),
                     {"cuda", "CUDA", gpu->name, gpu->isa, 1, gpu->memory, {}, cuda::device_traits().prompt_rows});
    }
#endif
    return found;
}

std::vector<MissingDevice> missing_devices() {
    std::vector<MissingDevice> missing;
#ifdef AKUNU_CUDA
    std::string why;
    if (!cuda::find_gpu(why)) missing.push_back({"CUDA", why});
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
    if (wanted == "cuda") return std::make_unique<cuda::CudaDevice>();
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
