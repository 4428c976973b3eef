#include "cuda/host/program.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/sampling.h"
#include "cuda/host/formats.h"
#include "cuda/host/pack.h"
#include "cuda/host/schedule.h"
#include "cuda/host/words.h"
#include "cuda/kernels/few_layout.h"
#include "cuda/kernels/kv_layout.h"

namespace akunu::cuda {

namespace {

// The ops that the interpreter knows.
constexpr std::pair<Op, OpCode> kOpCodes[] = {
    {Op::kEmbed, kOpEmbed},
    {Op::kEmbedPosition, kOpEmbedPosition},
    {Op::kUnfold, kOpUnfold},
    {Op::kRopeTable, kOpRopeTable},
    {Op::kNorm, kOpNorm},
    {Op::kNormAdd, kOpNormAdd},
    {Op::kLayerNorm, kOpLayerNorm},
    {Op::kQuantize, kOpQuantize},
    {Op::kMatmul, kOpMatmul},
    {Op::kGateUp, kOpGateUp},
    {Op::kNormQkv, kOpNormQkv},
    {Op::kNormGateUp, kOpNormGateUp},
    {Op::kGateAct, kOpGateAct},
    {Op::kRopeKv, kOpRopeKv},
    {Op::kAttention, kOpAttention},
    {Op::kAttentionSplit, kOpAttentionSplit},
    {Op::kAttentionMerge, kOpAttentionMerge},
    {Op::kAttentionWeights, kOpAttentionWeights},
    {Op::kKvCopy, kOpKvCopy},
    {Op::kSpeechRules, kOpSpeechRules},
    {Op::kArgmax, kOpArgmax},
    {Op::kSamplePrepare, kOpSamplePrepare},
    {Op::kSampleSelect, kOpSampleSelect},
    {Op::kLogprobs, kOpLogprobs},
    {Op::kAccept, kOpAccept},
    {Op::kPool, kOpPool},
    {Op::kRecur, kOpRecur},
    {Op::kColumnSquares, kOpColumnSquares},
};

static_assert(sizeof(Command::params) >= kMaxParamBytes && std::extent_v<decltype(Command::buffers)> >= kMaxBuffers);
static_assert(std::extent_v<decltype(Command::patch_field)> == kMaxPatches);
static_assert(u32(PatchSource::kLogits) == u32(kPatchLogits) && u32(PatchSource::kKeys) == u32(kPatchKeys));
// What cuda/kernels/tokens.cuh and speech.cuh declare anew.
static_assert(sizeof(SamplerState) == 80 * 4 && offsetof(SamplerState, end_ids) == 16 * 4);
static_assert(sizeof(SlotState) == 12 && sizeof(Control) == 12 && sizeof(LogprobRecord) == 41 * 4);
static_assert(sizeof(SpeechRules) == 16);

[[noreturn]] void refuse(const DispatchCmd& c, const std::string& why) {
    throw UnsupportedError("no CUDA kernel for " + std::string(op_name(c.op)) + ": " + why);
}

u32 kv_type(const DispatchCmd& c) {
    switch (c.kv) {
        case DType::F16:
            return kKvF16;
        case DType::F32:
            return kKvF32;
        case DType::Q8_0:
            return kKvQ8;
        default:
            refuse(c, "KV cache type '" + std::string(dtype_info(c.kv).name) + "'");
    }
}

}  // namespace

std::optional<OpCode> op_code(Op op) {
    const auto* code = std::ranges::find(kOpCodes, op, &std::pair<Op, OpCode>::first);
    return code == std::end(kOpCodes) ? std::nullopt : std::optional(code->second);
}

std::vector<WeightPlace> weights_in(const DispatchCmd& c) {
    switch (c.op) {
        case Op::kEmbed: {
            const auto p = c.params_as<EmbedParams>();
            return {{1, p.vocab, p.dim}};
        }
        case Op::kMatmul: {
            const auto p = c.params_as<MatmulParams>();
            return {{1, p.n, p.k}};
        }
        case Op::kGateUp: {
            const auto p = c.params_as<GateUpParams>();
            return {{1, p.n, p.k}, {2, p.n, p.k}};
        }
        case Op::kNormGateUp: {
            const auto p = c.params_as<NormGateUpParams>();
            return {{2, p.n, p.k}, {3, p.n, p.k}};
        }
        case Op::kNormQkv: {
            const auto p = c.params_as<NormQkvParams>();
            std::vector<WeightPlace> all{{2, p.n_q, p.k}};
            for (const std::size_t i : {3u, 4u}) {
                if (c.buffers[i]) all.push_back({i, p.n_kv, p.k});
            }
            return all;
        }
        default:
            return {};
    }
}

namespace {

constexpr std::uint64_t parts_of(std::uint64_t n, std::uint64_t of) { return (n + of - 1) / of; }

// The bytes of a block's memory that row_tiles (cuda/kernels/row_tiles.cuh) takes, by the weights that need the most.
std::uint64_t tile_op_bytes(const Command& c, std::uint64_t cols) {
    constexpr std::uint64_t kFixed = 64, kSums = 2 * std::uint64_t{kThreads / kTileRows} * kWarps * kTileRows * 4;
    u32 parts = 1;
    for (const WeightPlanes& w : c.weights) parts = std::max(parts, w.codes ? input_parts(w.reader) : 1);
    return kFixed + cols * (2 * parts) + cols / 4 + cols / 32 + kSums;
}
// Those that stage_input (cuda/kernels/matvec.cuh) takes.
std::uint64_t staged_bytes(std::uint64_t cols) { return parts_of(cols, 32) * 36 * sizeof(float); }
// What is left of a block's memory for an op, where the ring has its least slots.
std::uint64_t op_room(const Geometry& g) {
    const std::uint64_t taken = kSharedHead + kRingHead + kLeastSlots * std::uint64_t{kSlotBytes};
    return g.shared_bytes > taken ? g.shared_bytes - taken : 0;
}

// The weights of a command that has few rows come through the ring, where their types lie in tiles.
void set_streams(const DispatchCmd& c, const std::vector<WeightPlace>& places, Command& out, const Geometry& g) {
    if (c.op == Op::kEmbed || places.empty()) return;
    const auto aligned = [&](std::size_t buffer) { return out.buffers[buffer] % 16 == 0; };
    const bool normed = c.op == Op::kNormQkv || c.op == Op::kNormGateUp;
    if (!aligned(0) || (normed ? !aligned(1) : !out.half_input) || tile_op_bytes(out, places[0].cols) > op_room(g))
        return;
    for (const WeightPlanes& w : out.weights) {
        if (w.codes && !in_tiles(w.reader, places[0].cols)) return;
    }
    out.streams =
        c.op == Op::kNormQkv && out.weights[2].codes && out.weights[2].reader != out.weights[0].reader ? 2 : 1;
}

void set_weights(const DispatchCmd& c, Command& out, const Geometry& g) {
    const auto places = weights_in(c);
    for (std::size_t i = 0; i < places.size(); ++i) {
        const WeightPlace& w = places[i];
        const DType dtype = i + 1 == places.size() ? c.last_weight : c.weight;
        const auto reader = reader_of(dtype);
        if (!reader) refuse(c, "weights of type '" + std::string(dtype_info(dtype).name) + "'");
        const bool planar = dtype_info(dtype).planar();
        if (planar && c.op != Op::kEmbed && c.op != Op::kMatmul) refuse(c, "weights of a planar type");
        if (dtype != c.weight && std::ranges::find(kMixedQkv, MixedQkv{c.weight, dtype}) == std::end(kMixedQkv)) {
            refuse(c, std::string(dtype_info(c.weight).name) + " beside " + std::string(dtype_info(dtype).name));
        }
        if (c.op != Op::kEmbed && staged_bytes(w.cols) + kSharedHead > g.shared_bytes) {
            refuse(c, "rows of " + std::to_string(w.cols) + " inputs do not fit a block's memory of " +
                          std::to_string(g.shared_bytes) + " bytes");
        }
        const Binding& at = c.buffers[w.buffer];
        WeightPlanes& planes = out.weights[c.op == Op::kNormQkv ? w.buffer - 2 : i];
        planes.reader = reader->reader;
        planes.spec = reader->spec;
        planes.codes = reinterpret_cast<u64>(at.as());
        planes.extras =
            planar ? reinterpret_cast<u64>(c.buffers[4].as()) : planes.codes + plane_offset(dtype, w.rows, w.cols);
        if (planar) planes.biases = out.buffers[5];  // 0: the type has none
    }
    set_streams(c, places, out, g);
}

void check_heads(const DispatchCmd& c, u32 heads, u32 kv_heads, u32 head_dim) {
    const u32 group = kv_heads ? heads / kv_heads : 0;
    if (head_dim == 0 || head_dim > kMaxHeadDim || group == 0 || group > kMaxGroup || heads % kv_heads != 0) {
        refuse(c, std::to_string(heads) + " heads of " + std::to_string(head_dim) + " over " +
                      std::to_string(kv_heads) + " KV heads; at most " + std::to_string(kMaxHeadDim) + " and " +
                      std::to_string(kMaxGroup) + " for each are known");
    }
}

Command compiled(const DispatchCmd& c, const Geometry& geometry) {
    Command out{};
    const auto code = op_code(c.op);
    if (!code) throw UnsupportedError("no CUDA kernel for " + std::string(op_name(c.op)));
    out.op = *code;
    out.barrier = c.barrier;
    out.kv = kv_type(c);
    out.half_input = c.input_format == kActF16;
    out.n_patches = c.n_patches;
    for (std::size_t i = 0; i < c.n_patches; ++i) {
        out.patch_field[i] = c.patches[i].offset / 4;
        out.patch_value[i] = static_cast<u32>(c.patches[i].source);
    }
    std::memcpy(out.params, c.params.data(), c.param_bytes);
    for (std::size_t i = 0; i < c.n_buffers; ++i) {
        if (c.buffers[i]) out.buffers[i] = reinterpret_cast<u64>(c.buffers[i].as());
    }
    set_weights(c, out, geometry);
    if (c.op == Op::kRopeKv) {
        const auto p = c.params_as<RopeKvParams>();
        check_heads(c, p.n_heads ? p.n_heads : p.n_kv_heads, p.n_kv_heads, p.head_dim);
    } else if (c.op == Op::kAttention || c.op == Op::kAttentionSplit || c.op == Op::kAttentionMerge) {
        const auto p = c.params_as<AttentionParams>();
        check_heads(c, p.n_heads, p.n_kv_heads, p.head_dim);
        if (c.buffers[c.op == Op::kAttentionMerge ? 4 : 5]) {
            throw UnsupportedError(std::string(op_name(c.op)) + ": CUDA has no attention with sinks");
        }
    } else if (c.op == Op::kAttentionWeights) {
        const auto p = c.params_as<AttentionWeightsParams>();
        check_heads(c, p.n_heads, p.n_kv_heads, p.head_dim);
    }
    return out;
}

bool uses_kv_type(u32 op) {
    return op == kOpRopeKv || op == kOpAttention || op == kOpAttentionSplit || op == kOpAttentionWeights ||
           op == kOpDecodeAttention;
}

// RoPE, attention and what follows it as one command, where these three stand there.
std::optional<Command> decode_attention(std::span<const DispatchCmd> c, std::span<const Command> commands, u32 max_rows,
                                        u32 blocks) {
    if (c.size() < 3 || c[0].op != Op::kRopeKv) return {};
    const bool split = c[1].op == Op::kAttentionSplit && c[2].op == Op::kAttentionMerge;
    if (!split && (c[1].op != Op::kAttention || c[2].op != Op::kQuantize)) return {};
    const auto rope = c[0].params_as<RopeKvParams>();
    const auto attention = c[1].params_as<AttentionParams>();
    const Command &r = commands[0], &a = commands[1], &m = commands[2];
    if (!r.buffers[0] || r.buffers[0] != a.buffers[0] || r.buffers[4] != a.buffers[1] || a.buffers[2] != m.buffers[0] ||
        attention.fixed_keys || attention.bidirectional || rope.head_dim % 4 != 0) {
        return {};
    }
    // Where keys are split, units are no more than blocks.
    const std::uint64_t units = std::min(blocks, kMaxSplits * max_rows * rope.n_kv_heads);
    const std::uint64_t bytes = units * (rope.n_heads / rope.n_kv_heads) * (rope.head_dim + 2) * sizeof(float);
    const Binding& partials = c[1].buffers[2];
    if (blocks > kMaxTickets || bytes > partials.end() - partials.offset) return {};
    Command out{};
    out.op = kOpDecodeAttention;
    out.barrier = r.barrier;
    out.kv = a.kv;
    out.n_patches = 3;
    for (u32 i = 0; i < 3; ++i) out.patch_field[i] = i;
    out.patch_value[0] = kPatchRows;
    out.patch_value[1] = kPatchStep;
    out.patch_value[2] = kPatchKeys;
    out.label = a.label;
    const DecodeAttentionParams p{
        .rows = 0,
        .step = 0,
        .keys = 0,
        .n_heads = rope.n_heads,
        .n_kv_heads = rope.n_kv_heads,
        .head_dim = rope.head_dim,
        .rope_dim = rope.rope_dim,
        .style = rope.style,
        .qk_norm = rope.qk_norm,
        .eps = rope.eps,
        .window = attention.window,
        .max_pages = rope.max_pages,
        .page_words = rope.page_words,
        .scale = attention.scale,
        .softcap = attention.softcap,
        .formats = split ? c[2].params_as<AttentionParams>().formats : c[2].params_as<QuantizeParams>().formats};
    std::memcpy(out.params, &p, sizeof p);
    std::copy_n(r.buffers, 8, out.buffers);
    out.buffers[8] = a.buffers[2];
    out.buffers[9] = m.buffers[1];
    out.buffers[10] = m.buffers[2];
    return out;
}

}  // namespace

bool same_shape(const Command& a, const Command& b) {
    const auto& p = reinterpret_cast<const DecodeAttentionParams&>(a.params);
    const auto& q = reinterpret_cast<const DecodeAttentionParams&>(b.params);
    return a.kv == b.kv && a.buffers[6] == b.buffers[6] && a.buffers[7] == b.buffers[7] && p.window == q.window &&
           p.n_heads == q.n_heads && p.n_kv_heads == q.n_kv_heads && p.head_dim == q.head_dim;
}

namespace {

template <typename Names>
std::string list(const char* name, const std::set<u32>& values, Names&& text) {
    std::string out = std::string("#define ") + name;
    for (const u32 v : values) out += " X(" + text(v) + ")";
    return out + "\n";
}

}  // namespace

void Needs::add(const Needs& o) {
    ops.insert(o.ops.begin(), o.ops.end());
    readers.insert(o.readers.begin(), o.readers.end());
    kv_types.insert(o.kv_types.begin(), o.kv_types.end());
    groups.insert(o.groups.begin(), o.groups.end());
    decode_kinds.insert(o.decode_kinds.begin(), o.decode_kinds.end());
}

bool Needs::covers(const Needs& o) const {
    return std::ranges::includes(ops, o.ops) && std::ranges::includes(readers, o.readers) &&
           std::ranges::includes(kv_types, o.kv_types) && std::ranges::includes(groups, o.groups) &&
           std::ranges::includes(decode_kinds, o.decode_kinds);
}

std::string Needs::definitions() const {
    const auto number = [](u32 v) { return std::to_string(v); };
    std::uint64_t mask = 0;
    for (const u32 op : ops) mask |= std::uint64_t{1} << op;
    return "#define AKUNU_OPS " + std::to_string(mask) + "ull\n" + list("AKUNU_READERS", readers, number) +
           list("AKUNU_KV_TYPES", kv_types, number) + list("AKUNU_GROUPS", groups, number) +
           list("AKUNU_DECODE_KINDS", decode_kinds, number);
}

Needs needs_of(std::span<const Command> commands) {
    Needs n;
    for (const Command& c : commands) {
        n.ops.insert(c.op);
        for (const WeightPlanes& w : c.weights) {
            if (w.codes) n.readers.insert(w.reader);
        }
        if (!uses_kv_type(c.op)) continue;
        n.kv_types.insert(c.kv);
        if (c.op == kOpRopeKv || c.op == kOpAttentionWeights) continue;
        if (c.op == kOpDecodeAttention) {
            const auto& p = reinterpret_cast<const DecodeAttentionParams&>(c.params);
            n.decode_kinds.insert(decode_kind(c.kv, p.head_dim));
        } else {
            const auto& p = reinterpret_cast<const AttentionParams&>(c.params);
            n.groups.insert(std::bit_ceil(p.n_heads / p.n_kv_heads));
        }
    }
    // Those that one model uses sooner or later, so that they are compiled together.
    const auto together = [&](std::initializer_list<u32> ops) {
        if (std::ranges::any_of(ops, [&](u32 op) { return n.ops.contains(op); })) n.ops.insert(ops);
    };
    together({kOpArgmax, kOpSamplePrepare, kOpSampleSelect, kOpLogprobs, kOpAccept});
    together({kOpRopeKv, kOpKvCopy});
    together({kOpUnfold, kOpAttentionWeights, kOpSpeechRules});
    return n;
}

std::vector<Command> compile_commands(const DispatchTable& table, const Geometry& geometry) {
    std::vector<Command> out;
    for (const DispatchCmd& c : table.commands) {
        out.push_back(compiled(c, geometry));
        out.back().label = static_cast<u32>(out.size() - 1);
    }
    return out;
}

std::vector<Command> fused(const DispatchTable& table, std::span<const Command> commands, u32 blocks) {
    const bool of_texts = table.max_rows == 1 || table.phase == "batch";  // those of prompts are of one
    std::vector<Command> out;
    for (std::size_t i = 0; i < commands.size(); ++i) {
        const auto one = of_texts ? decode_attention(std::span(table.commands).subspan(i), commands.subspan(i),
                                                     table.max_rows, blocks)
                                  : std::nullopt;
        out.push_back(one ? *one : commands[i]);
        if (one) i += 2;
    }
    const Command* before = nullptr;
    for (Command& c : out) {
        if (c.op != kOpDecodeAttention) continue;
        c.as_before = before && same_shape(c, *before);
        before = &c;
    }
    if (table.max_rows == 1) set_words(out);
    return out;
}

namespace {

// Of a command's weights of one type, those from `first` on and before `end`.
Stream stream_of(const DispatchCmd& c, const Command& command, std::size_t first, std::size_t end) {
    Stream s{};
    const auto places = weights_in(c);
    const u32 reader = command.weights[first].reader;
    std::size_t n = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::size_t weight = c.op == Op::kNormQkv ? places[i].buffer - 2 : i;
        if (weight < first || weight >= end) continue;
        s.at[n] = command.weights[weight].codes;
        s.tiles[n++] = static_cast<u32>(parts_of(places[i].rows, kTileRows));
    }
    s.pairs = c.op == Op::kGateUp || c.op == Op::kNormGateUp;
    s.tile_bytes = static_cast<u32>(tile_bytes(reader, places[0].cols));
    s.slot_bytes = tile_layout(reader).slot_units() * tile_layout(reader).unit_bytes();
    s.rows = 1;
    s.rows_from = kRowsGiven;
    s.k = static_cast<u32>(places[0].cols);
    const auto take_rows = [&](std::uint32_t rows, std::size_t offset) {
        s.rows = rows;
        for (u32 i = 0; i < command.n_patches; ++i) {
            if (command.patch_field[i] == offset / 4) s.rows_from = command.patch_value[i];
        }
    };
    if (c.op == Op::kMatmul) take_rows(c.params_as<MatmulParams>().rows, offsetof(MatmulParams, rows));
    if (c.op == Op::kGateUp) take_rows(c.params_as<GateUpParams>().rows, offsetof(GateUpParams, rows));
    return s;
}

}  // namespace

