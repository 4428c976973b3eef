// More than 16 rows times weights. Three warps of a block load tiles of inputs and weights to shared memory
// (load_tiles.cuh); those that run commands multiply them on the tensor cores, four warps together where a GPU has
// products of warpgroups, which read shared memory themselves. Between them are a few stages, whose barriers say what
// is there and what has been read, across the tiles that a block takes.
#pragma once

#include "load_tiles.cuh"
#include "matvec.cuh"

namespace akunu::cuda {

// A warp's sums, as the tensor cores leave them.
template <typename S>
using TileSums = float[S::kFragmentsM][S::kFragmentsN][4];

// A warp's operands for 16 inputs.
template <typename S>
struct TileFragments {
    u32 a[S::kFragmentsM][4], b[S::kFragmentsN / 2][4];
    // `inputs`, `weights`: where this lane's rows begin, see load_matrices.
    AKUNU_DEVICE void load(u32 inputs, u32 weights) {
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM; ++i) load_matrices(a[i], inputs + i * 16 * kTileRowBytes);
        AKUNU_UNROLL
        for (u32 j = 0; j < S::kFragmentsN / 2; ++j) load_matrices(b[j], weights + j * 16 * kTileRowBytes);
    }
};

// A unit's products of a warp, whose first row and column are m and n, by itself; of its k inputs.
template <typename S>
AKUNU_DEVICE void multiply_by_warps(const Stages& stages, u32 k, u32 lane, u32 m, u32 n, StagePlace& from,
                                    TileSums<S>& sum) {
    const u32 inputs = (m + lane % 16) * kTileRowBytes + (lane / 16 ^ lane % 8) * 16;
    const u32 weights =
        stages.rows_bytes + (n + lane / 16 * 8 + lane % 8) * kTileRowBytes + (lane / 8 % 2 ^ lane % 8) * 16;
    TileFragments<S> parts[2];
    const auto load = [&](TileFragments<S>& to, const StagePlace& stage, u32 s) {
        to.load(stage.inputs + (inputs ^ s * 32), stage.inputs + (weights ^ s * 32));
    };
    from.wait_full();
    load(parts[0], from, 0);
    for (u32 k0 = 0; k0 < k; k0 += kTileInputs) {
        StagePlace next = from;
        next.advance(stages);
        // The next fragments are on their way while these are multiplied.
        AKUNU_UNROLL
        for (u32 s = 0; s < kTileInputs / 16; ++s) {
            if (s + 1 < kTileInputs / 16) {
                load(parts[(s + 1) % 2], from, s + 1);
            } else if (k0 + kTileInputs < k) {
                next.wait_full();
                load(parts[0], next, 0);
            }
            AKUNU_UNROLL
            for (u32 i = 0; i < S::kFragmentsM; ++i) {
                AKUNU_UNROLL
                for (u32 j = 0; j < S::kFragmentsN; ++j) {
                    mma_f16(sum[i][j], parts[s % 2].a[i],
                            {parts[s % 2].b[j / 2][j % 2 * 2], parts[s % 2].b[j / 2][j % 2 * 2 + 1]});
                }
            }
        }
        from.free(lane);
        from = next;
    }
}

// The same by the four warps of a group, which multiply all their rows together. A stage is free when the next one's
// products have been begun and its own are done.
template <typename S>
AKUNU_DEVICE void multiply_by_groups(const Stages& stages, u32 k, u32 lane, u32 m, u32 n, StagePlace& from,
                                     TileSums<S>& sum) {
    const u32 inputs = m / 64 * 64 * kTileRowBytes, weights = stages.rows_bytes + n * kTileRowBytes;
    StagePlace before = from;
    for (u32 k0 = 0; k0 < k; k0 += kTileInputs) {
        from.wait_full();
        begin_products(sum);
        AKUNU_UNROLL
        for (u32 s = 0; s < kTileInputs / 16; ++s) {
            AKUNU_UNROLL
            for (u32 i = 0; i < S::kFragmentsM; ++i) {
                multiply_group(sum[i], matrix_place(from.inputs + inputs + i * 64 * kTileRowBytes + s * 32),
                               matrix_place(from.inputs + weights + s * 32));
            }
        }
        end_products();
        if (k0 != 0) {
            wait_for_products<1>(sum);
            before.free(lane);
        }
        before = from;
        from.advance(stages);
    }
    wait_for_products<0>(sum);
    before.free(lane);
}

