// A row's inputs, as products on the tensor cores read them: F32 that are normalised, or F16, which become whole
// numbers or F16 ones in a block's shared memory.
#pragma once

#include "fragments.cuh"
#include "tile_job.cuh"

namespace akunu::cuda {

// Offsets in shared memory: so every access is known to be one of it.
struct TileMemory {
    u32 parts;     // of codes' types bytes [k / 32][2][32], of floats u16 [kParts][k]
    u32 sums;      // float [k / 16]: of inputs as whole numbers
    u32 factors;   // float [k / kStepInputs]
    u32 squares;   // float [kWarps], where the input is to be normalised
    u32 partials;  // float [2][kTilesAtOnce][kWarps][kTileRows]

    AKUNU_DEVICE u32 other_half(u32 of) const { return 2 * partials + kPartialsBytes - of; }
};
AKUNU_DEVICE TileMemory tile_memory(u32 k, u32 parts) {
    TileMemory m;
    m.parts = kSharedHead;
    m.sums = m.parts + parts * k * 2;
    m.factors = m.sums + k / 4;
    m.squares = m.factors + (k / kStepInputs + 3) / 4 * 16;
    m.partials = m.squares + kWarps * 4;
    return m;
}
// Says where a row's inputs are, which is computed while the block waits: F32 that are to be normalised, or F16.
struct InputSource {
    const float *x, *norm;
    const u16* halves;
};

AKUNU_DEVICE float dot(const float4& a, const float4& b) { return (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w); }

// What a row's experts may have besides (ExpertKind): all of it where it is not given.
#ifndef AKUNU_EXPERT_KINDS
#define AKUNU_EXPERT_KINDS X(kWithShared) X(kWithRouterNorm) X(kWithMoreRows)
#endif
#define X(kind) | (kind)
constexpr u32 kExpertKinds = 0 AKUNU_EXPERT_KINDS;
#undef X
constexpr bool kHasShared = (kExpertKinds & kWithShared) != 0, kHasRouterNorm = (kExpertKinds & kWithRouterNorm) != 0,
               kHasMoreRows = (kExpertKinds & kWithMoreRows) != 0;

// Rows of a router's F32 weights whose products with a row's normed inputs are computed while these are staged, but for
// the norm's factor: null where there is none. Where the router has a norm of its own, the last one is its weights.
struct RouterRows {
    static constexpr u32 kAtOnce = kStagedRouterRows;
    const float* at[kAtOnce];
    bool own_norm;
    float sums[kAtOnce];  // of a thread
};
struct NoRouterRows {
    static constexpr u32 kAtOnce = 0;
};

// Four inputs of a row. What is asked for is no branch's: else one load would wait for another.
template <bool kNormed, typename Router = NoRouterRows>
struct RowInputs {
    float4 x, weight;
    uint2 halves;
    float4 router[larger(Router::kAtOnce, 1)];

    AKUNU_DEVICE void load_router(const Router& rows, u32 i, bool there) {
        if constexpr (Router::kAtOnce != 0) {
            AKUNU_UNROLL
            for (u32 r = 0; r < Router::kAtOnce; ++r) {
                const bool has = there && rows.at[r] != nullptr;
                router[r] = has ? *reinterpret_cast<const float4*>(rows.at[r] + i) : float4{0.0f, 0.0f, 0.0f, 0.0f};
            }
        }
    }
    AKUNU_DEVICE void add_logits(Router& rows) const {
        if constexpr (Router::kAtOnce != 0) {
            const float4& by = kHasRouterNorm && rows.own_norm ? router[Router::kAtOnce - 1] : weight;
            const float4 v{x.x * by.x, x.y * by.y, x.z * by.z, x.w * by.w};
            AKUNU_UNROLL
            for (u32 r = 0; r < Router::kAtOnce; ++r) rows.sums[r] += dot(router[r], v);
        }
    }

