// Asks for the first of the weights that the next command reads, so that memory is busy while blocks wait for one another.
#pragma once

#include "block.cuh"

namespace akunu::cuda {

// By one warp: each lane has a range, of which its block's part is fetched, up to the window.
AKUNU_DEVICE void fetch_weights(const Launch& launch, const Fetch& f) {
    constexpr u32 kRanges = sizeof(Fetch::at) / sizeof(u64), kAtOnce = 512;
    const u32 lane = lane_id();
    if (lane >= kRanges) return;
    const u32 begin = u32(u64(f.units[lane]) * block_id() / grid_blocks());
    const u32 end = u32(u64(f.units[lane]) * (block_id() + 1) / grid_blocks());
    const u8* at = reinterpret_cast<const u8*>(f.at[lane]) + u64(begin) * 16;
    for (u32 left = smaller(end - begin, launch.window), n; left != 0; left -= n, at += n * 16) {
        n = smaller(left, kAtOnce);
        fetch_to_cache(at, n * 16);
    }
}

}  // namespace akunu::cuda
