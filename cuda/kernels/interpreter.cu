// The interpreter: one cooperative launch walks the compiled commands of a chain of steps.
//
// Every block takes its share of every command. A command that reads what others of its stage write waits at a barrier of
// the whole grid, which is given up after a time: a wrong table ends in an error, never in a hang.
//
// AKUNU_OPS, a bit for each op, and AKUNU_READERS, AKUNU_KV_TYPES and AKUNU_GROUPS, lists of X(value), name what the
// commands use; nothing else is compiled.
#include "decode_attention.cuh"
#include "fetch.cuh"
#include "matmul.cuh"
#include "norm_qkv.cuh"
#include "row_tiles.cuh"
#include "rows.cuh"
#include "sampler.cuh"

namespace akunu::cuda {

// Copies between the host's memory and the device's, by all blocks.
AKUNU_DEVICE void copy_mirrors(const Launch& launch, bool back) {
    for (u32 s = 0; s < launch.n_segments; ++s) {
        for (u32 i = 0; i < launch.segments[s].n_mirrors; ++i) {
            const Mirror& m = launch.segments[s].mirrors[i];
            if (back && !m.back) continue;
            const uint4* from = reinterpret_cast<const uint4*>(back ? m.device : m.host);
            uint4* to = reinterpret_cast<uint4*>(back ? m.host : m.device);
            for (u64 k = u64(block_id()) * kThreads + thread_id(); k < m.bytes / 16; k += u64(grid_blocks()) * kThreads) {
                to[k] = from[k];
            }
        }
    }
}

// Whether some command has this op.
template <u32 kOp>
constexpr bool kUses = (AKUNU_OPS >> kOp & 1) != 0;

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
        default:
            if constexpr (kUses<kOpNormGateUp>) norm_gate_up<F>(b);
    }
}

// One row times weights on the tensor cores. False where the command is not one for them: the host has said so, or it
// has more rows.
AKUNU_DEVICE bool run_row(Block b) {
    const Command& c = b.command();
    if (c.splits[0] == 0) return false;
    if (c.op == kOpMatmul && b.params<MatmulParams>().rows != 1) return false;
    if (c.op == kOpGateUp && b.params<GateUpParams>().rows != 1) return false;
    const bool other = c.op == kOpNormQkv && c.weights[2].codes && c.weights[2].reader != c.weights[0].reader;
    for (u32 second = 0; second < (other ? 2 : 1); ++second) {
        switch (c.weights[second ? 2 : 0].reader) {
#define X(reader)                                                              \
    case reader:                                                               \
        if constexpr (Fragments<reader>::kTiled) row_tiles<reader>(b, second); \
        break;
            AKUNU_READERS
#undef X
        }
    }
    return true;
}

template <u32 kType, u32 kGroup>
AKUNU_DEVICE void run_attention_group(Block b) {
    if (b.command().op == kOpAttention) {
        if constexpr (kUses<kOpAttention>) attention<kType, kGroup>(b);
    } else if (b.command().op == kOpDecodeAttention) {
        if constexpr (kUses<kOpDecodeAttention>) decode_attention<kType, kGroup>(b);
    } else {
        if constexpr (kUses<kOpAttentionSplit>) attention_split<kType, kGroup>(b);
    }
}

template <u32 kType>
AKUNU_DEVICE void run_attention(Block b) {
    if (b.command().op == kOpRopeKv) {
        if constexpr (kUses<kOpRopeKv>) rope_kv<kType>(b);
        return;
    }
    const auto heads = [](const auto& p) { return p.n_heads / p.n_kv_heads; };
    const u32 group = b.command().op == kOpDecodeAttention ? heads(b.params<DecodeAttentionParams>())
                                                         : heads(b.params<AttentionParams>());
    u32 room = 1;
    while (room < group) room *= 2;
    switch (room) {
#define X(n) \
    case n:  \
        return run_attention_group<kType, n>(b);
        AKUNU_GROUPS
#undef X
    }
}

