#include "cuda/host/plan_device.h"

#include <sys/mman.h>

#include "core/error.h"
#include "cuda/host/program.h"
#include "cuda/host/schedule.h"

namespace akunu::cuda {

std::string PlanDevice::name() const { return "NVIDIA " + std::string(chip_.name) + ", planned"; }

// No GPU is asked for its memory: what a plan is of need not fit.
std::uint64_t PlanDevice::memory() const { return std::uint64_t{1} << 40; }

Buffer PlanDevice::allocate(std::uint64_t bytes, MemoryKind) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw DeviceError("out of address space: could not map " + std::to_string(bytes) + " bytes");
    auto* at = static_cast<std::byte*>(p);
    return {p, at, at, bytes};
}

void PlanDevice::release(Buffer& buffer) {
    if (buffer.handle) munmap(buffer.handle, buffer.size);
    buffer = {};
}

std::unique_ptr<Program> PlanDevice::compile(DispatchTable table) {
    const Schedules s = compile_schedules(table, {chip_.shared_bytes, chip_.multiprocessors});
    note_merged(table, s.fused);
    return std::make_unique<Program>(std::move(table));
}

std::uint32_t PlanDevice::replay(Segments, const ReplayArgs&, Control&, const Poll&, const Meanwhile&) {
    throw UnsupportedError("device '" + name() + "' only plans; load the model on a device that is here to run it");
}

void PlanDevice::profile(Segments, const ReplayArgs&, std::span<double>) {
    throw UnsupportedError("device '" + name() + "' only plans; nothing can be measured on it");
}

}  // namespace akunu::cuda