    // The weights of the norm, which no command writes.
    AKUNU_DEVICE void load_weight(const InputSource& from, u32 i, bool there) {
        if constexpr (kNormed) {
            weight = there ? *reinterpret_cast<const float4*>(from.norm + i) : float4{0.0f, 0.0f, 0.0f, 0.0f};
        }
    }
    AKUNU_DEVICE void load(const InputSource& from, u32 i, bool there) {
        if constexpr (kNormed) {
            x = there ? *reinterpret_cast<const float4*>(from.x + i) : float4{0.0f, 0.0f, 0.0f, 0.0f};
        } else {
            halves = there ? *reinterpret_cast<const uint2*>(from.halves + i) : uint2{0, 0};
        }
    }
    // Reads inputs from mailbox words; false where some have not arrived.
    AKUNU_DEVICE bool poll(const u64* words, u32 i, u32 number) {
        u64 w[2];
        bool all = true;
        const auto two = [&](const u64* at) {
            load_words(at, w);
            all &= number_of(w[0]) == number && number_of(w[1]) == number;
        };
        if constexpr (kNormed) {
            two(words + i);
            x.x = bits_to_float(value_of(w[0]));
            x.y = bits_to_float(value_of(w[1]));
            two(words + i + 2);
            x.z = bits_to_float(value_of(w[0]));
            x.w = bits_to_float(value_of(w[1]));
        } else {
            two(words + i / 2);
            halves = {value_of(w[0]), value_of(w[1])};
        }
        return all;
    }
    AKUNU_DEVICE float squares() const {
        if constexpr (kNormed) return x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
        return 0.0f;
    }
    AKUNU_DEVICE void values(float (&v)[4]) const {
        if constexpr (kNormed) {
            v[0] = x.x * weight.x;
            v[1] = x.y * weight.y;
            v[2] = x.z * weight.z;
            v[3] = x.w * weight.w;
        } else {
            v[0] = half_to_float(u16(halves.x));
            v[1] = half_to_float(u16(halves.x >> 16));
            v[2] = half_to_float(u16(halves.y));
            v[3] = half_to_float(u16(halves.y >> 16));
        }
    }
};

// Inputs i to i + 3 of a step whose largest has the bits `top`, as T reads them; what the first parts count is
// returned.
template <typename T>
AKUNU_DEVICE float put_floats(const TileMemory& m, u32 k, u32 i, bool there, u32 top, float (&x)[4]) {
    const u32 exponent = larger(top >> 23, 15);  // the largest comes to be from 2^14 to 2^15
    const float scale = bits_to_float((268 - exponent) << 23);
    AKUNU_UNROLL
    for (u32 e = 0; e < 4; ++e) x[e] *= scale;
    AKUNU_UNROLL
    for (u32 part = 0; part < T::kParts; ++part) {
        u32 h[4];
        AKUNU_UNROLL
        for (u32 e = 0; e < 4; ++e) {
            h[e] = float_to_half(x[e]);
            x[e] = (x[e] - half_to_float(u16(h[e]))) * kPartShift;
        }
        if (there) shared_at<uint2>(m.parts + (part * k + i) * 2) = uint2{h[0] | h[1] << 16, h[2] | h[3] << 16};
    }
    return bits_to_float((exponent - 14) << 23);
}
template <typename T>
AKUNU_DEVICE float put_codes(const TileMemory& m, u32 i, bool there, u32 lane, u32 top, const float (&x)[4]) {
    const InputCodes codes(x, top);
    if constexpr (T::kSums) {
        float sum = codes.sum;
        sum += shuffle_xor(sum, 1);
        sum += shuffle_xor(sum, 2);
        if (there && lane % 4 == 0) shared_at<float>(m.sums + i / 16 * 4) = sum;
    }
    const u32 at = m.parts + i / 32 * 64 + i % 32;
    if (there) {
        shared_at<u32>(at) = codes.high;
        shared_at<u32>(at + 32) = codes.low;
    }
    return codes.factor;
}

// Inputs i to i + 3, which the thread has staged.
template <typename T>
AKUNU_DEVICE void staged_values(const TileMemory& m, u32 k, u32 i, float (&x)[4]) {
    const float factor = shared_at<const float>(m.factors + i / kStepInputs * 4);
    if constexpr (T::kFloats) {
        AKUNU_UNROLL
        for (u32 e = 0; e < 4; ++e) x[e] = 0.0f;
        AKUNU_UNROLL
        for (u32 part = T::kParts; part-- > 0;) {
            const uint2 h = shared_at<const uint2>(m.parts + (part * k + i) * 2);
            const u32 halves[4] = {h.x & 0xFFFF, h.x >> 16, h.y & 0xFFFF, h.y >> 16};
            AKUNU_UNROLL
            for (u32 e = 0; e < 4; ++e) x[e] = x[e] * (1.0f / kPartShift) + half_to_float(u16(halves[e]));
        }
    } else {
        const u32 at = m.parts + i / 32 * 64 + i % 32;
        const u32 high = shared_at<const u32>(at), low = shared_at<const u32>(at + 32);
        AKUNU_UNROLL
        for (u32 e = 0; e < 4; ++e) {
            const auto of = [&](u32 bytes) { return int(bytes << (24 - 8 * e)) >> 24; };
            x[e] = float(of(high) * 256 + of(low));
        }
    }
    AKUNU_UNROLL
    for (u32 e = 0; e < 4; ++e) x[e] *= factor;
}

// Inputs of a row, and with the zeros behind them. Of several rows, the one behind the first `rows` is elsewhere, and
// has so many.
struct RowLength {
    u32 inputs, padded, rows = 0, last_inputs = 0;
    const u16* last = nullptr;
};

// Waits for the row, if it has not been waited for, and splits it into parts, as kind T reads them. Where kRows, `k` is
// that of several rows one behind the other, each with its zeros.
template <typename T, bool kNormed, bool kWaits, bool kRows, typename Router>
AKUNU_DEVICE void stage_inputs(Block b, const RowLength& row, u32 k, const TileMemory& m, u32 thread, Router& router) {
    using Inputs = RowInputs<kNormed, Router>;
    constexpr u32 kEach = 4, kApart = kThreads * kEach;
    const InputSource from{b.buffer<float>(0), b.buffer<float>(1), b.buffer<u16>(0)};
    const u32 lane = thread % 32;
    float squares = 0.0f;
    // Some at once without a branch between them, for whole warps: k is a multiple of kStepInputs.
    const auto stage = [&](u32 base, const auto&... rows) {
        constexpr u32 kNow = sizeof...(rows);
        const Inputs* const inputs[] = {&rows...};
        float x[kNow][4];
        u32 top[kNow];
        AKUNU_UNROLL
        for (u32 n = 0; n < kNow; ++n) {
            inputs[n]->values(x[n]);
            top[n] = largest_bits(x[n]);  // a warp has a step's inputs
        }
        AKUNU_UNROLL
        for (u32 n = 0; n < kNow; ++n) top[n] = largest_of_warp(top[n]);
        AKUNU_UNROLL
        for (u32 n = 0; n < kNow; ++n) {
            const u32 i = base + n * kApart;
            const float factor = T::kFloats ? put_floats<T>(m, k, i, i < k, top[n], x[n])
                                            : put_codes<T>(m, i, i < k, lane, top[n], x[n]);
            if (lane == 0 && i < k) shared_at<float>(m.factors + i / kStepInputs * 4) = factor;
        }
    };
    const u64* words = kWaits ? b.taken() : nullptr;
    if (kWaits && any_of_warp(words != nullptr)) {
        constexpr u32 kAtOnce = kNormed ? 2 : 4;
        const u32 number = b.taken_number();
        for (u32 base = thread * kEach; base < k; base += kApart * kAtOnce) {
            Inputs inputs[kAtOnce];
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                inputs[j].load_weight(from, base + j * kApart, base + j * kApart < row.inputs);
                inputs[j].load_router(router, base + j * kApart, base + j * kApart < row.inputs);
            }
            wait_for_words([&] {
                bool all = true;
                AKUNU_UNROLL
                for (u32 j = 0; j < kAtOnce; ++j) {
                    // Behind the row's end the last ones again, which count for nothing: the weights there are 0.
                    all &= inputs[j].poll(words, smaller(base + j * kApart, row.inputs - kEach), number);
                }
                return all;
            });
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                squares += base + j * kApart < row.inputs ? inputs[j].squares() : 0.0f;
                inputs[j].add_logits(router);
            }
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; j += 2) {
                const u32 at = base + j * kApart;
                if (at >= k) break;
                at + kApart < k ? stage(at, inputs[j], inputs[j + 1]) : stage(at, inputs[j]);
            }
        }
    } else {
        // What comes next is asked for before what is there is staged.
        constexpr u32 kAtOnce = 2;
        Inputs inputs[kAtOnce], next[kAtOnce];
        const auto load_weights = [&](Inputs(&to)[kAtOnce], u32 base) {
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                to[j].load_weight(from, base + j * kApart, base + j * kApart < row.inputs);
                to[j].load_router(router, base + j * kApart, base + j * kApart < row.inputs);
            }
        };
        // Which of several rows a step is of: a division is one of these products. Steps are fewer than 2^10.
        const u32 share = kRows ? (1u << 20) / (row.padded / kStepInputs) + 1 : 0;
        const auto load = [&](Inputs(&to)[kAtOnce], u32 base) {
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                const u32 at = base + j * kApart;
                if constexpr (kRows) {
                    const u32 of = (at / kStepInputs * share) >> 20, which = kHasShared ? smaller(of, row.rows) : of;
                    const u32 in_row = at - which * row.padded;
                    const bool last = kHasShared && which == row.rows;
                    const u16* const halves = last ? row.last : from.halves + which * row.inputs;
                    to[j].load({from.x, from.norm, halves}, in_row,
                               at < k && in_row < (last ? row.last_inputs : row.inputs));
                } else {
                    to[j].load(from, at, at < row.inputs);
                }
            }
        };
        load_weights(inputs, thread * kEach);
        if constexpr (kWaits) b.wait();
        load(inputs, thread * kEach);
        AKUNU_NO_UNROLL
        for (u32 base = thread * kEach; base < k; base += kApart * kAtOnce) {
            load_weights(next, base + kApart * kAtOnce);
            load(next, base + kApart * kAtOnce);
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                squares += inputs[j].squares();
                inputs[j].add_logits(router);
            }
            stage(base, inputs[0], inputs[1]);
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) inputs[j] = next[j];
        }
    }
    if constexpr (kNormed) {
        squares = reduce_warp(squares, Add());
        if (lane == 0) shared_at<float>(m.squares + thread / 32 * 4) = squares;
    }
}

template <typename T, bool kNormed, bool kWaits = true, bool kRows = false>
AKUNU_DEVICE void stage_inputs(Block b, const RowLength& row, u32 k, const TileMemory& m, u32 thread) {
    NoRouterRows none;
    stage_inputs<T, kNormed, kWaits, kRows>(b, row, k, m, thread, none);
}

// 1 / sqrt(mean of squares + eps) of what was staged.
AKUNU_DEVICE float staged_norm(const TileMemory& m, float of_input, float eps) {
    float sum = 0.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < kWarps; i += 4) {
        const float4 s = shared_at<float4>(m.squares + i * 4);
        sum += (s.x + s.y) + (s.z + s.w);
    }
    return inverse_root(sum * of_input + eps);
}

}  // namespace akunu::cuda
