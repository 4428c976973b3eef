#include "cuda/host/upload.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>
#include <thread>
#include <vector>

#include "cuda/host/pack.h"

namespace akunu::cuda {

namespace {

// Calls f(begin, end) for parts of [0, n), each of `least` at least, on a few threads.
template <typename F>
void in_parallel(std::uint64_t n, std::uint64_t least, F&& f) {
    constexpr std::uint64_t kThreadsMost = 8;
    const std::uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
    const std::uint64_t parts = std::clamp<std::uint64_t>(n / least, 1, std::min(kThreadsMost, cores));
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 1; i < parts; ++i) threads.emplace_back([&, i] { f(n * i / parts, n * (i + 1) / parts); });
    f(0, n / parts);
}

// The exponent of exponent_of, by parts.
int exponent_of_all(std::span<const std::byte> bfloats) {
    std::atomic<int> least = std::numeric_limits<int>::max();
    in_parallel(bfloats.size() / 2, 1 << 20, [&](std::uint64_t begin, std::uint64_t end) {
        const int mine = exponent_of(bfloats.subspan(begin * 2, (end - begin) * 2));
        for (int seen = least; mine < seen && !least.compare_exchange_weak(seen, mine);) {
        }
    });
    return least;
}

constexpr std::uint64_t kAtOnce = std::uint64_t{16} << 20;  // bytes of weights that are packed and uploaded

// Packs some tiles at a time.
void upload_tiles(Memory& device, const Binding& to, const HostTensor& t) {
    int exponent = 0;
    if (has_factor(t.dtype)) {
        exponent = exponent_of_all(t.bytes);
        const float factor = std::ldexp(1.0f, -exponent);
        device.upload({to.buffer, to.offset + plane_offset(t.dtype, t.rows, t.cols)},
                      std::as_bytes(std::span(&factor, 1)));
    }
    const std::uint64_t tiles = (t.rows + kTileRows - 1) / kTileRows, row_bytes = t.bytes.size() / t.rows;
    const std::uint64_t bytes = bytes_of_tile(t.dtype, t.cols);
    const std::uint64_t most = std::max<std::uint64_t>(kAtOnce / bytes, 1);
    const auto packed = device.staging(std::max(kAtOnce, bytes));
    for (std::uint64_t first = 0; first < tiles; first += most) {
        const std::uint64_t n = std::min(most, tiles - first);
        in_parallel(n, 1, [&](std::uint64_t begin, std::uint64_t end) {
            const std::uint64_t row = (first + begin) * kTileRows,
                                rows = std::min(t.rows, (first + end) * kTileRows) - row;
            pack_tiles(t.dtype, t.cols, t.bytes.data() + row * row_bytes, rows, packed.data() + begin * bytes,
                       exponent);
        });
        device.upload({to.buffer, to.offset + first * bytes}, packed.first(n * bytes));
    }
}

// Packs some blocks at a time.
void upload_planes(Memory& device, const Binding& to, const HostTensor& t) {
    const BlockSplit split = split_of(t.dtype);
    if (split.rest() == 0) return device.upload(to, t.bytes);
    const std::uint64_t blocks = t.bytes.size() / split.block_bytes, rest_at = plane_offset(t.dtype, t.rows, t.cols);
    const std::uint64_t most = kAtOnce / split.block_bytes;
    const auto codes = device.staging(kAtOnce), rest = codes.subspan(most * split.bytes);
    for (std::uint64_t first = 0; first < blocks; first += most) {
        const std::uint64_t n = std::min(most, blocks - first);
        in_parallel(n, 4096, [&](std::uint64_t begin, std::uint64_t end) {
            pack_blocks(t.dtype, t.bytes.data() + (first + begin) * split.block_bytes, end - begin,
                        codes.data() + begin * split.bytes, rest.data() + begin * split.rest());
        });
        device.upload({to.buffer, to.offset + first * split.bytes}, codes.first(n * split.bytes));
        device.upload({to.buffer, to.offset + rest_at + first * split.rest()}, rest.first(n * split.rest()));
    }
}

}  // namespace

void upload_packed(Memory& device, const Binding& to, const HostTensor& t) {
    packed_in_tiles(t.dtype, t.cols) ? upload_tiles(device, to, t) : upload_planes(device, to, t);
}

}  // namespace akunu::cuda