std::vector<Stream> streams_of(const DispatchTable& table, std::span<const Command> commands) {
    std::vector<Stream> out;
    for (std::size_t i = 0; i < commands.size(); ++i) {
        const std::size_t all = std::size(commands[i].weights);
        if (commands[i].streams != 0) {
            out.push_back(stream_of(table.commands[i], commands[i], 0, commands[i].streams == 2 ? all - 1 : all));
        }
        if (commands[i].streams == 2) out.push_back(stream_of(table.commands[i], commands[i], all - 1, all));
    }
    return out;
}

Schedules compile_schedules(const DispatchTable& table, const Geometry& geometry) {
    Schedules s;
    s.plain = compile_commands(table, geometry);
    s.fused = fused(table, s.plain, geometry.blocks);
    s.streams = streams_of(table, s.plain);
    check_schedule(table, s.plain, s.streams);
    check_schedule(table, s.fused, s.streams);
    return s;
}

void note_merged(DispatchTable& table, std::span<const Command> fused) {
    for (DispatchCmd& c : table.commands) c.merged = true;
    for (const Command& c : fused) table.commands[c.label].merged = false;
}

namespace {

// The rows of a command in a launch that has so many; 1 of one that has no such number.
u32 rows_of(const DispatchCmd& from, const Command& c, const ReplayArgs& args) {
    const FieldInfo* field = find_field(op_info(from.op), "rows");
    if (!field) return 1;
    for (u32 i = 0; i < c.n_patches; ++i) {
        if (c.patch_field[i] == field->offset / 4) return c.patch_value[i] == kPatchRows ? args.rows : args.logits;
    }
    return c.params[field->offset / 4];
}

// Tiles that a block has of a command at most, those of a pair counted as two.
std::uint64_t tiles_of_block(const Stream& s, u32 blocks) {
    return s.pairs ? 2 * parts_of(s.tiles[0], blocks)
                   : parts_of(std::uint64_t{s.tiles[0]} + s.tiles[1] + s.tiles[2], blocks);
}

}  // namespace