AKUNU_DEVICE void run_command(Block b) {
    if (run_row(b)) return;
    if (b.command().op != kOpDecodeAttention) b.ready();
    switch (b.command().op) {
#define OP(name, function)                      \
    case name:                                  \
        if constexpr (kUses<name>) function(b); \
        return;
        OP(kOpEmbedPosition, embed_position)
        OP(kOpRopeTable, rope_table)
        OP(kOpNorm, norm)
        OP(kOpNormAdd, norm_add)
        OP(kOpLayerNorm, layer_norm)
        OP(kOpQuantize, quantize)
        OP(kOpNormQkv, norm_qkv)
        OP(kOpGateAct, gate_act)
        OP(kOpAttentionMerge, attention_merge)
        OP(kOpKvCopy, kv_copy)
        OP(kOpArgmax, argmax)
        OP(kOpSamplePrepare, sample_prepare)
        OP(kOpSampleSelect, sample_select)
        OP(kOpLogprobs, logprobs)
        OP(kOpAccept, accept)
        OP(kOpPool, pool)
#undef OP
        case kOpRopeKv:
        case kOpAttention:
        case kOpAttentionSplit:
        case kOpDecodeAttention:
            switch (b.command().kv) {
#define X(type) \
    case type:  \
        return run_attention<type>(b);
                AKUNU_KV_TYPES
#undef X
            }
            return;
        default:
            switch (b.command().weights[0].reader) {
#define X(reader) \
    case reader:  \
        return run_weights<reader>(b);
                AKUNU_READERS
#undef X
            }
    }
}

// Fetches for the command with weights that comes next, in this segment or the one behind it.
AKUNU_DEVICE void fetch_next(const Launch& launch, const Command& command, u32 segment) {
    if (!command.fetches) return;
    u32 i = command.next_fetch;
    if (i >= launch.segments[segment].n_fetches) {
        i = 0;
        segment = segment + 1 == launch.n_segments ? 0 : segment + 1;
    }
    if (i < launch.segments[segment].n_fetches) fetch_weights(launch, launch.segments[segment].fetches[i]);
}

AKUNU_DEVICE bool ends_step(const Launch& launch, const Place& at) {
    return at.command + 1 == launch.segments[at.segment].n_commands && at.segment + 1 == launch.n_segments;
}
AKUNU_DEVICE Place place_behind(const Launch& launch, const Place& at) {
    if (ends_step(launch, at)) return {at.step + 1, 0, 0, 0};
    if (at.command + 1 == launch.segments[at.segment].n_commands) return {at.step, at.segment + 1, 0, at.begun + 1};
    return {at.step, at.segment, at.command + 1, at.begun + 1};
}

// Commands come to shared memory one ahead, by the first warp: `fetch` before a command runs, `keep` after it, which
// also applies the patches. A barrier of the block must follow before the command is read.
AKUNU_DEVICE Command& command_in(u32 slot) { return reinterpret_cast<Command*>(shared_memory())[slot]; }
AKUNU_DEVICE void fetch_command(const Launch& launch, const Place& at, u32 slot) {
    static_assert(sizeof(Command) / 16 <= 32, "a warp copies a command");
    const Command* from = launch.segments[at.segment].commands + at.command;
    if (thread_id() < sizeof(Command) / 16) {
        copy_async16(reinterpret_cast<uint4*>(&command_in(slot)) + thread_id(),
                     reinterpret_cast<const uint4*>(from) + thread_id());
    }
}
AKUNU_DEVICE void keep_command(const Launch& launch, u32 step, u32 slot) {
    if (warp_id() != 0) return;
    wait_for_copies();
    sync_warp();
    Command& c = command_in(slot);
    if (thread_id() >= c.n_patches) return;
    const u32 source = c.patch_value[thread_id()];
    c.params[c.patch_field[thread_id()]] = source == kPatchRows     ? launch.rows
                                           : source == kPatchLogits ? launch.logits
                                           : source == kPatchStep   ? step
                                                                    : launch.keys + step;
}

