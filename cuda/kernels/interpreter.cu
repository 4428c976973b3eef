// The interpreter: one cooperative launch walks the compiled commands of a chain of steps.
//
// Every block takes its share of every command. A command that reads what others of its stage write waits at a barrier
// of the whole grid, which is given up after a time: a wrong table ends in an error, never in a hang.
//
// AKUNU_OPS, AKUNU_READERS, AKUNU_KV_TYPES, AKUNU_GROUPS, AKUNU_DECODE_KINDS and AKUNU_PROMPT_DIMS, lists of X(value),
// name what the commands use; nothing else is compiled. AKUNU_GATE_UP_READERS and AKUNU_DOWN_READERS are those of
// experts' weights, all readers where they are not given.
#include "cards.cuh"
#include "decode_attention.cuh"
#include "delta_rule.cuh"
#include "experts.cuh"
#include "few_rows.cuh"
#include "latent_attention.cuh"
#include "lora.cuh"
#include "many_rows.cuh"
#include "matmul.cuh"
#include "norm_qkv.cuh"
#include "prepare_heads.cuh"
#include "prompt_attention.cuh"
#include "recurrence.cuh"
#include "relative_attention.cuh"
#include "row_tiles.cuh"
#include "rows.cuh"
#include "sampler_parts.cuh"
#include "speech.cuh"
#include "ssm_scan.cuh"
#include "streams.cuh"

