#include "cuda/host/box_maps.h"

#include <array>
#include <utility>

#include "cuda/kernels/tile_layout.h"

namespace akunu::cuda {

namespace {

struct alignas(128) Map {
    std::array<std::byte, 128> bytes{};
};

// As in cuda.h.
constexpr int kUint64 = 4, kFloat16 = 6, kNotInterleaved = 0, kNotSwizzled = 0, kSwizzle128 = 3, kLines128 = 2,
              kZeros = 0;

struct Shape {
    std::uint64_t n, k;
};
Shape shape_of(const Command& c) {
    if (c.op == kOpGateUp) {
        const auto& p = *reinterpret_cast<const GateUpParams*>(c.params);
        return {p.n, p.k};
    }
    const auto& p = *reinterpret_cast<const MatmulParams*>(c.params);
    return {p.n, p.k};
}

// False where the driver takes none, as below.
bool encode_inputs(const Driver& driver, const Command& c, const Binding& inputs, Map& map) {
    const std::uint64_t k = shape_of(c).k, row_bytes = k * 2;
    const std::uint64_t sizes[2] = {k, (inputs.end() - inputs.offset) / row_bytes};
    const std::uint32_t box[2] = {kBoxInputs, kBoxRows}, steps[2] = {1, 1};
    if (row_bytes % 16 != 0 || c.buffers[0] % 16 != 0 || sizes[1] == 0) return false;
    return driver.cuTensorMapEncodeTiled(map.bytes.data(), kFloat16, 2, reinterpret_cast<void*>(c.buffers[0]), sizes,
                                         &row_bytes, box, steps, kNotInterleaved, kSwizzle128, kLines128,
                                         kZeros) == kSuccess;
}

// Eight rows' inputs of a step lie side by side, as they do in shared memory, where gate and up take turns: a box has
// those of each matrix, half of a tile, and tile, in this order.
bool encode_weights(const Driver& driver, const Command& c, Map& map) {
    const auto [n, k] = shape_of(c);
    const u32 reader = c.weights[0].reader;
    if ((reader != kReadF16 && reader != kReadBf16) || !in_tiles(reader, k)) return false;
    const bool gated = c.op == kOpGateUp;
    const u64 first = c.weights[0].codes, second = gated ? c.weights[1].codes : first + 16;
    if (second <= first) return false;
    constexpr std::uint64_t kHalf = kTileRows / 2 * kBoxInputs * sizeof(std::uint16_t);
    const std::uint32_t matrices = gated ? 2 : 1, tiles = kBoxCols / (kTileRows * matrices);
    const std::uint64_t sizes[5] = {kHalf / sizeof(std::uint64_t), matrices, 2, (n + kTileRows - 1) / kTileRows,
                                    k / kBoxInputs};
    const std::uint64_t apart[4] = {second - first, kHalf, tile_bytes(reader, k), 2 * kHalf};
    const std::uint32_t box[5] = {kHalf / sizeof(std::uint64_t), matrices, 2, tiles, 1}, steps[5] = {1, 1, 1, 1, 1};
    return driver.cuTensorMapEncodeTiled(map.bytes.data(), kUint64, 5, reinterpret_cast<void*>(first), sizes, apart,
                                         box, steps, kNotInterleaved, kNotSwizzled, kLines128, kZeros) == kSuccess;
}

}  // namespace

DeviceBuffer map_boxes(const Driver& driver, Device& device, const DispatchTable& table, Schedules& schedules) {
    if (!driver.cuTensorMapEncodeTiled) return {};
    std::vector<Map> maps;
    std::vector<u64*> named;
    const auto add = [&](const Map& map, u64& name) {
        maps.push_back(map);
        named.push_back(&name);
    };
    for (Command& c : schedules.plain) {
        if ((c.op != kOpMatmul && c.op != kOpGateUp) || !c.half_input) continue;
        Map map;
        if (encode_inputs(driver, c, table.commands[c.label].buffers[0], map)) add(map, c.input_map);
        if (encode_weights(driver, c, map)) add(map, c.weight_map);
    }
    DeviceBuffer out(device, std::max<std::size_t>(maps.size(), 1) * sizeof(Map), MemoryKind::kDevice);
    device.upload(out.at(), std::as_bytes(std::span(maps)));
    for (std::size_t i = 0; i < named.size(); ++i) *named[i] = reinterpret_cast<u64>(out.at(i * sizeof(Map)).as());
    // The other lists have the same matmuls.
    for (std::vector<Command>* const list : {&schedules.fused, &schedules.few}) {
        for (Command& c : *list) {
            c.input_map = schedules.plain[c.label].input_map;
            c.weight_map = schedules.plain[c.label].weight_map;
        }
    }
    return out;
}

}  // namespace akunu::cuda