OpMemory memory_of(const DispatchTable& table, const Schedules& schedules, const ReplayArgs& args, u32 blocks) {
    OpMemory most{kOpBytes, 16, false, 0, 0};
    const auto take = [&](std::uint64_t bytes) { most.bytes = std::max(most.bytes, bytes); };
    const Stream* stream = schedules.streams.data();
    for (std::size_t i = 0; i < table.commands.size(); ++i) {
        const DispatchCmd& from = table.commands[i];
        const Command& c = schedules.plain[i];
        const u32 rows = rows_of(from, c, args);
        const bool few = c.streams != 0 && rows <= kFewRows;
        if (from.op != Op::kEmbed) {
            for (const WeightPlace& w : weights_in(from)) {
                if (!few) take(staged_bytes(w.cols));
                if (few && rows == 1) take(tile_op_bytes(c, w.cols));
            }
        }
        const bool tiles = (from.op == Op::kMatmul || from.op == Op::kGateUp) && !few && rows > kTileOfRows;
        const bool runs =
            from.op == Op::kAttention && (rows >= kTileOfRows || from.params_as<AttentionParams>().bidirectional);
        if (tiles || runs) take(kManyRowsBytes);
        most.stages |= tiles;
        most.streaming += few && rows == 1;
        for (u32 k = 0; k < c.streams; ++k, ++stream) {
            if (!few) continue;
            if (rows == 1) most.streamed += tiles_of_block(*stream, 1) * stream->tile_bytes;
            std::uint64_t slot = stream->slot_bytes;
            if (rows > 1) {
                const u32 chunk = few_chunk(rows, stream->k);
                const std::uint64_t pass = std::uint64_t{few_pass(chunk, stream->k, stream->pairs)} << stream->pairs;
                take(few_bytes(static_cast<u32>(std::min(pass, tiles_of_block(*stream, blocks)))));
                slot = std::min(slot,
                                std::uint64_t{stream->tile_bytes} / (stream->k / kStepInputs) * (chunk / kStepInputs));
            }
            most.slot_bytes = std::max(most.slot_bytes, slot);
        }
    }
    return most;
}

