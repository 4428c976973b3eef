#include "engine/registry.h"

#include "core/error.h"
#include "cpu/cpu_device.h"
#include "cpu/topology.h"

namespace akunu {

std::vector<DeviceEntry> list_devices() {
    return {{"cpu", "CPU", cpu::cpu_name(), std::string(cpu::select_kernels().isa), cpu::usable_cores(),
             cpu::total_memory()}};
}

std::unique_ptr<Device> open_device(const std::string& id, int threads) {
    const std::vector<DeviceEntry> devices = list_devices();
    const std::string& wanted = id == "auto" ? devices.front().id : id;
    if (wanted == "cpu") return std::make_unique<cpu::CpuDevice>(threads);
    std::string known;
    for (const DeviceEntry& d : devices) known += (known.empty() ? "" : ", ") + d.id;
    throw DeviceError("device '" + id + "' is not available here; available: " + known);
}

}  // namespace akunu
