// Every op, in one table: its name, its parameters' fields, its buffers and how it uses them, and what it must move and
// compute. Names, views for Python, barriers, costs and the kernel lab follow from these rows; a device adds a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace akunu {

enum class Op : std::uint8_t {
    kEmbed,
    kEmbedPosition,
    kUnfold,
    kRopeTable,
    kNorm,
    kNormAdd,
    kGatedNorm,
    kLayerNorm,
    kQuantize,
    kMatmul,
    kGateUp,
    kNormQkv,
    kNormGateUp,
    kGateAct,
    kPrepareHeads,
    kAttention,
    kAttentionSplit,
    kAttentionMerge,
    kAttentionWeights,
    kCopyRecords,
    kSpeechRules,
    kArgmax,
    kSamplePrepare,
    kSampleSelect,
    kLogprobs,
    kAccept,
    kPool,
    kColumnSquares,
    kRecur,
    kShortConv,
    kDeltaRule,
    kSsmScan,
    kRoute,
    kExpertsGateUp,
    kExpertsDown,
    kClusterLogits,
    kInsertRows,
    kAffine,
    kLatentKv,
    kHeadMatmul,
    kLoraA,
    kLoraB,
    kAddRows,
    kMixStreams,
    kSparsify,
    kRelativeAttention,
    kAllReduce,
    kAdvance,
    kCount,
};

enum class Access : std::uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };

// What a buffer holds.
enum class BufferKind : std::uint8_t {
    kActivation,  // what commands of a step leave for one another
    kWeight,      // a matrix of the model's, of a type that the command names; see BufferInfo
    kScales,      // of the weight before it, where its type is planar
    kBiases,      // of the weight before it, where its type is planar and has some
    kConstant,    // another tensor of the model's, which no command writes: a norm's weight, a bias, a table
    kCache,       // keys and values, in pages
    kState,       // what a slot keeps from step to step: tokens, settings, a recurrence
    kIndex,       // which slots, positions, pages or rows a step has
};

// A buffer of an op, at its place in DispatchCmd::buffers.
struct BufferInfo {
    std::string_view name;
    Access access = Access::kRead;
    bool optional = false;
    BufferKind kind = BufferKind::kActivation;
    // A weight names the parameters that are its rows and columns, and the activation whose rows are multiplied with it
    // as they are; it names none where the op computes something else of them first.
    std::string_view rows = {}, cols = {}, input = {};
    // Of one that a command may add to: the parameter that says whether it does; where it is 0, the buffer is written.
    std::string_view adds = {};
};

// A 4-byte field of an op's parameters.
struct FieldInfo {
    std::string_view name;
    std::uint8_t offset = 0;
    bool is_float = false;
};

struct DispatchCmd;

// Bytes and FLOPs that a command must move and do: fixed + rows·per_row + sequences·per_sequence + (keys that any row
// sees)·per_key + (keys seen, summed over rows)·per_row_key; partial results; and, where each
// row chooses some of a layer's experts, the weights of every expert that any row has chosen (see chosen_experts).
struct Cost {
    double weights = 0, kv_per_key = 0;  // of the bytes: what must be read whatever the kernels are
    double bytes = 0, bytes_per_row = 0, bytes_per_sequence = 0, bytes_per_key = 0;
    double bytes_per_expert = 0;            // weights
    std::uint32_t experts = 0, chosen = 0;  // of so many, so many for each row
    // min(keys·per_key, max(enough, keys·per_key_of_many), most), and nothing of up to `unsplit_keys`.
    double partials_per_key = 0, partials_per_key_of_many = 0, partials_most = 0;
    double partials_enough = std::numeric_limits<double>::max();
    std::uint32_t unsplit_keys = 0;
    double flops = 0, flops_per_row = 0, flops_per_row_key = 0;
    std::uint32_t window = 0;
    bool bidirectional = false;  // a row sees keys on both sides of it
};

struct OpInfo {
    std::string_view name;
    std::size_t param_bytes = 0;
    std::span<const FieldInfo> fields;
    std::span<const BufferInfo> buffers;
    Cost (*cost)(const DispatchCmd&) = nullptr;
};

const OpInfo& op_info(Op op);
inline std::string_view op_name(Op op) { return op_info(op).name; }

// The op of that name. Throws InvalidArgumentError.
Op op_named(std::string_view name);

// Whether the op has a buffer that holds this.
bool has_buffer(const OpInfo& op, BufferKind kind);

// The field of that name, or null.
const FieldInfo* find_field(const OpInfo& op, std::string_view name);

}  // namespace akunu
