// What the host hands to the interpreter: compiled commands, and a launch. Included by both.
#pragma once

#include "core/params.h"

namespace akunu::cuda {

using u64 = unsigned long long;

// Of every block, one on each multiprocessor: so few that no weights on their way must leave the registers.
constexpr u32 kThreads = 256;
constexpr u32 kWarps = kThreads / 32;

// Ops; program.cpp says which of the core's they are.
enum OpCode : u32 {
    kOpEmbed,
    kOpEmbedPosition,
    kOpRopeTable,
    kOpNorm,
    kOpNormAdd,
    kOpLayerNorm,
    kOpQuantize,
    kOpMatmul,
    kOpGateUp,
    kOpNormQkv,
    kOpNormGateUp,
    kOpGateAct,
    kOpRopeKv,
    kOpAttention,
    kOpAttentionSplit,
    kOpAttentionMerge,
    kOpKvCopy,
    kOpArgmax,
    kOpSamplePrepare,
    kOpSampleSelect,
    kOpLogprobs,
    kOpAccept,
    kOpPool,
    kOpDecodeAttention,
};

// How weights are read. Planar types of one kind share a reader, whose `spec` says the rest.
enum Reader : u32 {
    kReadF32,
    kReadF16,
    kReadBf16,
    kReadQ4_0,
    kReadQ4_1,
    kReadQ5_0,
    kReadQ5_1,
    kReadQ8_0,
    kReadQ2_K,
    kReadQ3_K,
    kReadQ4_K,
    kReadQ5_K,
    kReadQ6_K,
    kReadIq4Nl,
    kReadIq4Xs,
    kReadMxfp4,
    kReadAffine,      // spec: bits, group, type of scales and biases
    kReadFloatCodes,  // spec: bits of a code, elements of a scale, type of scales
    kReaders,
};
enum ScaleType : u32 { kScaleF32, kScaleF16, kScaleBf16, kScaleE8M0, kScaleE4M3 };
constexpr u32 reader_spec(u32 bits, u32 group, u32 scale) { return bits | group << 8 | scale << 16; }

enum KvType : u32 { kKvF16, kKvF32, kKvQ8, kKvTypes };

// A weight's codes, and what else its blocks have: scales, minima. A planar type's biases are its third plane.
struct WeightPlanes {
    u64 codes, extras, biases;
    u32 reader, spec;
    u32 code_units, extra_units;  // of 16 bytes, that are fetched ahead
};

// What a patch takes; the order of PatchSource.
enum PatchValue : u32 { kPatchRows, kPatchLogits, kPatchStep, kPatchKeys };

struct alignas(16) Command {
    u32 op;
    u32 barrier;     // 1: waits for all commands before it
    u32 kv;          // KvType
    u32 half_input;  // 1: a matmul's rows are F16
    u32 n_patches;
    u32 patch_field[3], patch_value[3];  // words of `params`, PatchValue
    u32 label;                           // its place in the table
    u32 splits[2];   // warps that share a row of weights; [1] of the last weights, where their type is another
    u32 fetches;     // 1: it reads weights
    u32 next_fetch;  // the entry of the next command that does
    u32 params[16];
    u64 buffers[12];
    WeightPlanes weights[3];
};
static_assert(sizeof(Command) % 16 == 0 && sizeof(Command) / 16 <= kThreads, "a block loads it at once");

// kRopeKv, kAttentionSplit and kAttentionMerge of one row as one command. Buffers: q, k, v, table, kv, qk_norm, rows,
// pages, partials, out_f32, out_compact.
struct DecodeAttentionParams {
    u32 step;  // patched
    u32 n_heads, n_kv_heads, head_dim, rope_dim, style, qk_norm;
    float eps;
    u32 window, max_pages, page_words;
    float scale, softcap;
    u32 formats;
};
static_assert(sizeof(DecodeAttentionParams) <= sizeof(Command::params), "a command has room for it");

// What a command reads of weights: ranges of units of 16 bytes, each dealt to the blocks in equal parts.
struct alignas(16) Fetch {
    u64 at[6];
    u32 units[6];
    u32 unused[2];
};

// A buffer that host and device both use: the device works on its own copy, which the launch brings up to date first,
// and of which it gives back what commands wrote.
struct Mirror {
    u64 device, host;  // the host's memory as the device sees it
    u64 bytes;         // a multiple of 16
    u32 back;          // 1: commands write it
    u32 unused;
};

struct Segment {
    const Command* commands;
    const Mirror* mirrors;
    const Fetch* fetches;  // of the commands that have weights, in their order
    u32 n_commands, n_mirrors, n_fetches;
};
constexpr u32 kMaxSegments = 4;

// Between host and device during a launch, in host memory that the device sees.
struct Mailbox {
    u32 halt;     // set by the host: ends the chain behind the step that runs
    u32 steps;    // done, at the end
    u32 error;    // LaunchError
    u32 command;  // that began last, counted over the segments' commands
};
enum LaunchError : u32 { kNoError, kTimedOut };

constexpr u32 kMaxTickets = 512;

// Of the device alone. A launch uses one of the counters and leaves the other at 0 for the next.
struct Barrier {
    u32 arrived[2][32];  // in lines of their own
    u32 error;
    u32 halt[2];  // what one block read of the mailbox, of even steps and odd ones
    // Of the blocks that share a result: the last one joins its parts. 0 between commands.
    u32 tickets[kMaxTickets];
    u64 best;
};

struct Launch {
    Segment segments[kMaxSegments];
    u32 n_segments;
    u32 rows, logits, steps, keys;  // ReplayArgs
    u32 parity;                     // which counter of the barrier
    u32 window;                     // units of a range that a block fetches ahead, at most
    u64 timeout_ns;                 // that a block waits for others, at most
    Barrier* barrier;
    Mailbox* mailbox;
    const u32* stop;  // Control::stop, on the device; null where the replay has none
    u64* times;       // null, or the time when each command began, and that of the end
};

}  // namespace akunu::cuda