// A block leaves its part of a tile's sums. The last one of the tile adds all up, in pairs and pairs of pairs: so the
// sums do not depend on who it is. The others have nothing to store. A thread copies what it adds to the stages'
// memory, some fragments ahead: it has no registers for them.
template <typename S>
AKUNU_DEVICE bool join_parts(Block b, const Tiles& tiles, u32 unit, TileSums<S>& sum) {
    static_assert(kMostParts == 4, "parts are added up to as many");
    constexpr u32 kFragments = S::kFragmentsM * S::kFragmentsN, kAtOnce = smaller(4, kFragments);
    constexpr u32 kPlaneBytes = kThreads * sizeof(float4);  // a fragment of all threads
    static_assert(2 * (kMostParts - 1) * kAtOnce * kPlaneBytes <= kLeastStages * LargeTile::kStageBytes,
                  "there is room");
    const u32 tile = tiles.part_tile(unit), own = tiles.part(unit), thread = thread_id_anew();
    const u64 apart = u64(tiles.rest) * (kPartBytes / sizeof(float4));  // of a tile's parts
    float4* const first =
        reinterpret_cast<float4*>(block_state().launch.parts) + u64(tile) * (kPartBytes / sizeof(float4)) + thread;
    AKUNU_UNROLL
    for (u32 i = 0; i < kFragments; ++i) {
        const float (&v)[4] = sum[i / S::kFragmentsN][i % S::kFragmentsN];
        first[own * apart + i * kThreads] = float4{v[0], v[1], v[2], v[3]};
    }
    if (!comes_last(b.grid()->parts[tile], tiles.parts)) return false;
    const auto place = [&](u32 fragment, u32 other) {
        const u32 plane = (fragment / kAtOnce % 2 * (kMostParts - 1) + other - 1) * kAtOnce + fragment % kAtOnce;
        return kStagesAt + plane * kPlaneBytes + thread * u32(sizeof(float4));
    };
    const auto fetch = [&](u32 from) {
        if (from < kFragments) {
            for (u32 other = 1; other < tiles.parts; ++other) {
                AKUNU_UNROLL
                for (u32 i = 0; i < kAtOnce; ++i) {
                    copy_async16(shared_memory() + place(from + i, other),
                                 first + (own ^ other) * apart + (from + i) * kThreads);
                }
            }
        }
        bundle_copies();
    };
    fetch(0);
    fetch(kAtOnce);
    AKUNU_UNROLL
    for (u32 from = 0; from < kFragments; from += kAtOnce) {
        wait_for_bundles<1>();
        AKUNU_UNROLL
        for (u32 i = from; i < from + kAtOnce; ++i) {
            float (&to)[4] = sum[i / S::kFragmentsN][i % S::kFragmentsN];
            const auto add = [&](const float4& v) {
                to[0] += v.x;
                to[1] += v.y;
                to[2] += v.z;
                to[3] += v.w;
            };
            const auto part = [&](u32 other) {
                return *reinterpret_cast<const float4*>(shared_memory() + place(i, other));
            };
            add(part(1));
            if (any_of_warp(tiles.parts == 2)) continue;
            const float4 v = part(2), w = part(3);
            add({v.x + w.x, v.y + w.y, v.z + w.z, v.w + w.w});
        }
        fetch(from + 2 * kAtOnce);
    }
    return true;
}

