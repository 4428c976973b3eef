// What the host hands to the interpreter: compiled commands, and a launch. Included by both.
#pragma once

#include "core/params.h"

// Of how many GPUs the kernels are. Those of one have nothing of what several need, and read what the host, which knows
// all of it, hands to them up to there.
#ifndef AKUNU_CARDS
#ifdef AKUNU_SHARED_BYTES
#define AKUNU_CARDS 1
#else
#define AKUNU_CARDS 4
#endif
#endif

// Whether some command has adapters. The kernels of those that have none have nothing of it.
#ifndef AKUNU_ADAPTERS
#define AKUNU_ADAPTERS (AKUNU_CARDS == 1)  // several GPUs refuse them
#endif

namespace akunu::cuda {

using u64 = unsigned long long;

// The threads of a block, one block on each multiprocessor: those that run commands, a warp that loads the weights of
// one row, and those that load the tiles of many. Registers are given to four warps at a time, so that the last three
// cost none.
constexpr u32 kThreads = 256, kLoaders = 96;
constexpr u32 kWarps = kThreads / 32;
constexpr u32 kBlockThreads = kThreads + 32 + kLoaders;

// A block's shared memory: the head, the memory of the command that runs, the ring's barriers, and its slots.
constexpr u32 kSharedHead = 2560, kRingHead = 512, kMostSlots = 16, kLeastSlots = 2;
// What depends on how much memory a block has: the bytes of a slot at most; of commands with 2 to kFewRows rows the
// bytes of all rows' inputs that are in it at a time, and the tiles of a pass (few_layout.h); and of up to kByteRows
// rows times codes the bytes of a slot, the inputs of a row that are in it at a time, the tiles of a pass, and those
// that are multiplied at once.
struct BlockSizes {
    u32 slot_bytes, few_inputs, pass_tiles;
    u32 byte_slot_bytes, byte_inputs, byte_pass_tiles, byte_tiles;
};
// Three kinds of GPU: 99 KB (RTX 30 to 50, L40S, A10, L4), 163 KB (A100), 227 KB (H100 and later).
constexpr BlockSizes block_sizes(u64 shared_bytes) {
    if (shared_bytes < 128 << 10) return {9 << 10, 32 << 10, 4, 9 << 10, 4 << 10, 8, 1};
    if (shared_bytes < 192 << 10) return {18 << 10, 64 << 10, 4, 18 << 10, 8 << 10, 16, 2};
    return {18 << 10, 64 << 10, 8, 24 << 10, 12 << 10, 16, 2};
}
// The bytes that every op may use; some use more, as the host knows.
constexpr u32 kOpBytes = 77 << 10;
static_assert(kSharedHead + kOpBytes + kRingHead + kLeastSlots * block_sizes(0).slot_bytes <= 99 << 10,
              "the smallest GPUs have room for it and for the ring");
// Rows up to which weights come through the ring. Matmuls of more than kTileOfRows that do not, and attention of that
// many, may use kManyRowsBytes.
constexpr u32 kFewRows = 64, kTileOfRows = 16, kManyRowsBytes = (96 << 10) + 512;
static_assert(kSharedHead + kManyRowsBytes <= 99 << 10, "the smallest GPUs have room for it");
// With which more of such matmuls' tiles are on their way.
constexpr u32 kMostStageBytes = (160 << 10) + 1024;
// Boxes of such a matmul: rows, and inputs of each, or of weights in tiles columns.
constexpr u32 kBoxRows = 64, kBoxInputs = 64, kBoxCols = 32;
// Parts of the inputs that such a matmul's tiles may be computed in, and the bytes of a part's sums.
constexpr u32 kMostParts = 4, kPartBytes = 256 * 128 * 4;

// Ops; program.cpp says which of the core's they are.
enum OpCode : u32 {
    kOpEmbed,
    kOpEmbedPosition,
    kOpUnfold,
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
    kOpPrepareHeads,
    kOpAttention,
    kOpAttentionSplit,
    kOpAttentionMerge,
    kOpAttentionWeights,
    kOpCopyRecords,
    kOpSpeechRules,
    kOpArgmax,
    kOpSamplePrepare,
    kOpSampleSelect,
    kOpLogprobs,
    kOpAccept,
    kOpPool,
    kOpRecur,
    kOpColumnSquares,
    kOpShortConv,
    kOpDeltaRule,
    kOpSsmScan,
    kOpGatedNorm,
    kOpRoute,
    kOpExpertsGateUp,
    kOpExpertsDown,
    kOpClusterLogits,
    kOpInsertRows,
    kOpAffine,
    kOpLatentKv,
    kOpHeadMatmul,
    kOpAddRows,
    kOpMixStreams,
    kOpSparsify,
    kOpRelativeAttention,
    kOpLoraA,
    kOpLoraB,
    kOpDecodeAttention,
    kOpNormRoute,
    kOpNormExperts,
    kOpNormSums,
    kOpLatentQueries,
    kOpLatentValues,
    kOpAllReduce,
    kOpAdvance,
    kNumOps,
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

enum KvType : u32 { kKvF16, kKvF32, kKvQ8, kKvQ4, kKvTypes };
// What `Command::kv` and templates of both are given: the type of keys and that of values.
constexpr u32 kKvPairs = kKvTypes * kKvTypes;
constexpr u32 kv_pair(u32 keys, u32 values) { return keys * kKvTypes + values; }
constexpr u32 key_type(u32 pair) { return pair / kKvTypes; }
constexpr u32 value_type(u32 pair) { return pair % kKvTypes; }

// A weight's codes, and what else its blocks have: scales, minima. A planar type's biases are its third plane.
struct WeightPlanes {
    u64 codes, extras, biases;
    u32 reader, spec;
};

// What a patch is set to; the order of PatchSource. Where a row of the step is n rows of the command, n - 1 stands in
// the bits from kPatchTimesShift on.
enum PatchValue : u32 { kPatchRows, kPatchLogits, kPatchStep, kPatchKeys };
enum PatchBits : u32 { kPatchTimesShift = 8, kPatchSourceMask = 255 };

struct alignas(16) Command {
    u32 op;
    u32 barrier;       // 1: waits for all commands before it
    u32 reads_words;   // up to how many rows it is a consumer, which waits, where there is a ring, for its producer's
                       // words, not for a barrier; 0: it is none
    u32 writes_words;  // the same of a producer: the command behind it reads its words
    u32 kv;            // kv_pair()
#if AKUNU_CARDS > 1
    unsigned short half_input;  // 1: a matmul's rows are F16
    unsigned short reduces;     // 1: a matmul through the ring whose results are those of all cards
#else
    u32 half_input;  // 1: a matmul's rows are F16
#endif
    u32 n_patches;
    u32 patch_field[3], patch_value[3];  // words of `params`, PatchValue and PatchBits
    u32 label;                           // its place in the table
    u32 streams;                         // what of its weights comes through the ring, where its rows are few
    u32 as_before;                       // 1: kOpDecodeAttention of the same rows and shape as the one before it
    u32 params[32];
    u64 buffers[12];
    WeightPlanes weights[3];
    // For copies of boxes: of a matmul's rows that are F16, and of its weights in tiles that are; 0: there is none.
    u64 input_map, weight_map;
};
static_assert(sizeof(Command) % 16 == 0 && sizeof(Command) / 16 <= kThreads, "a block loads it at once");

// Words of a command of experts behind its parameters: of each weight, how many times kExpertAlign bytes there are from
// one expert's to the next.
constexpr u32 kApartWord = 30, kExpertAlign = 256;
static_assert(sizeof(ExpertsGateUpParams) <= kApartWord * 4 && sizeof(ExpertsDownParams) <= kApartWord * 4 &&
                  sizeof(HeadMatmulParams) <= kApartWord * 4,
              "parameters end before them");

// kPrepareHeads, attention and what follows it, the merge of splits or another format, as one command, of rows of
// different sequences, or of up to `run` consecutive ones of each (decode_run). Buffers: q, k, v, table, kv, qk_norm,
// rows, pages, partials, out_f32, out_compact, sinks.
struct DecodeAttentionParams {
    u32 rows, step, keys;  // patched
    u32 n_heads, n_kv_heads, head_dim, rope_dim, style, qk_norm;
    float eps;
    u32 window, max_pages, page_words;
    float scale, softcap;
    u32 formats, run;
};
static_assert(sizeof(DecodeAttentionParams) <= sizeof(Command::params), "a command has room for it");

// kNorm, the router's matmul and kRoute as one command, of one row, and the router and the choice of a shared expert,
// whose weight is a sigmoid, too. Buffers: input, norm, out_f32, out_f16, logits, bias, choice_bias, expert_scale, ids,
// weights, shared ids, shared weights.
struct NormRouteParams {
    u32 dim;
    float eps;
    u32 formats, has_bias;
    u32 shared;  // 1: there is a shared expert, whose router is the second of the command's weights
    RouteParams route;
};
static_assert(sizeof(NormRouteParams) <= sizeof(Command::params), "a command has room for it");
// The same, and kExpertsGateUp behind it as one command, of one row. Buffers: input, norm, choice_bias, gate_bias,
// up_bias, ids, router, out_f16, weights, expert_scale, router_bias, norm_f16.
//
// A shared expert is one more choice. Then experts have no biases, and the norm is not stored: the places of their
// buffers are the shared expert's, as SharedExpertBuffers says. Its weight is 1, or the sigmoid of one more row of the
// router, which then has no bias, nor factors of the experts' own.
struct NormExpertsParams {
    ExpertsGateUpParams gate_up;
    float eps;
    u32 stores_norm;  // 1: in F16
    u32 has_bias;     // the router's
    RouteParams route;
    u32 shared;         // rows of the shared expert's gate; 0: there is none
    u32 shared_router;  // 1: one that says its weight
};
// The weights of a norm that the router has of its own, of the same input, in the place of a choice_bias; null: none.
constexpr u32 kRouterNorm = 2;
// What commands of a row's experts have besides experts: kernels have ways for what some command has.
// The last one: blocks with more rows of a router than they multiply while they stage.
enum ExpertKind : u32 { kWithShared = 1, kWithRouterNorm = 2, kWithMoreRows = 4 };
enum SharedExpertBuffers : u32 {
    kSharedGate = 3,
    kSharedUp = 4,
    kSharedWeight = 9,
    kSharedRouter = 10,
    kSharedResults = 11,
};
static_assert(sizeof(NormExpertsParams) <= kApartWord * 4, "a command has room for it");
// kExpertsDown, and in a table of one row the same of a shared expert behind it, or its kMatmul, as one more choice:
// its matrix is the second of the command's weights. Buffers behind those of kExpertsDown: its inputs, and its weight,
// which is 1 where there is none.
struct RowDownParams {
    ExpertsDownParams experts;
    u32 shared;  // inputs of the shared expert's last matrix; 0: there is none
};
constexpr u32 kSharedInputs = 6, kSharedFactor = 7;
// The end of a layer with experts as one command, of one row: kNorm of a sum in its place, kNormAdd to it of a row, and
// kNormAdd of it to the residual stream. Buffers: sum, norm, row, norm, stream, norm.
struct NormSumsParams {
    u32 dim;
    float eps[3];
    float sum_scale[2];  // of the sum, and of the stream
};
constexpr u32 kMostNormSums = 12 * kThreads;  // elements
// kLatentKv and the kHeadMatmul of queries behind it as one command, of one row, which leaves queries as they were.
// Buffers: those of kLatentKv, then what the queries become.
struct LatentQueriesParams {
    LatentKvParams kept;
    HeadMatmulParams product;
};
static_assert(sizeof(LatentQueriesParams) <= kApartWord * 4, "a command has room for it");
// kAttentionMerge of latent attention, the kHeadMatmul of values and kQuantize to F16 as one command, of one row.
// Buffers: partials, rows, out_f16.
struct LatentValuesParams {
    AttentionParams attention;
    HeadMatmulParams product;
};
static_assert(sizeof(LatentValuesParams) <= kApartWord * 4, "a command has room for it");
// A matmul, or those of q, k and v, or of gate and up, whose weights come through the ring, with what adapters add to
// each: kLoraA, kMatmul and kLoraB of every matrix as one command, with the norm before them where there is one row,
// and with kGateAct behind gate and up. The command is the one that there is without adapters, and has these besides:
// behind its parameters the words that AdaptedParams has, and behind its buffers each matrix' part of the adapters,
// rows, and choices.
struct AdaptedParams {
    u32 slot_words;
    u32 max_rank[3];  // of each matrix; 0: there is none
};
constexpr u32 kAdaptedWord = 12, kAdapterParts = 7, kAdaptedRows = 10, kAdapterChoices = 11;
static_assert(sizeof(MatmulParams) <= kAdaptedWord * 4 && sizeof(GateUpParams) <= kAdaptedWord * 4 &&
                  sizeof(NormQkvParams) <= kAdaptedWord * 4 && sizeof(NormGateUpParams) <= kAdaptedWord * 4,
              "parameters end before them");
// What A gives, of so many ranks of all matrices, is left as words: of one row's each warp's part, of more rows sums.
// Then it is in a block's memory, and behind it the numbers of the rows' adapters.
constexpr u32 kMostRankSums = 4096;  // of several rows
constexpr u32 rank_words(u32 ranks, u32 rows) { return rows == 1 ? ranks * kWarps : (rows * ranks + 1) / 2 * 2; }
constexpr u32 rank_bytes(u32 ranks, u32 rows) { return (rows * (ranks + 1) * 4 + 15) / 16 * 16; }
// Inputs of a head's weights of which a warp has two rows side by side, so that words take both.
constexpr u32 kMostPairedInputs = 16 * 32;
// Inputs that a thread of the router loads at once, four by four.
constexpr u32 kRouterInputs = 16 * kThreads;

// Weights of one type that a command reads through the ring: tiles of up to three matrices one behind the other, or of
// two in turn. Equal parts of them are the blocks'.
struct alignas(16) Stream {
    u64 at[3];
    u32 tiles[3];
    u32 pairs;  // 1: tiles[0] of each of two matrices
    u32 tile_bytes, slot_bytes;
    u32 byte_slot_bytes;  // of up to kByteRows rows, but one, of codes; 0: these are floats
    u32 rows, rows_from;  // of the command: a number, or the PatchValue that says it. Up to kFewRows take the ring
    u32 k;                // inputs of a row
    u32 split;            // of 2 to kByteRows rows: parts of the inputs, each other blocks'; 0: one
    u32 behind;           // tiles of the command's stream before this one; 0: it is the first
};
constexpr u32 kRowsGiven = ~0u;

// The word of kNormQkv and kNormGateUp that says how many rows they have: 1, or in a table of several rows up to
// kByteRows (cuda/host/joined_rows.cpp).
constexpr u32 kNormedRowsWord = kAdaptedWord + sizeof(AdaptedParams) / 4;
// And that of kOpMatmul of 2 to kByteRows rows that says in how many parts its inputs are dealt to blocks; 0: in one.
constexpr u32 kSplitWord = kNormedRowsWord + 1;
static_assert(kSplitWord < sizeof(Command::params) / 4, "a command has room for both");

// A buffer that host and device both use: the device works on its own copy, which the launch brings up to date first,
// and of which it gives back what commands wrote.
struct Mirror {
    u64 device, host;  // the host's memory as the device sees it
    u64 bytes;         // a multiple of 16
    u32 back;          // 1: commands write it
    u32 unused;
};

// A segment of a launch's chain.
struct LaunchSegment {
    const Command* commands;
    const Mirror* mirrors;
    const Stream* streams;  // of the commands that have some, in their order
    u32 n_commands, n_mirrors, n_streams;
    u32 rows, logits, step, keys;  // ReplayArgs, the first time
};
constexpr u32 kLaunchSegments = 20;

// Between host and device during a launch, in host memory that the device sees.
struct Mailbox {
    u32 halt;     // set by the host: ends the chain behind the step that runs
    u32 steps;    // done, at the end
    u32 error;    // LaunchError
    u32 command;  // that began last, counted over the segments' commands
};
enum LaunchError : u32 { kNoError, kTimedOut, kSharedElsewhere };

constexpr u32 kMaxTickets = 512;
// Counters of what else blocks share: that all have experts' results, heads of states. A sequence has one for each
// head.
constexpr u32 kMaxGroups = 1 << 16, kMostStateHeads = 128;
// Experts of a layer, or, where no row's sum is made of them, clusters; those of a row; and choices that are sorted at
// a time.
constexpr u32 kMostExperts = 1024, kMostClusters = 2 * kMostExperts, kMostChosen = 32, kMostTileChoices = 8192;

// Mailbox words of eight bytes: a value, or two in F16, and the number of the command that wrote it, the producer. The
// next command, the consumer, polls the words themselves until they carry that number. Commands use so many buffers in
// rotation: while one is being read the next is being written, and since attention waits for only some of its
// producer's words, so may be the one after that.
constexpr u32 kWordBuffers = 4, kMostWords = 32768;
// Behind them, in rotation, too, those of tiles' parts (byte_rows.cuh).
constexpr u32 kSplitWords = 1 << 16, kAllWords = kWordBuffers * (kMostWords + kSplitWords);
// More that all blocks read cost more than a barrier.
constexpr u32 kMostWordsOfAll = 8192;

// Memory of the device alone. A launch uses one of the counters and leaves the other at 0 for the next.
struct Barrier {
    u32 arrived[2][32];  // in lines of their own
    u32 error;
    u32 halt[2];  // what one block read of the mailbox, of even steps and odd ones
    // Tickets of the blocks that share a result: the last one joins its parts. They are 0 between commands.
    u32 tickets[kMaxTickets];
    u64 best[kMaxTickets];
    // Tickets of tiles in parts, one for each two blocks.
    u32 parts[kMaxTickets];
    u32 groups[kMaxGroups];
};

#if AKUNU_CARDS > 1
// GPUs that a model is spread over: how many, which of them this one is, and where each one's words are, in its own
// memory. kCardEnds of these tell that a step ends, those of even steps and of odd ones; behind them are, of two sums
// in turn, `apart` words of each card.
constexpr u32 kMostCards = 4, kCardEnds = 2 * kMostCards;
struct Cards {
    unsigned short count, mine;  // 0: the model is on one
    u32 apart;
    u64* words[kMostCards];
};
#endif

// What every block keeps of a launch.
struct Launch {
    const LaunchSegment* segments;  // the launch's, as the device sees them
    u32 n_segments;
    u32 steps, more_steps, more_keys;  // Chain
    u32 parity;                        // which counter of the barrier
    u32 ring, slots, slot_bytes;       // where the ring begins, and its slots
    u32 window;                        // those that are on their way, at most
    u32 ahead;                         // slots behind the ring's that are fetched to the second-level cache; 0: none
    u32 cycles_of_kb;                  // that fetching a KB takes a block
    u64 timeout_ns;                    // that a block waits for others, at most
    Barrier* barrier;
    u64* words;  // [kWordBuffers][kMostWords], then [kWordBuffers][kSplitWords]
    u32 number;  // of the command before the first: no other launch has the same numbers
    u64 parts;   // where sums of tiles in parts are, kPartBytes for each block, and behind them results of choices
    Mailbox* mailbox;
    const u32* stop;  // Control::stop, on the device; null where the replay has none
    u64* times;       // null, or the time when each command began, and that of the end
#if AKUNU_CARDS > 1
    Cards cards;
#endif
};
// What a kernel is given. It stays there: a block's memory has no room for so many segments.
struct LaunchParams {
    LaunchSegment segments[kLaunchSegments];
    Launch launch;
};
static_assert(sizeof(LaunchParams) <= 4 << 10, "a kernel is given so much");

}  // namespace akunu::cuda
