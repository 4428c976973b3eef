#include "cuda/host/plan_device.h"

#include "cuda/host/program.h"
#include "cuda/host/schedule.h"

namespace akunu::cuda {

std::string PlanDevice::name() const { return "NVIDIA " + std::string(chip_.name) + ", planned"; }

std::unique_ptr<Program> PlanDevice::compile(DispatchTable table) {
    const Schedules s = compile_schedules(table, {chip_.shared_bytes, chip_.multiprocessors});
    note_merged(table, s.fused);
    return std::make_unique<Program>(std::move(table));
}

}  // namespace akunu::cuda