// By the warps that multiply; `store(lane, m, n, sum)` takes a warp's sums, of which m and n are the first row and
// column. The thread is asked for anew: what follows from it would be kept in registers for the whole launch.
template <typename S, typename Store>
AKUNU_DEVICE void multiply_tiles(Block b, const ManyRows& work, const Tiles& tiles, Store&& store) {
    const WeightPlanes(&matrices)[3] = b.command().weights;
    const bool copied = copied_from_tiles(matrices[0].reader, work.k);
    const Stages stages(S::kM, S::kN);
    float factors[2] = {1.0f, 1.0f};
    if (copied) {
        factors[0] = tile_factor(matrices[0]);
        factors[1] = tile_factor(matrices[work.gated]);
    }
    const u32 thread = thread_id_anew(), lane = thread % 32;
    const u32 m = S::first_row(thread / 32), n = S::first_column(thread / 32);
    StagePlace from;
    for (u32 u = b.first(); u < tiles.all; u += b.blocks()) {
        TileSums<S> sum = {};
        const u32 k = tiles.end(u) - tiles.begin(u);
        if constexpr (kWarpgroups) {
            multiply_by_groups<S>(stages, k, lane, m, n, from, sum);
        } else {
            multiply_by_warps<S>(stages, k, lane, m, n, from, sum);
        }
        if (any_of_warp(tiles.is_part(u)) && !join_parts<S>(b, tiles, u, sum)) continue;
        if (factors[0] != 1.0f || factors[1] != 1.0f) {
            AKUNU_UNROLL
            for (u32 i = 0; i < S::kFragmentsM; ++i) {
                AKUNU_UNROLL
                for (u32 j = 0; j < S::kFragmentsN; ++j) {
                    AKUNU_UNROLL
                    for (u32 e = 0; e < 4; ++e) sum[i][j][e] *= factors[j % 2];
                }
            }
        }
        store(lane, tiles.row(u) + m, tiles.column(u) + n, sum);
    }
}

template <typename S>
struct SumsCopy {
    TileSums<S> sum;
    AKUNU_DEVICE explicit SumsCopy(const TileSums<S>& from) {
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM; ++i) {
            AKUNU_UNROLL
            for (u32 j = 0; j < S::kFragmentsN; ++j) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 4; ++e) sum[i][j][e] = from[i][j][e];
            }
        }
    }
};

// Calls each(m, n, i, j) for a lane's pairs of neighbouring columns, its j-th of its i-th row.
template <typename S, typename Each>
AKUNU_DEVICE void each_pair(u32 lane, u32 m0, u32 n0, u32 rows, Each&& each) {
    AKUNU_NO_UNROLL
    for (u32 i = 0; i < S::kFragmentsM * 2; ++i) {
        const u32 m = m0 + S::row(lane, i);
        if (m >= rows) return;
        AKUNU_NO_UNROLL
        for (u32 j = 0; j < S::kFragmentsN; ++j) each(m, n0 + 8 * j + 2 * (lane % 4), i, j);
    }
}

// What seldom happens: not unrolled, since a warp runs once through it for a tile, and from a copy, so that the sums
// themselves may be in registers.
template <typename S>
AKUNU_DEVICE_CALL void store_matmul(Block b, u32 lane, u32 m0, u32 n0, const TileSums<S>& sum) {
    const auto& p = b.params<MatmulParams>();
    const MatmulOutput out{p, b.buffer<float>(2), b.buffer<float>(3)};
    each_pair<S>(lane, m0, n0, p.rows, [&](u32 m, u32 n, u32 i, u32 j) {
        if (n < p.n) out.store(m, n, sum[i / 2][j][i % 2 * 2]);
        if (n + 1 < p.n) out.store(m, n + 1, sum[i / 2][j][i % 2 * 2 + 1]);
    });
}
template <typename S>
AKUNU_DEVICE_CALL void store_gate_up(Block b, u32 lane, u32 m0, u32 n0, const TileSums<S>& sum) {
    const auto& p = b.params<GateUpParams>();
    const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
    each_pair<S>(lane, m0, n0 / 2, p.rows, [&](u32 m, u32 at, u32 i, u32 j) {
        if (j % 2 != 0) return;
        const u32 n = at - 4 * j;
        for (u32 e = 0; e < 2; ++e) {
            const u32 of = i % 2 * 2 + e;
            const float v = activate(p.activation, sum[i / 2][j][of]) * sum[i / 2][j + 1][of];
            if (n + e < p.n) out.store(u64(m) * p.n + n + e, v);
        }
    });
}