// By one thread: what the command in a slot is to a block, from what the command before it was.
AKUNU_DEVICE void enter(const Launch& launch, u32 slot) {
    const Walk& before = shown().walk[1 - slot];
    Walk& now = shown().walk[slot];
    now.at = before.next;
    now.next = place_behind(launch, now.at);
    // The barrier behind a step is that before the next one, too.
    const bool first = now.at.segment == 0 && now.at.command == 0;
    now.waits = first ? now.at.step == 0 : now.at.command == 0 || launch.times || command_in(slot).barrier;
    const u32 turn = first || now.waits ? 0 : before.turn;
    now.first = block_id() + (block_id() < turn ? grid_blocks() : 0) - turn;
    now.turn = turn + 32;
    while (now.turn >= grid_blocks()) now.turn -= grid_blocks();
}

}  // namespace akunu::cuda

// Nothing of the walk stays in registers while a command runs: a thread would find it on its stack, in the device's memory.
extern "C" __global__ void __launch_bounds__(akunu::cuda::kThreads, 1)
    akunu_replay(const __grid_constant__ akunu::cuda::Launch launch) {
    using namespace akunu;
    using namespace akunu::cuda;
    if (thread_id() == 0) {
        grid_barrier() = {launch.barrier->arrived[launch.parity], &launch.barrier->error, launch.timeout_ns,
                          launch.times, 0};
        shown() = {};
        shown().grid = launch.barrier;
        if (block_id() == 0) launch.barrier->arrived[1 - launch.parity][0] = 0;
    }
    copy_mirrors(launch, false);
    sync_block();
    fetch_command(launch, {}, 0);
    keep_command(launch, 0, 0);
    for (;;) {
        {
            const u32 slot = shown().slot[warp_id()];
            if (thread_id() == 0) enter(launch, slot);
            sync_block();
            const Walk& now = shown().walk[slot];
            if (now.waits) grid_barrier().arrive();
            fetch_command(launch, now.next, 1 - slot);
            // Not by a thread that waits for others: its next fence would wait for the host's memory.
            if (block_id() == 0 && thread_id() == 32) store_host(&launch.mailbox->command, now.at.begun);
            if (warp_id() == kWarps - 1) fetch_next(launch, command_in(slot), now.at.segment);
            run_command({slot});
        }
        const u32 slot = shown().slot[warp_id()];
        const Walk& now = shown().walk[slot];
        keep_command(launch, now.next.step, 1 - slot);
        if (shown().failure != kNoError) break;
        if (ends_step(launch, now.at)) {
            // Whether the host wants an end: asked by one block, so that all agree.
            u32& halt = launch.barrier->halt[now.at.step % 2];
            if (block_id() == 0 && thread_id() == 0) halt = load_host(&launch.mailbox->halt);
            sync_block();
            grid_barrier().arrive();
            grid_barrier().wait();
            if (shown().failure != kNoError) break;
            if (thread_id() == 0) shown().done = now.next.step;
            if (now.next.step == launch.steps) break;
            if (load_acquire(&halt) || (launch.stop && load_acquire(launch.stop))) break;
        }
        sync_warp();
        if (lane_id() == 0) shown().slot[warp_id()] = 1 - slot;
        sync_warp();
    }
    copy_mirrors(launch, true);
    if (block_id() == 0 && thread_id() == 0) {
        const bool failed = shown().failure != kNoError;
        launch.mailbox->steps = shown().done;
        launch.mailbox->error = failed ? load_acquire(&launch.barrier->error) : u32(kNoError);
        if (failed) launch.mailbox->command = shown().walk[shown().slot[0]].at.begun;
        fence_system();
    }
}
