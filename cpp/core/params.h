// Parameters of every op, as plain C structs of 4-byte fields, and what a step's rows are: shared by the host and by
// device code.
//
// A field marked `patched` is written by the replay (see Patch in dispatch.h); all others are fixed when the table is
// built. Strides are derived from the sizes, never passed.
#pragma once

#ifndef __METAL_VERSION__
#include <cstdint>
namespace akunu {
using u32 = std::uint32_t;
#else
using u32 = uint;
#endif

// Bits of `formats`: which representations of an activation a kernel writes.
enum ActFormatBits : u32 {
    kActF32 = 1,
    kActQ8 = 2,  // int8 in blocks of 32, see core/q8.h
    kActF16 = 4,
};

// One row of a step: a token of some sequence. Rows of one sequence stand together, in the order of their positions.
struct Row {
    u32 slot;      // the sequence's: which row of the histories, page tables and sampler states is its own
    u32 position;  // in the first step of a chain; each later step's is one more
};

// Keys and values lie in pages of so many positions. A page table has the pages of a slot's positions, in order.
enum KvPage : u32 { kPagePositions = 32 };

// A sequence's state, where blocks have one besides pages, advances with every row and does not go back. Rows of a step
// that may be refused do not advance it: what it takes of them is kept in the sequence's record, for so many positions.
enum Stash : u32 { kStashRows = 32 };

// Where a step finds and leaves the state of a slot's sequence: it is that before position `from`, all rows since are
// stashed; rows before `to` advance it, later ones are stashed. In later steps of a chain both are one more.
struct StateSpan {
    u32 from;
    u32 to;
};

enum Activation : u32 {
    kActSilu = 0,
    kActGeluTanh = 1,
    kActGelu = 2,
    kActTanh = 3,
    kActRelu = 4,
    kActSigmoid = 5,
    kActRelu2 = 6,
    kActNone = 7  // of experts: x stays as it is
};
enum RopeStyle : u32 { kRopeInterleaved = 0, kRopeHalf = 1 };
// What becomes of a sequence's rows: their mean, the first, or the last one.
enum Pooling : u32 { kPoolMean = 0, kPoolFirst = 1, kPoolLast = 2 };

struct EmbedParams {
    u32 rows;  // patched
    u32 step;  // patched
    u32 dim;
    u32 vocab;           // of the table; other tokens have its first row
    u32 history_stride;  // tokens of a slot's history
    float scale;
    u32 accumulate;  // 1: the rows are added to what is there
};

// A row's vectors of its position and of its kind are added, where the model has such tables.
struct EmbedPositionParams {
    u32 rows;  // patched
    u32 step;  // patched
    u32 dim;
    u32 positions;  // of the table; 0: none
    u32 kinds;
};

// The inputs of a convolution as rows, for a matmul: row r has x[r·stride + tap - (taps - 1) / 2] for every tap, zeros
// where that is outside of x [length, channels].
struct UnfoldParams {
    u32 rows;  // patched
    u32 channels;
    u32 length;
    u32 taps;
    u32 stride;
    u32 formats;
};

struct RopeTableParams {
    u32 rows;      // patched
    u32 step;      // patched
    u32 half_dim;  // rope_dim / 2
    float scale;   // attention factor of YaRN/longrope, multiplies cos and sin
    // 1 + temperature·ln(1 + position / temperature_length), rounded down, multiplies them, too; 0: there is none.
    float temperature;
    u32 temperature_length;
    u32 axes;  // 1: a row has kPositionAxes positions of its own, and a frequency turns by the one that `axes` names
};

// Positions of a row where one is not enough: of a picture's rows their time, row and column.
enum PositionAxes : u32 { kPositionAxes = 3 };

// Rows that an encoder made, in the place of what was looked up for their tokens, or added to it:
// hidden[r] (+)= encoded[sources[r]][offset, offset + dim). Rows without a source, and those of later steps of a chain,
// stay as they are.
enum RowSource : u32 { kNoSource = 0xFFFFFFFF };
struct InsertRowsParams {
    u32 rows;  // patched
    u32 step;  // patched
    u32 dim;
    u32 width;  // floats from one encoded row to the next
    u32 offset;
    u32 accumulate;
};

// y = min(max(x·scale + bias, low), high), of each column; without a scale it is 1, without a bias 0.
struct AffineParams {
    u32 rows;  // patched
    u32 dim;
    u32 has_scale;
    u32 has_bias;
    float low;
    float high;
};

struct NormParams {
    u32 rows;  // patched
    u32 dim;
    float eps;
    u32 formats;
    u32 gather;       // 1: row i of the output is row rows[i] of the input
    float sum_scale;  // of kNormAdd: a factor of the sum
};

// y (+)= scale·x, or, where they are `matched`, scale·x·√(mean(like²) / max(mean(x²), floor)).
struct AddRowsParams {
    u32 rows;  // patched
    u32 dim;
    u32 accumulate;
    u32 matched;
    float scale;
    float floor;
};

// Several devices share a model, and each has made x of its part of the weights: y (+)= Σ x, in the devices' order, so
// that all have the same bits. Where they are to `gather`, rows of y are instead those of x side by
// side. On one device y (+)= x.
struct AllReduceParams {
    u32 rows;  // patched
    u32 dim;   // of x
    u32 accumulate;
    u32 gather;
    u32 x_stride, y_stride;  // floats between two rows; x may be where y is
};

// A row's streams S_0, S_1, ... of a residual stream that has several (Baykal et al., "Alternating Updates for
// Efficient Transformers", 2023), each of `dim` elements and `stride` floats behind the one before it, are mixed by t =
// tanh(gates): S_j += Σ_i S_i·Σ_k weights[j][i][k]·t_k; hidden = S_active.
// Where they `correct` what a layer has made of the active one, with d = hidden - S_active it is
// S_j += d·(1 + Σ_k weights[j][k]·t_k); hidden = S_active, times `scales` where the model has them.
struct MixStreamsParams {
    u32 rows;  // patched
    u32 dim;
    u32 streams;  // 1..kMostStreams
    u32 stride;
    u32 active;
    u32 correct;
    u32 scaled;  // there are `scales`
};
enum StreamLimit : u32 { kMostStreams = 8 };

// x = max(0, x - (mean + deviations·standard deviation)), of each row.
struct SparsifyParams {
    u32 rows;  // patched
    u32 n;
    float deviations;
};

// out = rms_norm(x·silu(gate))·weight, the norm over each group of `dim` elements; weight has all groups'.
struct GatedNormParams {
    u32 rows;  // patched
    u32 groups;
    u32 dim;
    float eps;
    u32 formats;
};

struct LayerNormParams {
    u32 rows;  // patched
    u32 dim;
    float eps;
    u32 formats;
    u32 has_bias;
    u32 gather;  // 1: row i of the output is row rows[i] of the input
};

struct QuantizeParams {
    u32 rows;  // patched
    u32 dim;
    u32 formats;
};

struct MatmulParams {
    u32 rows;  // patched
    u32 n;
    u32 k;
    u32 y_stride;    // floats between two output rows
    u32 accumulate;  // 1: y += x·Wᵀ
    u32 has_bias;
    float softcap;   // > 0: y = cap·tanh(y / cap)
    u32 activation;  // > 0: 1 + the Activation of y, where traits().activated_matmuls
    u32 format;      // of y: kActF32, or, there and without `accumulate`, kActF16, or kActQ8 of whole blocks
};

struct GateUpParams {
    u32 rows;  // patched
    u32 n;
    u32 k;
    u32 activation;
    u32 formats;
};

// One row: norm(x) times three weights, v's of any type that DeviceTraits::mixed_qkv allows, or without the last, or
// the first alone; the norm is not stored.
struct NormQkvParams {
    u32 n_q;
    u32 n_kv;
    u32 k;
    u32 k_offset;  // floats from the output's start to where k goes
    u32 v_offset;
    u32 has_bias;  // [n_q + 2·n_kv] floats: q, k, v
    float eps;
};

// One row: act(gate·norm(x)) * up·norm(x).
struct NormGateUpParams {
    u32 n;
    u32 k;
    u32 activation;
    u32 formats;
    float eps;
};

struct GateActParams {
    u32 rows;  // patched
    u32 n;
    u32 activation;
    u32 formats;
    u32 gated;      // 0: act(gate) alone
    u32 up_stride;  // floats between two rows of up
};

struct PrepareHeadsParams {
    u32 rows;  // patched
    u32 step;  // patched
    u32 n_heads;
    u32 n_kv_heads;
    u32 head_dim;
    u32 rope_dim;
    u32 style;
    u32 qk_norm;
    float eps;
    u32 max_pages;   // of a page table
    u32 page_words;  // 4-byte words from one page of the cache to the next
};

struct AttentionParams {
    u32 rows;  // patched
    u32 step;  // patched
    u32 keys;  // patched: that some row sees, at most
    u32 n_heads;
    u32 n_kv_heads;
    u32 head_dim;
    u32 window;      // 0: all earlier keys; w: keys in (p - w, p], or, bidirectional, in (p - w, p + w)
    u32 max_pages;   // of a page table
    u32 page_words;  // 4-byte words from one page of the cache to the next
    float scale;
    float softcap;  // > 0: s = cap·tanh(s / cap) after scaling
    u32 formats;
    u32 bidirectional;  // 1: a row sees all rows of its sequence, which are in this step
    u32 fixed_keys;     // n > 0: every row sees the first n keys of its slot, wherever it is
    u32 row_ends;       // 1: row r also sees the keys before ends[r], which are those of this step; ends never fall
    // n > 0: a value is the first n elements of its key, and pages have one row for each position, for all heads.
    u32 latent;
};

// Elements of a value.
inline u32 value_dim(u32 head_dim, u32 latent) { return latent ? latent : head_dim; }

// Attention of a row to all rows of its sequence, which are in this step, by how far they are from it. Of a query at
// position i and a key at j, with c = columns[clamp(j - i, -reach, reach) + reach], the score is
//   scale·(q·k + q·distance_keys[c] + k·distance_queries[c]) + bias[c][head]
// (the second and third term: DeBERTa, 2020; the last: T5, 2019). Rows of the tables are as long as those of q.
struct RelativeAttentionParams {
    u32 rows;  // patched
    u32 n_heads;
    u32 head_dim;
    u32 reach;
    float scale;
    u32 has_bias;
    u32 has_keys;
    u32 has_queries;
};

// What multi-head latent attention keeps of each row (DeepSeek-V2, 2024): c / rms(c) · norm, of `latent` elements, and
// behind it a key of `rope_dim`, rotated; `kv` rows are both. The last `rope_dim` elements of each query of `nope_dim`
// + rope_dim are rotated too, and, with a temperature, all of them become larger as RopeTableParams says.
struct LatentKvParams {
    u32 rows;  // patched
    u32 step;  // patched
    u32 n_heads;
    u32 nope_dim;
    u32 rope_dim;
    u32 latent;
    u32 style;
    float eps;
    float temperature;
    u32 temperature_length;  // 0: there is none
    u32 max_pages;           // of a page table
    u32 page_words;          // 4-byte words from one page of the cache to the next
};

// For each row and head: y = x·Wᵀ with the weights of the head, [heads][n][k], and behind it the `copied` elements that
// follow the head's k of x. Rows of x are [heads][x_stride], those of y [heads][n + copied].
struct HeadMatmulParams {
    u32 rows;  // patched
    u32 heads;
    u32 n;
    u32 k;
    u32 x_stride;
    u32 copied;
};

// A linear layer's part of adapters: y += scale·B·(A·x). Adapters lie in slots of equal sizes, and each slot has a part
// of every such layer: an AdapterHead, halves A [max_rank, k], and halves B, which is turned, [max_rank, n]. A row's
// adapter is that of its sequence.
struct LoraParams {
    u32 rows;  // patched
    u32 n;     // of B: elements of a row of y
    u32 k;     // of A: elements of a row of x
    u32 max_rank;
    u32 slot_words;  // 4-byte words from an adapter's part to the next one's
    u32 y_stride;    // floats between two rows of y
    u32 gather;      // 1: rows are those that `logit_rows` names
    u32 format;      // of x
};

// Which adapter a sequence has, and how much of it.
struct AdapterChoice {
    u32 number;  // of its slot, + 1; 0: none
    float scale;
};

struct AdapterHead {
    u32 rank;     // 0: this adapter leaves the layer as it is
    float scale;  // of the products of what A and B hold
};
// An enum, since Metal has no constants at file scope.
enum AdapterSizes : u32 { kAdapterHeadBytes = 64 };

constexpr u32 lora_a_bytes(u32 max_rank, u32 k) { return (max_rank * k * 2 + 63) / 64 * 64; }
constexpr u32 lora_b_bytes(u32 max_rank, u32 n) { return (max_rank * n * 2 + 63) / 64 * 64; }

// The weights that some heads give to the keys: out[i][row][key], of the i-th of those heads.
struct AttentionWeightsParams {
    u32 rows;  // patched
    u32 n_heads;
    u32 n_kv_heads;
    u32 head_dim;
    u32 max_pages;
    u32 page_words;
    float scale;
    u32 fixed_keys;
    u32 chosen;    // heads
    u32 out_rows;  // rows that `out` has room for, of each of them
};

// Pairs of records, such as pages or states: the first is copied to the second.
struct CopyRecordsParams {
    u32 rows;  // patched: pairs
    u32 record_words;
};

// A gated recurrence of each channel, minGRU (Feng et al., "Were RNNs All We Needed?", 2024): z = sigmoid(gate),
// s += z·(x - s), out = s. A record of a sequence has s [dim], and x and the gate of its stashed rows
// [kStashRows][2][dim].
struct RecurParams {
    u32 rows;  // patched
    u32 step;  // patched
    u32 dim;
    u32 formats;
    u32 state_words;  // 4-byte words from one sequence's record to the next
};

// A causal convolution of each channel along a sequence's rows: y = act(bias + Σ_t w[t]·x[position - (taps - 1) + t]),
// zeros before position 0. `weights` are [taps][channels], then the bias. A record has the inputs of the last
// positions, [position % (taps - 1 + kStashRows)][channels]: those of rows that were refused are overwritten.
//
// Where `gated`, rows have three parts of so many channels, b, c and v: x is b·v, and y is c times what it is else.
struct ShortConvParams {
    u32 rows;  // patched
    u32 step;  // patched
    u32 channels;
    u32 taps;  // 2..8
    u32 has_bias;
    u32 activation;   // 0: none; else 1 + the Activation of y
    u32 state_words;  // 4-byte words from one sequence's record to the next
    u32 gated;
};

// Rows of a chunk of a sequence, counted from position 0, whose products with the state are computed together.
enum Chunk : u32 { kChunkRows = 32 };

// The gated delta rule of each value head (Yang et al., "Gated Delta Networks", 2024): with q and k of length 1,
// beta = sigmoid(b), decay = exp(a_log·softplus(a + dt_bias)), where a_log is -exp(A_log),
//   S = decay·S; S += k·(beta·(v - kᵀS)); o = scale·qᵀS; out = rms_norm(o)·norm·silu(z)
// `qkv` rows are q and k of all key heads, then v of all value heads; `gates` rows are b, then a, of all value heads;
// `constants` are a_log and dt_bias of all value heads, then `norm`.
struct DeltaRuleParams {
    u32 rows;  // patched
    u32 step;  // patched
    u32 key_heads;
    u32 value_heads;
    u32 key_dim;
    u32 value_dim;
    u32 grouped;  // 1: neighbouring value heads share a key head, h / (value_heads / key_heads); 0: h % key_heads
    u32 formats;
    u32 state_words;  // 4-byte words from one sequence's record to the next
    float scale;
    float l2_eps;  // under the root of the sum of squares of q and of k
    float norm_eps;
};

// A record of the delta rule holds S as it is at the last border of chunks before the row that is next, and what the
// rows since would add to it; those may be of two chunks, where the last ones may be refused. In floats:
//   S [value_heads][key_dim][width], width: value_dim rounded up to 16
//   what a row writes into S, beta·(v - kᵀS) [value_heads][chunk % 2][kChunkRows][width]
//   decays [value_heads][chunk % 2][kChunkRows]
//   k [key_heads][chunk % 2][key_dim][kChunkRows]
struct DeltaRecord {
    u32 width, written, decays, keys, words;
};

inline DeltaRecord delta_record(u32 key_heads, u32 value_heads, u32 key_dim, u32 value_dim) {
    DeltaRecord at;
    at.width = (value_dim + 15) / 16 * 16;
    at.written = value_heads * key_dim * at.width;
    at.decays = at.written + value_heads * 2 * kChunkRows * at.width;
    at.keys = at.decays + value_heads * 2 * kChunkRows;
    at.words = at.keys + key_heads * 2 * key_dim * kChunkRows;
    return at;
}

// The state of Mamba-2 (Dao and Gu, "Transformers are SSMs", 2024), of each head: with dt = softplus(dt + dt_bias),
//   S = exp(a·dt)·S + B·(dt·x)ᵀ; y = Cᵀ·S + d·x
// `xbc` rows are x of all heads, then B and C of all groups, whose heads are neighbours; `dt` rows have one of each
// head; `constants` are a, dt_bias and d of all heads. A record is a delta rule's, with dt·x for what a row writes and
// B for k, and with blocks of neighbouring heads in the key heads' place: each has its group's B for itself, so that
// those who compute blocks share nothing.
struct SsmScanParams {
    u32 rows;  // patched
    u32 step;  // patched
    u32 groups;
    u32 blocks;  // a multiple of groups
    u32 heads;   // a multiple of blocks
    u32 state_dim;
    u32 head_dim;
    u32 state_words;  // 4-byte words from one sequence's record to the next
};

// What the logits of a router become: a softmax of all of them, each one's sigmoid, a softmax of the chosen ones alone,
// or each one's sqrt(softplus).
enum Gating : u32 { kGateSoftmax = 0, kGateSigmoid = 1, kGateSoftmaxChosen = 2, kGateSqrtSoftplus = 3 };

// The experts of each row, best first, and their weights. Scores are the gates, plus a bias that counts for the choice
// alone. Where there are groups of experts, those of the groups with the best sums of their `group_top` best scores
// are chosen from. Of equal scores that of the lower number is better.
//
// weight = gate · scale · (the expert's own scale) / max(sum of the chosen gates + sum_eps, sum_min), the division
// where `renormalise` is 1.
struct RouteParams {
    u32 rows;  // patched
    u32 experts;
    u32 chosen;
    u32 gating;
    u32 groups;       // 0: none
    u32 groups_used;  // of them
    u32 group_top;
    u32 renormalise;
    float sum_eps;
    float sum_min;
    float scale;
    u32 has_choice_bias;
    u32 has_expert_scale;
};

// For each row and each of its experts: act(gate·x) * up·x, or act(gate·x) alone where it is not `gated`, to
// row · chosen + place of the expert. Weights are [experts][n][k], biases [experts][n].
struct ExpertsGateUpParams {
    u32 rows;  // patched
    u32 experts;
    u32 chosen;
    u32 n;
    u32 k;
    u32 activation;
    u32 formats;
    u32 has_bias;
    float limit;      // > 0: gate is at most, and up within so much
    float sharpness;  // other than 1: the activation is x·sigmoid(sharpness·x)
    float up_offset;  // is added to up
    u32 gated;
};

// y (+)= the sum over a row's experts, by their numbers, of weight · (down·x + bias). x has a row for each row and each
// of its experts, the weights are [experts][n][k], biases [experts][n].
struct ExpertsDownParams {
    u32 rows;  // patched
    u32 experts;
    u32 chosen;
    u32 n;
    u32 k;
    u32 accumulate;
    u32 has_bias;
};
// y[order[id·n + j]] = x[choice][j] of each chosen cluster, whose number `id` is; -infinity of all other tokens.
struct ClusterLogitsParams {
    u32 rows;  // patched
    u32 vocab;
    u32 chosen;
    u32 n;  // tokens of a cluster
};
enum ClusterSizes : u32 { kClusterColumns = 4096 };  // of a row that a GPU's block takes

// Rows are sequences, each by its last row; the first of its rows is at position 0.
struct PoolParams {
    u32 rows;  // patched
    u32 dim;
    u32 pooling;
};

// The sum over all rows of each column's squares, of an activation in `format`. With experts, sums are of the rows that
// chose each of them, [experts, dim], and behind them are the numbers of these rows.
struct ColumnSquaresParams {
    u32 rows;  // patched
    u32 dim;
    u32 format;
    u32 experts;  // 0: none
    u32 chosen;   // of each row
    u32 apart;    // the activation has a row for each choice
};

// Why a sequence writes no more: as many tokens as it may have, or one that ends it.
enum StopReason : u32 { kStoppedAtLimit = 1, kStoppedAtEnd };

// Rows are those that logits were asked for.
struct SampleParams {
    u32 rows;  // patched
    u32 step;  // patched
    u32 vocab;
    u32 history_stride;
};

// Rows of a step that verified drafts, of each sequence as many: they become those of the next one. See ChainRecord
// in core/step_state.h.
struct AdvanceParams {
    u32 rows;       // patched
    u32 has_axes;   // 1: rows have kPositionAxes positions of their own
    u32 has_spans;  // 1: blocks have a state
};

#ifndef __METAL_VERSION__
}  // namespace akunu
#endif
