// Rows of inputs as byte_columns.cuh multiplies them: F16, or F32 that are to be normalised. As with one row a norm's
// factor is that of a row's results.
#pragma once

#include "byte_columns.cuh"
#include "row_inputs.cuh"

namespace akunu::cuda {

// Where a warp's inputs are: it has every so manieth step of one row, so that all warps have as many.
struct WarpSteps {
    u32 row, first, apart;
    AKUNU_DEVICE WarpSteps(u32 rows, u32 warp) {
        const u32 shift = rows <= 2 ? 1 : 2;
        row = warp & ((1u << shift) - 1);
        first = warp >> shift;
        apart = kWarps >> shift;
    }
};

// Makes bytes of a chunk's inputs, from k0 to `end`, of all rows, which have come, or come as words. Some steps at
// once, whose parts of the work follow one another without a branch, while the next ones' inputs are on their way.
template <bool kNormed>
AKUNU_DEVICE void stage_bytes(Block b, const ByteMemory& m, u32 rows, u32 k, u32 k0, u32 end) {
    constexpr u32 kAhead = kNormed ? 4 : 8, kAtOnce = 4;
    static_assert(kAtOnce % 2 == 0 && kAhead % kAtOnce == 0, "even and odd steps of a warp are those of two parts");
    const u32 lane = lane_id();
    const WarpSteps mine(rows, warp_id());
    if (any_of_warp(mine.row >= rows)) return;
    const u32 steps = (end - k0) / kStepInputs, apart = mine.apart;
    const bool two_parts = apart != kSquareParts;
    const u32 to = m.row(mine.row) + bytes_at(lane / 8, 0) + lane % 8 * 4;
    const u64 before = u64(mine.row) * k;  // of the row's inputs
    const InputSource from{b.buffer<float>(0) + before, b.buffer<float>(1), b.buffer<u16>(0) + before};
    using Inputs = RowInputs<kNormed>;
    Inputs inputs[kAhead], next[kAhead];
    const auto load = [&](Inputs(&in)[kAhead], u32 first) {
        AKUNU_UNROLL
        for (u32 j = 0; j < kAhead; ++j) {
            const u32 step = first + j * apart, i = k0 + step * kStepInputs + lane * 4;
            const bool there = step < steps && i < k;
            in[j].load_weight(from, i, there);
            in[j].load(from, i, there);
        }
    };
    float squares[2] = {};
    const auto stage = [&](const Inputs* in, u32 first) {
        float v[kAtOnce][4];
        u32 top[kAtOnce];
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 i = k0 + (first + j * apart) * kStepInputs + lane * 4;
            const float square = i < smaller(end, k) ? in[j].squares() : 0.0f;
            squares[0] += j % 2 == 0 || !two_parts ? square : 0.0f;
            squares[1] += j % 2 != 0 && two_parts ? square : 0.0f;
            in[j].values(v[j]);
            top[j] = largest_bits(v[j]);
        }
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) top[j] = largest_of_warp(top[j]);
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 step = first + j * apart;
            const InputCodes codes(v[j], top[j]);
            if (step >= steps) continue;
            shared_at<u32>(to + step * (2 * kStepInputs) + bytes_at(0, 0)) = codes.high;
            shared_at<u32>(to + step * (2 * kStepInputs) + bytes_at(0, 1)) = codes.low;
            if (lane == 0) shared_at<float>(m.factor(step, mine.row)) = codes.factor;
        }
    };
    const u64* const words = b.taken();
    if (any_of_warp(words != nullptr)) {
        const u64* const of_row = words + (kNormed ? before : before / 2);
        const u32 last = smaller(end, k) - 4, number = b.taken_number();
        AKUNU_NO_UNROLL
        for (u32 first = mine.first; first < steps; first += apart * kAtOnce) {
            const auto at = [&](u32 j) { return k0 + (first + j * apart) * kStepInputs + lane * 4; };
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) inputs[j].load_weight(from, at(j), at(j) <= last);
            // Behind the end the last ones again, which count for nothing: the weights there are 0.
            wait_for_words([&] {
                bool all = true;
                AKUNU_UNROLL
                for (u32 j = 0; j < kAtOnce; ++j) all &= inputs[j].poll(of_row, smaller(at(j), last), number);
                return all;
            });
            stage(inputs, first);
        }
    } else {
        load(inputs, mine.first);
        AKUNU_NO_UNROLL
        for (u32 first = mine.first; first < steps; first += apart * kAhead) {
            load(next, first + apart * kAhead);
            AKUNU_UNROLL
            for (u32 j = 0; j < kAhead; j += kAtOnce) stage(inputs + j, first + j * apart);
            AKUNU_UNROLL
            for (u32 j = 0; j < kAhead; ++j) inputs[j] = next[j];
        }
    }
    if constexpr (kNormed) {
        // Steps 4i + p of a row are part p, however many warps the row has.
        AKUNU_UNROLL
        for (u32 part = 0; part < 2; ++part) {
            const float sum = reduce_warp(squares[part], Add());
            const u32 at = m.squares(mine.row) + (mine.first + part * apart) * 4;
            if (lane != 0 || (part == 1 && !two_parts)) continue;
            shared_at<float>(at) = k0 == 0 ? sum : shared_at<float>(at) + sum;
        }
    }
}

// 1 / sqrt(mean of squares + eps) of a row that was staged.
AKUNU_DEVICE float row_norm(const TileJob& job, u32 m) {
    if (!job.normed) return 1.0f;
    const float4 s = shared_at<const float4>(ByteMemory::squares(m));
    return inverse_root(((s.x + s.y) + (s.z + s.w)) * job.of_input + job.eps);
}

}  // namespace akunu::cuda
