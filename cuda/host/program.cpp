#include "cuda/host/program.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/sampling.h"
#include "cuda/host/pack.h"
#include "cuda/kernels/kv_layout.h"

namespace akunu::cuda {

namespace {

// The ops that the interpreter knows.
constexpr std::pair<Op, OpCode> kOpCodes[] = {
    {Op::kEmbed, kOpEmbed},
    {Op::kEmbedPosition, kOpEmbedPosition},
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
    {Op::kKvCopy, kOpKvCopy},
    {Op::kArgmax, kOpArgmax},
    {Op::kSamplePrepare, kOpSamplePrepare},
    {Op::kSampleSelect, kOpSampleSelect},
    {Op::kLogprobs, kOpLogprobs},
    {Op::kAccept, kOpAccept},
    {Op::kPool, kOpPool},
};

static_assert(u32(PatchSource::kLogits) == u32(kPatchLogits) && u32(PatchSource::kKeys) == u32(kPatchKeys));
// What cuda/kernels/tokens.cuh declares anew.
static_assert(sizeof(SamplerState) == 80 * 4 && offsetof(SamplerState, end_ids) == 16 * 4);
static_assert(sizeof(SlotState) == 12 && sizeof(Control) == 12 && sizeof(LogprobRecord) == 41 * 4);

template <typename P>
P params_of(const DispatchCmd& c) {
    P p;
    std::memcpy(&p, c.params.data(), sizeof p);
    return p;
}

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

// Where a command's weights are among its buffers, and how large.
struct WeightPlace {
    std::size_t buffer;
    std::uint64_t rows, cols;
};
std::vector<WeightPlace> weights_in(const DispatchCmd& c) {
    switch (c.op) {
        case Op::kEmbed: {
            const auto p = params_of<EmbedParams>(c);
            return {{1, p.vocab, p.dim}};
        }
        case Op::kMatmul: {
            const auto p = params_of<MatmulParams>(c);
            return {{1, p.n, p.k}};
        }
        case Op::kGateUp: {
            const auto p = params_of<GateUpParams>(c);
            return {{1, p.n, p.k}, {2, p.n, p.k}};
        }
        case Op::kNormGateUp: {
            const auto p = params_of<NormGateUpParams>(c);
            return {{2, p.n, p.k}, {3, p.n, p.k}};
        }
        case Op::kNormQkv: {
            const auto p = params_of<NormQkvParams>(c);
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

// Whether the tensor cores take one row of such inputs times weights of this type: see cuda/kernels/fragments.cuh.
bool tiled(u32 reader, std::uint64_t cols) {
    constexpr u32 kTiled[] = {kReadF16, kReadBf16, kReadQ4_0, kReadQ8_0, kReadQ4_K, kReadQ6_K};
    return cols % 128 == 0 && std::ranges::find(kTiled, reader) != std::end(kTiled);
}

constexpr std::uint64_t parts_of(std::uint64_t n, std::uint64_t of) { return (n + of - 1) / of; }

// The bytes of a block's memory that row_tiles (cuda/kernels/row_tiles.cuh) takes, of at most so many tiles.
std::uint64_t tile_bytes(std::uint64_t cols, std::uint64_t tiles, u32 splits) {
    constexpr std::uint64_t kParts = 3, kFixed = 2048;
    return kFixed + cols * (2 * kParts) + cols / 4 + cols / 32 + tiles * (splits + 1) * 16 * 4;
}

// Warps that share a row of so many inputs: those with which a block's warps have least to do one after the other. 0
// where a block's memory is too small.
u32 splits_for(std::uint64_t cols, std::uint64_t tiles, const Geometry& g) {
    const std::uint64_t steps = cols / 128, own = parts_of(tiles, g.blocks);
    constexpr std::uint64_t kEnd = 2;  // steps that the end of a tile is worth
    const auto rounds = [&](u32 splits) { return (parts_of(steps, splits) + kEnd) * parts_of(own, kWarps / splits); };
    u32 best = 0;
    for (u32 splits = 1; splits <= kWarps && splits <= steps; splits *= 2) {
        if (tile_bytes(cols, own, splits) > g.shared_bytes) break;
        if (best == 0 || rounds(splits) < rounds(best)) best = splits;
    }
    return best;
}

void set_splits(const DispatchCmd& c, const std::vector<WeightPlace>& places, Command& out, const Geometry& g) {
    if (c.op == Op::kEmbed || places.empty()) return;
    const bool pairs = c.op == Op::kGateUp || c.op == Op::kNormGateUp, mixed = c.last_weight != c.weight;
    const auto aligned = [&](std::size_t buffer) { return out.buffers[buffer] % 16 == 0; };
    const bool normed = c.op == Op::kNormQkv || c.op == Op::kNormGateUp;
    if (!aligned(0) || (normed && !aligned(1))) return;
    std::uint64_t tiles[2] = {};
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::uint64_t rows = pairs ? 8 : 16;
        if (!tiled(out.weights[c.op == Op::kNormQkv ? places[i].buffer - 2 : i].reader, places[i].cols)) return;
        tiles[mixed && i + 1 == places.size()] += (places[i].rows + rows - 1) / rows;
    }
    if (pairs) tiles[0] /= 2;
    const std::uint64_t cols = places[0].cols;
    u32 splits[2];
    for (int i = 0; i < 2; ++i) {
        splits[i] = splits_for(cols, tiles[i], g);
        if (splits[i] == 0) return;
    }
    out.splits[0] = splits[0];
    out.splits[1] = splits[1];
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
        const std::uint64_t staged = (w.cols + 31) / 32 * 36 * sizeof(float) + 1024;
        if (c.op != Op::kEmbed && staged > g.shared_bytes) {
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
        if (planar) planes.biases = reinterpret_cast<u64>(c.buffers[5].as());
        if (c.op != Op::kEmbed && !planar) {
            planes.code_units = static_cast<u32>(plane_offset(dtype, w.rows, w.cols) / 16);
            planes.extra_units =
                static_cast<u32>((packed_bytes(dtype, w.rows, w.cols) - plane_offset(dtype, w.rows, w.cols)) / 16);
            out.fetches = 1;
        }
    }
    set_splits(c, places, out, g);
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
    const auto* code = std::ranges::find(kOpCodes, c.op, &std::pair<Op, OpCode>::first);
    if (code == std::end(kOpCodes)) throw UnsupportedError("no CUDA kernel for " + std::string(op_name(c.op)));
    out.op = code->second;
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
        const auto p = params_of<RopeKvParams>(c);
        check_heads(c, p.n_heads, p.n_kv_heads, p.head_dim);
    } else if (c.op == Op::kAttention || c.op == Op::kAttentionSplit || c.op == Op::kAttentionMerge) {
        const auto p = params_of<AttentionParams>(c);
        check_heads(c, p.n_heads, p.n_kv_heads, p.head_dim);
    }
    return out;
}

bool uses_kv_type(u32 op) {
    return op == kOpRopeKv || op == kOpAttention || op == kOpAttentionSplit || op == kOpDecodeAttention;
}

// One row's RoPE, attention and the merge of its splits as one command, where these three stand there.
std::optional<Command> decode_attention(std::span<const DispatchCmd> c, std::span<const Command> commands) {
    if (c.size() < 3 || c[0].op != Op::kRopeKv || c[1].op != Op::kAttentionSplit || c[2].op != Op::kAttentionMerge) {
        return {};
    }
    const auto rope = params_of<RopeKvParams>(c[0]);
    const auto attention = params_of<AttentionParams>(c[1]);
    const Command &r = commands[0], &a = commands[1], &m = commands[2];
    if (!r.buffers[0] || r.buffers[0] != a.buffers[0] || r.buffers[4] != a.buffers[1] || attention.fixed_keys ||
        attention.bidirectional || rope.n_heads > kMaxTickets || rope.head_dim % 4 != 0) {
        return {};
    }
    Command out{};
    out.op = kOpDecodeAttention;
    out.barrier = r.barrier;
    out.kv = a.kv;
    out.n_patches = 1;
    out.patch_field[0] = 0;
    out.patch_value[0] = kPatchStep;
    out.label = a.label;
    const DecodeAttentionParams p{.step = 0,
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
                                  .formats = params_of<AttentionParams>(c[2]).formats};
    std::memcpy(out.params, &p, sizeof p);
    std::copy_n(r.buffers, 8, out.buffers);
    out.buffers[8] = a.buffers[2];
    out.buffers[9] = m.buffers[1];
    out.buffers[10] = m.buffers[2];
    return out;
}

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
}

bool Needs::covers(const Needs& o) const {
    return std::ranges::includes(ops, o.ops) && std::ranges::includes(readers, o.readers) &&
           std::ranges::includes(kv_types, o.kv_types) && std::ranges::includes(groups, o.groups);
}

std::string Needs::definitions() const {
    const auto number = [](u32 v) { return std::to_string(v); };
    std::uint32_t mask = 0;
    for (const u32 op : ops) mask |= 1u << op;
    return "#define AKUNU_OPS " + std::to_string(mask) + "u\n" + list("AKUNU_READERS", readers, number) +
           list("AKUNU_KV_TYPES", kv_types, number) + list("AKUNU_GROUPS", groups, number);
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
        if (c.op == kOpRopeKv) continue;
        const auto add_group = [&](const auto& p) { n.groups.insert(std::bit_ceil(p.n_heads / p.n_kv_heads)); };
        c.op == kOpDecodeAttention ? add_group(reinterpret_cast<const DecodeAttentionParams&>(c.params))
                                   : add_group(reinterpret_cast<const AttentionParams&>(c.params));
    }
    // Those that one model uses sooner or later, so that they are compiled together.
    const auto together = [&](std::initializer_list<u32> ops) {
        if (std::ranges::any_of(ops, [&](u32 op) { return n.ops.contains(op); })) n.ops.insert(ops);
    };
    together({kOpArgmax, kOpSamplePrepare, kOpSampleSelect, kOpLogprobs, kOpAccept});
    together({kOpRopeKv, kOpKvCopy});
    return n;
}

std::vector<Command> compile_commands(const DispatchTable& table, const Geometry& geometry) {
    std::vector<Command> out;
    u32 fetches = 0;
    for (const DispatchCmd& c : table.commands) {
        out.push_back(compiled(c, geometry));
        out.back().next_fetch = fetches += out.back().fetches;
        out.back().label = static_cast<u32>(out.size() - 1);
    }
    return out;
}

std::vector<Command> fused(const DispatchTable& table, std::span<const Command> commands) {
    std::vector<Command> out;
    for (std::size_t i = 0; i < commands.size(); ++i) {
        const auto one = table.max_rows == 1
                             ? decode_attention(std::span(table.commands).subspan(i), commands.subspan(i))
                             : std::nullopt;
        out.push_back(one ? *one : commands[i]);
        if (one) i += 2;
    }
    return out;
}

std::vector<Fetch> fetches_of(std::span<const Command> commands) {
    std::vector<Fetch> out;
    for (const Command& c : commands) {
        if (!c.fetches) continue;
        Fetch& f = out.emplace_back();
        for (std::size_t i = 0; i < std::size(c.weights); ++i) {
            const WeightPlanes& w = c.weights[i];
            f.at[2 * i] = w.codes;
            f.at[2 * i + 1] = w.extras;
            f.units[2 * i] = w.code_units;
            f.units[2 * i + 1] = w.extra_units;
        }
    }
    return out;
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

CudaProgram::CudaProgram(DispatchTable t, Device& device, const Geometry& geometry)
    : Program(std::move(t)),
      plain_(device, compile_commands(table, geometry)),
      fused_(device, fused(table, plain_.commands())),
      fetches_(uploaded<Fetch>(device, fetches_of(plain_.commands()))) {
    const auto mirrors = mirrors_of(table);
    mirrors_ = uploaded<Mirror>(device, mirrors);
    n_mirrors_ = static_cast<u32>(mirrors.size());
}

Segment CudaProgram::segment(std::uint32_t most) const {
    const auto commands = list(most).commands().first(std::min<std::size_t>(most, list(most).commands().size()));
    return {.commands = list(most).at(),
            .mirrors = mirrors_.at().as<const Mirror>(),
            .fetches = fetches_.at().as<const Fetch>(),
            .n_commands = static_cast<u32>(commands.size()),
            .n_mirrors = n_mirrors_,
            .n_fetches = static_cast<u32>(std::ranges::count_if(commands, [](const Command& c) { return c.fetches; }))};
}

}  // namespace akunu::cuda