// Activation functions that matmuls' results have, in registers; of all where they are not given.
#ifndef AKUNU_MATMUL_ACTIVATIONS
#define AKUNU_MATMUL_ACTIVATIONS X(kActSilu) X(kActGeluTanh) X(kActGelu) X(kActRelu2)
#endif

template <typename S, typename Of>
AKUNU_DEVICE void each_sum(TileSums<S>& sum, Of&& of) {
    AKUNU_UNROLL
    for (u32 i = 0; i < S::kFragmentsM; ++i) {
        AKUNU_UNROLL
        for (u32 j = 0; j < S::kFragmentsN; ++j) {
            AKUNU_UNROLL
            for (u32 e = 0; e < 4; ++e) sum[i][j][e] = of(sum[i][j][e]);
        }
    }
}
// Adds what `bias` has for a lane's columns, the first of them n0, of n. A few are asked for at once.
template <typename S>
AKUNU_DEVICE void add_bias(const float* bias, u32 n0, u32 n, TileSums<S>& sum) {
    constexpr u32 kAtOnce = smaller(S::kFragmentsN, 8);
    AKUNU_UNROLL
    for (u32 first = 0; first < S::kFragmentsN; first += kAtOnce) {
        float2 v[kAtOnce];
        AKUNU_UNROLL
        for (u32 k = 0; k < kAtOnce; ++k) {
            const u32 at = n0 + 8 * (first + k);
            v[k] = at < n ? *reinterpret_cast<const float2*>(bias + at) : float2{0.0f, 0.0f};
        }
        AKUNU_UNROLL
        for (u32 k = 0; k < kAtOnce; ++k) {
            AKUNU_UNROLL
            for (u32 i = 0; i < S::kFragmentsM; ++i) {
                float (&to)[4] = sum[i][first + k];
                to[0] += v[k].x, to[1] += v[k].y, to[2] += v[k].x, to[3] += v[k].y;
            }
        }
    }
}
// Whether results can be stored two at once, from registers.
AKUNU_DEVICE bool stores_pairs(const MatmulParams& p, const float* y, const float* bias) {
    bool known = p.activation == 0;
#define X(of) known |= p.activation == (of) + 1;
    AKUNU_MATMUL_ACTIVATIONS
#undef X
    return known && p.softcap <= 0.0f && p.y_stride % 2 == 0 && p.n % 2 == 0 &&
           (reinterpret_cast<u64>(y) | (p.has_bias ? reinterpret_cast<u64>(bias) : 0)) % 8 == 0;
}

template <typename S>
AKUNU_DEVICE void multiply_matmul(Block b, const ManyRows& work, const Tiles& tiles) {
    const auto& p = b.params<MatmulParams>();
    float* y = b.buffer<float>(2);
    const bool plain = stores_pairs(p, y, b.buffer<float>(3));
    multiply_tiles<S>(b, work, tiles, [&](u32 lane, u32 m0, u32 n0, TileSums<S>& sum) {
        if (!plain) {
            const SumsCopy<S> copy(sum);
            return store_matmul<S>(b, lane, m0, n0, copy.sum);
        }
        n0 += 2 * (lane % 4);
        if (p.has_bias) add_bias<S>(b.buffer<float>(3), n0, p.n, sum);
        switch (p.activation) {
#define X(of)                                                      \
    case (of) + 1:                                                 \
        each_sum<S>(sum, [](float v) { return activate(of, v); }); \
        break;
            AKUNU_MATMUL_ACTIVATIONS
#undef X
        }
        constexpr u32 kAtOnce = smaller(S::kFragmentsN, 8);  // of what is added to
        const bool halves = p.format == kActF16;
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM * 2; ++i) {
            const u32 m = m0 + S::row(lane, i), of = i % 2 * 2;
            if (m >= p.rows) continue;
            const u64 at = u64(m) * p.y_stride + n0;
            if (halves) {
                u16* row = reinterpret_cast<u16*>(y) + at;
                AKUNU_UNROLL
                for (u32 j = 0; j < S::kFragmentsN; ++j) {
                    const u32 both = pack_halves(sum[i / 2][j][of], sum[i / 2][j][of + 1]);
                    if (n0 + 8 * j < p.n) *reinterpret_cast<u32*>(row + 8 * j) = both;
                }
                continue;
            }
            float* row = y + at;
            AKUNU_UNROLL
            for (u32 first = 0; first < S::kFragmentsN; first += kAtOnce) {
                float2 v[kAtOnce];
                AKUNU_UNROLL
                for (u32 k = 0; k < kAtOnce; ++k) {
                    const u32 n = 8 * (first + k);
                    const bool there = p.accumulate && n0 + n < p.n;
                    v[k] = there ? *reinterpret_cast<const float2*>(row + n) : float2{0.0f, 0.0f};
                }
                AKUNU_UNROLL
                for (u32 k = 0; k < kAtOnce; ++k) {
                    const u32 n = 8 * (first + k);
                    const float2 w{v[k].x + sum[i / 2][first + k][of], v[k].y + sum[i / 2][first + k][of + 1]};
                    if (n0 + n < p.n) *reinterpret_cast<float2*>(row + n) = w;
                }
            }
        }
    });
}

