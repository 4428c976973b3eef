#include "cuda/host/program.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
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

void set_weights(const DispatchCmd& c, Command& out, std::uint64_t shared_bytes) {
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
        if (c.op != Op::kEmbed && staged > shared_bytes) {
            refuse(c, "rows of " + std::to_string(w.cols) + " inputs do not fit a block's memory of " +
                          std::to_string(shared_bytes) + " bytes");
        }
        const Binding& at = c.buffers[w.buffer];
        WeightPlanes& planes = out.weights[c.op == Op::kNormQkv ? w.buffer - 2 : i];
        planes.reader = reader->reader;
        planes.spec = reader->spec;
        planes.codes = reinterpret_cast<u64>(at.as());
        planes.extras =
            planar ? reinterpret_cast<u64>(c.buffers[4].as()) : planes.codes + plane_offset(dtype, w.rows, w.cols);
        if (planar) planes.biases = reinterpret_cast<u64>(c.buffers[5].as());
    }
}

void check_heads(const DispatchCmd& c, u32 heads, u32 kv_heads, u32 head_dim) {
    const u32 group = kv_heads ? heads / kv_heads : 0;
    if (head_dim == 0 || head_dim > kMaxHeadDim || group == 0 || group > kMaxGroup || heads % kv_heads != 0) {
        refuse(c, std::to_string(heads) + " heads of " + std::to_string(head_dim) + " over " +
                      std::to_string(kv_heads) + " KV heads; at most " + std::to_string(kMaxHeadDim) + " and " +
                      std::to_string(kMaxGroup) + " for each are known");
    }
}

Command compiled(const DispatchCmd& c, std::uint64_t shared_bytes) {
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
    set_weights(c, out, shared_bytes);
    if (c.op == Op::kRopeKv) {
        const auto p = params_of<RopeKvParams>(c);
        check_heads(c, p.n_heads, p.n_kv_heads, p.head_dim);
    } else if (c.op == Op::kAttention || c.op == Op::kAttentionSplit || c.op == Op::kAttentionMerge) {
        const auto p = params_of<AttentionParams>(c);
        check_heads(c, p.n_heads, p.n_kv_heads, p.head_dim);
    }
    return out;
}

bool uses_kv_type(u32 op) { return op == kOpRopeKv || op == kOpAttention || op == kOpAttentionSplit; }

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
        const auto& p = reinterpret_cast<const AttentionParams&>(c.params);
        n.groups.insert(std::bit_ceil(p.n_heads / p.n_kv_heads));
    }
    // Those that one model uses sooner or later, so that they are compiled together.
    const auto together = [&](std::initializer_list<u32> ops) {
        if (std::ranges::any_of(ops, [&](u32 op) { return n.ops.contains(op); })) n.ops.insert(ops);
    };
    together({kOpArgmax, kOpSamplePrepare, kOpSampleSelect, kOpLogprobs, kOpAccept});
    together({kOpRopeKv, kOpKvCopy});
    return n;
}

std::vector<Command> compile_commands(const DispatchTable& table, std::uint64_t shared_bytes) {
    std::vector<Command> out;
    for (const DispatchCmd& c : table.commands) out.push_back(compiled(c, shared_bytes));
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

CudaProgram::CudaProgram(DispatchTable t, Device& device, std::span<const Command> commands,
                         std::span<const Mirror> mirrors)
    : Program(std::move(t)),
      needs_(std::make_shared<const Needs>(needs_of(commands))),
      commands_(device, std::max<std::size_t>(commands.size_bytes(), 16), MemoryKind::kDevice),
      mirrors_(device, std::max<std::size_t>(mirrors.size_bytes(), 16), MemoryKind::kDevice),
      n_mirrors_(static_cast<u32>(mirrors.size())) {
    device.upload(commands_.at(), std::as_bytes(commands));
    device.upload(mirrors_.at(), std::as_bytes(mirrors));
}

Segment CudaProgram::segment(std::uint32_t most) const {
    return {commands_.at().as<const Command>(), mirrors_.at().as<const Mirror>(),
            std::min(most, static_cast<std::uint32_t>(table.commands.size())), n_mirrors_};
}

}  // namespace akunu::cuda