namespace akunu::cuda {

// Copies between the host's memory and the device's, by all blocks.
AKUNU_DEVICE_CALL void copy_mirrors(const Launch& launch, bool back) {
    for (u32 s = 0; s < launch.n_segments; ++s) {
        for (u32 i = 0; i < launch.segments[s].n_mirrors; ++i) {
            const Mirror& m = launch.segments[s].mirrors[i];
            if (back && !m.back) continue;
            const uint4* from = reinterpret_cast<const uint4*>(back ? m.device : m.host);
            uint4* to = reinterpret_cast<uint4*>(back ? m.host : m.device);
            for (u64 k = u64(block_id()) * kThreads + thread_id(); k < m.bytes / 16;
                 k += u64(grid_blocks()) * kThreads) {
                to[k] = from[k];
            }
        }
    }
}

#ifndef AKUNU_GATE_UP_READERS
#define AKUNU_GATE_UP_READERS AKUNU_READERS
#define AKUNU_DOWN_READERS AKUNU_READERS
#endif
#define X(reader) | 1u << (reader)
constexpr u32 kGateUpReaders = 0 AKUNU_GATE_UP_READERS, kDownReaders = 0 AKUNU_DOWN_READERS;
#undef X
// Whether some command of experts has weights of this type.
template <u32 kOp, u32 kReader>
constexpr bool kUsesExperts =
    kUses<kOp> && ((kOp == kOpExpertsDown ? kDownReaders : kGateUpReaders) >> kReader & 1) != 0;

template <u32 kReader>
AKUNU_DEVICE void run_weights(Block b) {
    using F = Format<kReader>;
    switch (b.command().op) {
        case kOpEmbed:
            if constexpr (kUses<kOpEmbed>) embed<F>(b);
            return;
        case kOpMatmul:
            if constexpr (kUses<kOpMatmul>) matmul<F>(b);
            return;
        case kOpGateUp:
            if constexpr (kUses<kOpGateUp>) gate_up<F>(b);
            return;
        case kOpExpertsGateUp:
            if constexpr (kUsesExperts<kOpExpertsGateUp, kReader>) experts_gate_up<kReader>(b);
            return;
        case kOpNormExperts:
            if constexpr (kUsesExperts<kOpNormExperts, kReader> && has_expert_rows(kReader)) norm_experts<kReader>(b);
            return;
        case kOpExpertsDown:
            if constexpr (kUsesExperts<kOpExpertsDown, kReader>) experts_down<kReader>(b);
            return;
        case kOpHeadMatmul:
            if constexpr (kUses<kOpHeadMatmul>) head_matmul<F>(b);
            return;
        case kOpLatentQueries:
            if constexpr (kUses<kOpLatentQueries>) latent_queries<F>(b);
            return;
        case kOpLatentValues:
            if constexpr (kUses<kOpLatentValues>) latent_values<F>(b);
            return;
        default:
            if constexpr (kUses<kOpNormGateUp>) norm_gate_up<F>(b);
    }
}

// A row times weights that come through the ring, of up to two types.
template <typename Adapter>
AKUNU_DEVICE void run_row(Block b, u32 readers) {
    for (u32 second = 0; second < 2; ++second, readers >>= 8) {
#define X(reader)                                                                                \
    if constexpr (tile_layout(reader).inputs != 0) {                                             \
        if (any_of_warp((readers & 255) == (reader) + 1)) row_tiles<reader, Adapter>(b, second); \
    }
        AKUNU_READERS
#undef X
        if (any_of_warp(readers < 256)) return;
    }
}

#if AKUNU_ADAPTERS
AKUNU_DEVICE_CALL void run_adapted_row(Block b, u32 readers) { run_row<RowAdapter>(b, readers); }
#endif

// Whether weights of a type meet a few rows.
constexpr bool meets_few_rows(u32 reader) {
    return tile_layout(reader).inputs != 0 &&
           (kUses<kOpMatmul> || kUses<kOpGateUp> || kUses<kOpNormQkv> || kUses<kOpNormGateUp>);
}
// A few rows, of weights of up to two types.
AKUNU_DEVICE void run_few(Block b, u32 readers) {
    for (u32 second = 0; second < 2; ++second, readers >>= 8) {
        switch (same_in_warp((readers & 255) - 1)) {
#define X(reader)                                                          \
    case reader:                                                           \
        if constexpr (meets_few_rows(reader)) few_rows<reader>(b, second); \
        break;
            AKUNU_READERS
#undef X
        }
        if (any_of_warp(readers < 256)) return;
    }
}

// A group of 0: all heads share the rows of the cache.
template <u32 kTypes, u32 kGroup>
AKUNU_DEVICE void run_attention_group(Block b) {
    if constexpr (kGroup == 0) {
        if (b.command().op == kOpAttention) {
            if constexpr (kUses<kOpAttention>) attention_latent<kTypes>(b);
        } else {
            if constexpr (kUses<kOpAttentionSplit>) attention_latent_split<kTypes>(b);
        }
    } else if (b.command().op == kOpAttention) {
        if constexpr (kUses<kOpAttention>) attention<kTypes, kGroup>(b);
    } else {
        if constexpr (kUses<kOpAttentionSplit>) attention_split<kTypes, kGroup>(b);
    }
}

template <u32 kTypes>
AKUNU_DEVICE void run_attention(Block b) {
    if (b.command().op == kOpPrepareHeads) {
        if constexpr (kUses<kOpPrepareHeads>) prepare_heads<kTypes>(b);
        return;
    }
    if (b.command().op == kOpLatentKv) {
        if constexpr (kUses<kOpLatentKv>) latent_kv<kTypes>(b);
        return;
    }
    if (b.command().op == kOpAttentionWeights) {
        if constexpr (kUses<kOpAttentionWeights>) attention_weights<kTypes>(b);
        return;
    }
    const auto& p = b.params<AttentionParams>();
    const u32 heads = p.latent ? 0 : group_part(p.n_heads / p.n_kv_heads);
    u32 room = p.latent ? 0 : 1;
    while (room < heads) room *= 2;
    switch (room) {
#define X(n) \
    case n:  \
        return run_attention_group<kTypes, n>(b);
        AKUNU_GROUPS
#undef X
    }
}

AKUNU_DEVICE void run_other(Block b) {
    const u32 op = same_in_warp(b.command().op);
    const bool waits_itself = op == kOpNorm || op == kOpNormRoute || op == kOpNormExperts || op == kOpHeadMatmul ||
                              op == kOpNormSums || op == kOpLatentQueries || op == kOpLatentValues;
    if (!waits_itself) b.wait();
    switch (op) {
#define OP(name, function)                      \
    case name:                                  \
        if constexpr (kUses<name>) function(b); \
        return;
        OP(kOpEmbedPosition, embed_position)
        OP(kOpUnfold, unfold)
        OP(kOpRopeTable, rope_table)
        OP(kOpNorm, norm)
        OP(kOpNormAdd, norm_add)
        OP(kOpNormSums, norm_sums)
        OP(kOpGatedNorm, gated_norm)
        OP(kOpLayerNorm, layer_norm)
        OP(kOpQuantize, quantize)
        OP(kOpNormQkv, norm_qkv)
        OP(kOpGateAct, gate_act)
        OP(kOpAttentionMerge, attention_merge)
        OP(kOpCopyRecords, copy_records)
        OP(kOpSpeechRules, speech_rules)
        OP(kOpArgmax, argmax)
        OP(kOpSamplePrepare, sample_prepare)
        OP(kOpSampleSelect, sample_select)
        OP(kOpLogprobs, logprobs)
        OP(kOpAccept, accept)
        OP(kOpAdvance, advance)
        OP(kOpPool, pool)
        OP(kOpRecur, recur)
        OP(kOpColumnSquares, column_squares)
        OP(kOpShortConv, short_conv)
        OP(kOpDeltaRule, delta_rule)
        OP(kOpSsmScan, ssm_scan)
        OP(kOpRoute, route)
        OP(kOpNormRoute, norm_route)
        OP(kOpClusterLogits, cluster_logits)
        OP(kOpInsertRows, insert_rows)
        OP(kOpAffine, affine)
        OP(kOpAddRows, add_rows)
        OP(kOpMixStreams, mix_streams)
        OP(kOpSparsify, sparsify)
        OP(kOpRelativeAttention, relative_attention)
        OP(kOpLoraA, lora_a)
        OP(kOpLoraB, lora_b)
#if AKUNU_CARDS > 1
        OP(kOpAllReduce, all_reduce)
#endif
#undef OP
        case kOpPrepareHeads:
        case kOpLatentKv:
        case kOpAttention:
        case kOpAttentionSplit:
        case kOpAttentionWeights:
            switch (same_in_warp(b.command().kv)) {
#define X(type) \
    case type:  \
        return run_attention<type>(b);
                AKUNU_KV_TYPES
#undef X
            }
            return;
        default:
            switch (same_in_warp(b.command().weights[0].reader)) {
#define X(reader) \
    case reader:  \
        return run_weights<reader>(b);
                AKUNU_READERS
#undef X
            }
    }
}

// Types of the cache that are compiled. Where there is one, commands have no other, and none is looked up.
#define X(type) +1
constexpr u32 kCacheTypes = 0 AKUNU_KV_TYPES;
#undef X

AKUNU_DEVICE void run_decoding(Block b) {
#define X(type)                                                                                          \
    if constexpr (kUses<kOpDecodeAttention>) {                                                           \
        if (kCacheTypes == 1 || any_of_warp(b.command().kv == (type))) return decode_attention<type>(b); \
    }
    AKUNU_KV_TYPES
#undef X
}

AKUNU_DEVICE void run_command(Block b, u32 way, u32 readers) {
#if AKUNU_ADAPTERS
    if (any_of_warp(way == kOneRow && is_adapted(b))) return run_adapted_row(b, readers);
#endif
    if (any_of_warp(way == kOneRow)) return run_row<NoAdapter>(b, readers);
    if (any_of_warp(way == kDecoding)) return run_decoding(b);
    if (any_of_warp(way == kNoShare)) return b.wait();
    if (any_of_warp(way == kOtherWay)) return run_other(b);
    if (any_of_warp(way == kFewOfRing)) return run_few(b, readers);
    if constexpr (kUses<kOpMatmul> || kUses<kOpGateUp>) many_rows(b);
}

// Behind the barrier that a step's end is: whether no other follows. `step` are done, and the command that would be
// next has this number.
AKUNU_DEVICE bool chain_ends(const Launch& launch, u32 step, u32 number) {
    if (any_of_warp(step == 0)) return false;
    if (thread_id_anew() == 0) block_state().done = step;
#if AKUNU_CARDS > 1
    const bool others = cards_end(launch, step, number, load_acquire(&launch.barrier->halt[(step - 1) % 2]) != 0);
    if (any_of_warp(others)) return true;
#endif
    if (any_of_warp(step == launch.steps)) return true;
    // One block has asked the host, so that all agree.
    return any_of_warp(load_acquire(&launch.barrier->halt[(step - 1) % 2]) ||
                       (launch.stop && load_acquire(launch.stop)));
}

}  // namespace akunu::cuda

