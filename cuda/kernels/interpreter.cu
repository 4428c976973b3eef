// The interpreter: one cooperative launch walks the compiled commands of a chain of steps.
//
// Every block takes its share of every command. A command that reads what others of its stage write waits at a barrier of
// the whole grid, which is given up after a time: a wrong table ends in an error, never in a hang.
//
// AKUNU_OPS, a bit for each op, and AKUNU_READERS, AKUNU_KV_TYPES and AKUNU_GROUPS, lists of X(value), name what the
// commands use; nothing else is compiled.
#include "attention.cuh"
#include "matmul.cuh"
#include "rows.cuh"
#include "sampler.cuh"

namespace akunu::cuda {

// A grid's barrier, right behind one of the block; false where some block did not come in time.
struct GridBarrier {
    u32* arrived;
    u32* error;
    u64 timeout_ns;
    u32 passed = 0;

    AKUNU_DEVICE bool wait() {
        u32* failed = reinterpret_cast<u32*>(shared_memory() + kSharedHead - 16);
        ++passed;
        if (thread_id() == 0) {
            fence_device();
            arrive_release(arrived);
            const u32 all = passed * grid_blocks();
            u64 start = 0;
            u32 failure = 0;
            for (u32 spins = 1; load_acquire(arrived) < all; ++spins) {
                spin_pause();
                if (spins % 1024 != 0) continue;
                if (start == 0) start = nanoseconds();
                failure = load_acquire(error);
                if (failure == kNoError && nanoseconds() - start > timeout_ns) *error = failure = kTimedOut;
                if (failure != kNoError) break;
            }
            *failed = failure;
        }
        sync_block();
        return *failed == kNoError;
    }
};

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
AKUNU_DEVICE void run_weights(const Block& b) {
    using F = Format<kReader>;
    switch (b.command.op) {
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

AKUNU_DEVICE void norm_qkv(const Block& b) {
    const auto& p = b.params<NormQkvParams>();
    u32 before = 0;
    stage_norm(b, p.k, p.eps);
    for (u32 part = 0; part < 3; ++part) {
        if (!b.command.buffers[2 + part]) continue;
        switch (b.command.weights[part].reader) {
#define X(reader)                                        \
    case reader:                                         \
        norm_qkv_part<Format<reader>>(b, part, before);  \
        break;
            AKUNU_READERS
#undef X
        }
        before += matvec_units(b, qkv_part(p, part).n);
    }
}

template <u32 kType, u32 kGroup>
AKUNU_DEVICE void run_attention_group(const Block& b) {
    if (b.command.op == kOpAttention) {
        if constexpr (kUses<kOpAttention>) attention<kType, kGroup>(b);
    } else {
        if constexpr (kUses<kOpAttentionSplit>) attention_split<kType, kGroup>(b);
    }
}

template <u32 kType>
AKUNU_DEVICE void run_attention(const Block& b) {
    const auto& p = b.params<AttentionParams>();
    u32 room = 1;
    while (room < p.n_heads / p.n_kv_heads) room *= 2;
    switch (room) {
#define X(n) \
    case n:  \
        return run_attention_group<kType, n>(b);
        AKUNU_GROUPS
#undef X
    }
}

AKUNU_DEVICE void run_command(const Block& b) {
    switch (b.command.op) {
#define OP(name, function)                              \
    case name:                                          \
        if constexpr (kUses<name>) function(b);         \
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
            switch (b.command.kv) {
#define X(type) \
    case type:  \
        return b.command.op == kOpRopeKv ? rope_kv<type>(b) : run_attention<type>(b);
                AKUNU_KV_TYPES
#undef X
            }
            return;
        default:
            switch (b.command.weights[0].reader) {
#define X(reader) \
    case reader:  \
        return run_weights<reader>(b);
                AKUNU_READERS
#undef X
            }
    }
}

// A place in the chain: a command of a segment, in a step.
struct Place {
    u32 step = 0, segment = 0, command = 0;
    AKUNU_DEVICE bool ends_step(const Launch& launch) const {
        return command + 1 == launch.segments[segment].n_commands && segment + 1 == launch.n_segments;
    }
    AKUNU_DEVICE Place next(const Launch& launch) const {
        if (ends_step(launch)) return {step + 1, 0, 0};
        if (command + 1 == launch.segments[segment].n_commands) return {step, segment + 1, 0};
        return {step, segment, command + 1};
    }
};

// Commands come to shared memory one ahead: `fetch` before a command runs, `keep` after it. A barrier of the block must
// follow before the command is read.
struct CommandQueue {
    const Launch& launch;
    uint4 held = {};

    static AKUNU_DEVICE Command& slot(u32 i) { return reinterpret_cast<Command*>(shared_memory())[i % 2]; }
    AKUNU_DEVICE void fetch(const Place& at) {
        const Command* from = launch.segments[at.segment].commands + at.command;
        if (thread_id() < sizeof(Command) / 16) held = reinterpret_cast<const uint4*>(from)[thread_id()];
    }
    // By the first warp alone, which also applies the patches.
    AKUNU_DEVICE void keep(u32 index, u32 step) const {
        static_assert(sizeof(Command) / 16 <= 32, "a warp holds a command");
        if (warp_id() != 0) return;
        Command& c = slot(index);
        if (thread_id() < sizeof(Command) / 16) reinterpret_cast<uint4*>(&c)[thread_id()] = held;
        sync_warp();
        if (thread_id() >= c.n_patches) return;
        const u32 source = c.patch_value[thread_id()];
        c.params[c.patch_field[thread_id()]] = source == kPatchRows     ? launch.rows
                                               : source == kPatchLogits ? launch.logits
                                               : source == kPatchStep   ? step
                                                                        : launch.keys + step;
    }
};

}  // namespace akunu::cuda

extern "C" __global__ void __launch_bounds__(akunu::cuda::kThreads, 1)
    akunu_replay(const __grid_constant__ akunu::cuda::Launch launch) {
    using namespace akunu;
    using namespace akunu::cuda;
    GridBarrier barrier{launch.barrier->arrived[launch.parity], &launch.barrier->error, launch.timeout_ns};
    const bool first_thread = block_id() == 0 && thread_id() == 0;
    if (first_thread) launch.barrier->arrived[1 - launch.parity][0] = 0;
    copy_mirrors(launch, false);
    u32 done = 0, begun = 0, times = 0;
    u32 turn = 0;  // the blocks of a stage's commands follow one another
    bool in_time = true;
    CommandQueue queue{launch};
    Place at;
    queue.fetch(at);
    queue.keep(0, 0);
    for (u32 index = 0; done < launch.steps; ++index) {
        sync_block();
        // The barrier behind a step is that before the next one, too.
        const bool first = at.segment == 0 && at.command == 0;
        const bool waits = at.command == 0 || launch.times || CommandQueue::slot(index).barrier;
        if (first ? done == 0 : waits) {
            in_time = barrier.wait();
            turn = 0;
        }
        if (!in_time) break;
        const Place next = at.next(launch);
        queue.fetch(next);
        if (first_thread) {
            store_host(&launch.mailbox->command, begun);
            if (launch.times) launch.times[times++] = nanoseconds();
        }
        const u32 blocks = grid_blocks();
        run_command({CommandQueue::slot(index), (block_id() + blocks - turn % blocks) % blocks, blocks});
        turn += 32;
        queue.keep(index + 1, next.step);
        ++begun;
        if (at.ends_step(launch)) {
            // Whether the host wants an end: asked by one block, so that all agree.
            u32& halt = launch.barrier->halt[done % 2];
            if (first_thread) halt = load_host(&launch.mailbox->halt);
            sync_block();
            in_time = barrier.wait();
            if (!in_time) break;
            if (first_thread && launch.times) launch.times[times++] = nanoseconds();
            ++done;
            begun = turn = 0;
            if (load_acquire(&halt) || (launch.stop && load_acquire(launch.stop))) break;
        }
        at = next;
    }
    copy_mirrors(launch, true);
    if (first_thread) {
        launch.mailbox->steps = done;
        launch.mailbox->error = in_time ? u32(kNoError) : load_acquire(&launch.barrier->error);
        if (!in_time) launch.mailbox->command = begun;
        fence_system();
    }
}