std::vector<Mirror> mirrors_of(const DispatchTable& table) {
    std::vector<Mirror> out;
    for (const DispatchCmd& c : table.commands) {
        const auto buffers = op_info(c.op).buffers;
        for (std::size_t i = 0; i < c.n_buffers; ++i) {
            if (!c.buffers[i]) continue;
            const Allocation& a = Memory::allocation(c.buffers[i].buffer);
            if (!a.host) continue;
            auto found = std::ranges::find(out, a.device, &Mirror::device);
            if (found == out.end()) found = out.insert(found, Mirror{a.device, a.host_seen, a.bytes, 0, 0});
            if (buffers[i].access != Access::kRead) found->back = 1;
        }
    }
    return out;
}

CommandList::CommandList(Device& device, std::vector<Command> commands)
    : commands_(std::move(commands)),
      needs_(std::make_shared<const Needs>(needs_of(commands_))),
      buffer_(device, std::max<std::size_t>(commands_.size() * sizeof(Command), 16), MemoryKind::kDevice) {
    device.upload(buffer_.at(), std::as_bytes(std::span(commands_)));
}

namespace {

template <typename T>
DeviceBuffer uploaded(Device& device, std::span<const T> values) {
    DeviceBuffer out(device, std::max<std::size_t>(values.size_bytes(), 16), MemoryKind::kDevice);
    device.upload(out.at(), std::as_bytes(values));
    return out;
}

}  // namespace

CudaProgram::CudaProgram(DispatchTable t, Device& device, Schedules s, DeviceBuffer box_maps, u32 blocks)
    : Program(std::move(t)),
      plain_(device, s.plain),
      fused_(device, s.fused),
      streams_(uploaded<Stream>(device, s.streams)),
      box_maps_(std::move(box_maps)),
      schedules_(std::move(s)),
      blocks_(blocks) {
    note_merged(table, fused_.commands());
    const auto mirrors = mirrors_of(table);
    mirrors_ = uploaded<Mirror>(device, mirrors);
    n_mirrors_ = static_cast<u32>(mirrors.size());
}

Segment CudaProgram::segment(const ReplayArgs& args) const {
    const CommandList& of = list(args);
    const auto commands = of.commands().first(std::min<std::size_t>(args.commands, of.commands().size()));
    u32 streams = 0;
    for (const Command& c : commands) streams += c.streams;
    return {.commands = of.at(),
            .mirrors = mirrors_.at().as<const Mirror>(),
            .streams = streams_.at().as<const Stream>(),
            .n_commands = static_cast<u32>(commands.size()),
            .n_mirrors = n_mirrors_,
            .n_streams = streams};
}

}  // namespace akunu::cuda