template <typename S>
AKUNU_DEVICE void multiply_gate_up(Block b, const ManyRows& work, const Tiles& tiles) {
    const auto& p = b.params<GateUpParams>();
    u16* halves = b.buffer<u16>(4);
    const bool plain = p.activation == kActSilu && p.formats == kActF16 && p.n % 2 == 0;
    multiply_tiles<S>(b, work, tiles, [&](u32 lane, u32 m0, u32 n0, const TileSums<S>& sum) {
        if (!plain) {
            const SumsCopy<S> copy(sum);
            return store_gate_up<S>(b, lane, m0, n0, copy.sum);
        }
        AKUNU_UNROLL
        for (u32 i = 0; i < S::kFragmentsM * 2; ++i) {
            const u32 m = m0 + S::row(lane, i);
            if (m >= p.rows) continue;
            AKUNU_UNROLL
            for (u32 j = 0; j < S::kFragmentsN; j += 2) {
                const u32 n = n0 / 2 + j * 4 + 2 * (lane % 4), of = i % 2 * 2;
                const auto gated = [&](u32 e) {
                    const float gate = sum[i / 2][j][of + e];
                    return gate * reciprocal(1.0f + power_of_two(-1.4426950408889634f * gate)) *
                           sum[i / 2][j + 1][of + e];
                };
                if (n < p.n) *reinterpret_cast<u32*>(halves + u64(m) * p.n + n) = pack_halves(gated(0), gated(1));
            }
        }
    });
}

template <typename S>
AKUNU_DEVICE void multiply(Block b, const ManyRows& work, const Tiles& tiles) {
    work.gated ? multiply_gate_up<S>(b, work, tiles) : multiply_matmul<S>(b, work, tiles);
}

// Of matmul and gate_up, where the ring does not load their weights. Part of the kernel itself: in a function that it
// calls products of warpgroups would wait for one another.
AKUNU_DEVICE void many_rows(Block b) {
    b.wait();
    const ManyRows work(b);
    const u32 thread = thread_id_anew();
    if (!kChecksRaces && thread < kMostStages) {
        init_barrier(&stage_barriers().full[thread], kLoaders + kLoaders / 32);
        init_barrier(&stage_barriers().empty[thread], kWarps);
        publish_barriers();
    }
    show_to_groups();  // what lay where copies come now
    sync_with_loaders();
    const Tiles tiles = tiles_of(b, work);
    switch (tiles.m << 16 | tiles.n) {
        case TallTile::kShape:
            if constexpr (kWarpgroups) multiply<TallTile>(b, work, tiles);
            break;
        case LargeTile::kShape:
            multiply<LargeTile>(b, work, tiles);
            break;
        case MiddleTile::kShape:
            multiply<MiddleTile>(b, work, tiles);
            break;
        default:
            multiply<SmallTile>(b, work, tiles);
    }
    sync_with_loaders();
    if (!kChecksRaces && thread < kMostStages) {  // what comes next uses their memory
        drop_barrier(&stage_barriers().full[thread]);
        drop_barrier(&stage_barriers().empty[thread]);
    }
}

}  // namespace akunu::cuda
