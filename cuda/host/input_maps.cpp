#include "cuda/host/input_maps.h"

#include <array>

namespace akunu::cuda {

namespace {

struct alignas(128) Map {
    std::array<std::byte, 128> bytes{};
};

std::uint64_t inputs_of_row(const Command& c) {
    return c.op == kOpGateUp ? reinterpret_cast<const GateUpParams*>(c.params)->k
                             : reinterpret_cast<const MatmulParams*>(c.params)->k;
}

// False where the driver takes none.
bool encode(const Driver& driver, const Command& c, const Binding& inputs, Map& map) {
    constexpr int kFloat16 = 6, kNotInterleaved = 0, kSwizzle128 = 3, kLines128 = 2, kZeros = 0;
    const std::uint64_t k = inputs_of_row(c), row_bytes = k * 2;
    const std::uint64_t sizes[2] = {k, (inputs.end() - inputs.offset) / row_bytes};
    const std::uint32_t box[2] = {kBoxInputs, kBoxRows}, steps[2] = {1, 1};
    if (row_bytes % 16 != 0 || c.buffers[0] % 16 != 0 || sizes[1] == 0) return false;
    return driver.cuTensorMapEncodeTiled(map.bytes.data(), kFloat16, 2, reinterpret_cast<void*>(c.buffers[0]), sizes,
                                         &row_bytes, box, steps, kNotInterleaved, kSwizzle128, kLines128,
                                         kZeros) == kSuccess;
}

}  // namespace

DeviceBuffer map_inputs(const Driver& driver, Device& device, const DispatchTable& table, Schedules& schedules) {
    if (!driver.cuTensorMapEncodeTiled) return {};
    std::vector<Map> maps;
    std::vector<Command*> mapped;
    for (Command& c : schedules.plain) {
        if ((c.op != kOpMatmul && c.op != kOpGateUp) || !c.half_input) continue;
        if (Map map; encode(driver, c, table.commands[c.label].buffers[0], map)) {
            maps.push_back(map);
            mapped.push_back(&c);
        }
    }
    DeviceBuffer out(device, std::max<std::size_t>(maps.size(), 1) * sizeof(Map), MemoryKind::kDevice);
    device.upload(out.at(), std::as_bytes(std::span(maps)));
    for (std::size_t i = 0; i < mapped.size(); ++i) {
        mapped[i]->input_map = reinterpret_cast<u64>(out.at(i * sizeof(Map)).as());
    }
    // The other list has the same matmuls.
    for (Command& c : schedules.fused) c.input_map = schedules.plain[c.label].input_map;
    return out;
}

}  // namespace akunu::cuda