// Nothing of the walk stays in registers while a command runs: a thread would find it on its stack, in the device's
// memory.
extern "C" __global__ void __launch_bounds__(akunu::cuda::kBlockThreads, 1)
    akunu_replay(const __grid_constant__ akunu::cuda::LaunchParams given) {
    using namespace akunu;
    using namespace akunu::cuda;
    if (!shared_memory_is_there()) {
        if (block_id() == 0 && thread_id() == 0) given.launch.mailbox->error = kSharedElsewhere;
        return;
    }
    const Launch& launch = block_state().launch;
    if (thread_id() == 0) {
        block_state() = {};
        block_state().launch = given.launch;
        block_state().launch.segments = grid_constant(given).segments;
        block_state().walk[0].number = launch.number;
        grid_barrier() = {launch.barrier->arrived[launch.parity], launch.times, grid_blocks(), 0};
        if (block_id() == 0) launch.barrier->arrived[1 - launch.parity][0] = 0;
        start_ring();
    }
    sync_all();
    if (!kChecksRaces && warp_id() == kWarps) return fill_ring();
    if (warp_id() > kLastOther) return run_loaders();
    copy_mirrors(launch, false);
    if (thread_id() % 32 == 0) block_state().slot[warp_id()] = 1;
    sync_next();
    for (;;) {
        const u32 warp = thread_id_anew() / 32, slot = block_state().slot[warp];
        const bool failed = look_at(block_state().failure) != kNoError;
        const Walk& now = block_state().walk[slot];
        const u32 begins = now.begins, way = now.way, readers = now.readers;
        if (any_of_warp(failed)) break;
        // What was copied, or what the step before has written, is there for all, whatever they read ahead of
        // their first barrier.
        if (any_of_warp(begins != 0)) {
            grid_barrier().wait();
            if (chain_ends(launch, now.at.step, now.number)) break;
            sync_next();
        }
        sync_readers();
        if (thread_id_anew() % 32 == 0) block_state().slot[warp] = 1 - slot;  // all lanes have read it
        run_command({slot}, way, readers);
        sync_next();
    }
    if (thread_id_anew() == 0) publish(block_state().ended, 1);
    sync_next();
    copy_mirrors(launch, true);
    if (block_id() == 0 && thread_id() == 0) {
        const bool failed = block_state().failure != kNoError;
        launch.mailbox->steps = block_state().done;
        launch.mailbox->error = failed ? load_acquire(&launch.barrier->error) : u32(kNoError);
        // It failed in the command before the one that would be next.
        if (failed) launch.mailbox->command = block_state().walk[1 - block_state().slot[0]].at.begun;
        fence_system();
    }
}
