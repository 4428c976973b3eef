// Embedding and matmuls: one row by GEMV, up to 4 by a GEMV that reads weights once for all rows, up to 16 by matrices
// of SIMD-groups, more by GEMM. The names are those of metal/include/matmul_*.h.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "metal/choose/kernel_choice.h"
#include "metal/choose/traits.h"
#include "metal/include/expert_tiles.h"
#include "metal/include/matmul_sizes.h"

namespace akunu::metal {

namespace {

constexpr std::uint32_t kWideRows = 32768;  // a vocabulary: more rows share a load of x

// Function constants.
constexpr std::uint16_t kRowsAreVectors = 0, kRowsPerSimd = 1, kKSplit = 2, kMlxGroup = 3, kMlxScaleType = 4;

// What a weight type's functions are named by: those of an affine type by its number of bits.
std::string kernel_name(DType weight) {
    if (const auto affine = affine_type(weight)) return "mlx_q" + std::to_string(affine->bits);
    return std::string(dtype_info(weight).name);
}

Pass pass_of(const char* function, DType weight, std::uint32_t k) {
    Pass pass;
    pass.function = std::string(function) + '_' + kernel_name(weight);
    pass.constants.push_back({Constant::Type::kBool, kRowsAreVectors, k % 4 == 0});
    return pass;
}

// What the functions of an affine type have besides.
Pass with_groups(Pass pass, DType weight) {
    if (const auto affine = affine_type(weight)) {
        pass.constants.push_back({Constant::Type::kUint, kMlxGroup, affine->group});
        pass.constants.push_back({Constant::Type::kUint, kMlxScaleType, static_cast<std::uint32_t>(affine->scales)});
    }
    return pass;
}

// Elements that a SIMD-group takes at a time: its lanes' slices.
std::uint32_t step_of(DType weight) {
    return kSimdWidth * (affine_type(weight) || dtype_info(weight).block_elems == 256 ? 32 : 16);
}

// How a GEMV's threadgroup divides the work.
struct Geometry {
    std::uint32_t rows = 4;   // of each matrix, per set of SIMD-groups
    std::uint32_t split = 1;  // SIMD-groups of a set, each with a part of k
    std::uint32_t simds = 4;
    std::uint32_t rows_per_group() const { return simds / split * rows; }
};

// `n` rows in all matrices, `matrices` of which have the same x; a SIMD-group takes `step` elements at a time.
Geometry gemv_geometry(std::uint32_t n, std::uint32_t k, std::uint32_t matrices, std::uint32_t step, const Chip& chip) {
    // Enough for a core to hide the latency of memory. An estimate.
    constexpr std::uint32_t kSimdsPerCore = 16;
    Geometry g{.rows = kMaxRows / 2 / matrices};
    if (n > kWideRows) return {.rows = kMaxRows / matrices, .simds = 8};
    const std::uint32_t sets = ceil_div(n, g.rows * matrices), steps = ceil_div(k, step);
    const std::uint32_t wanted = static_cast<std::uint32_t>(chip.gpu_cores) * kSimdsPerCore;
    while (g.split < 8 && sets * g.split < wanted && g.split * 2 <= steps) g.split *= 2;
    g.simds = std::max(g.simds, g.split);
    return g;
}

Pass gemv_pass(const char* function, DType weight, std::uint32_t k, const Geometry& g, std::uint32_t groups) {
    Pass pass = pass_of(function, weight, k);
    pass.constants.push_back({Constant::Type::kUint, kRowsPerSimd, g.rows});
    pass.constants.push_back({Constant::Type::kUint, kKSplit, g.split});
    pass.threads.x = g.simds * kSimdWidth;
    pass.x.base = groups;
    return pass;
}

// A few rows, at most `rows`; of the two passes a replay runs the one that suits its rows.
std::vector<Pass> few_rows(bool gate_up, DType weight, std::uint32_t rows, std::uint32_t n, std::uint32_t k,
                           const Chip& chip) {
    // As many as a core runs at full speed (lithos-ai/lithos-metal, docs/research/apple-gpu-probes.md, p4).
    constexpr std::uint32_t kSimdsPerCore = 12, kSimds = 4;
    const std::uint32_t matrices = gate_up ? 2 : 1;
    Pass one = pass_of(gate_up ? "gate_up_rows" : "matmul_rows", weight, k);
    one.threads.x = kSimds * kSimdWidth;
    one.x.base = ceil_div(n, kSimds * kRowsOfW / matrices);
    const bool fills = ceil_div(n * matrices, kFewRows) >= static_cast<std::uint32_t>(chip.gpu_cores) * kSimdsPerCore;
    if (rows < kFewTokens || !fills) return {one};
    one.x.rows_most = kFewTokens - 1;
    Pass few = pass_of(gate_up ? "gate_up_few" : "matmul_few", weight, k);
    few.threads.x = kFewSimdgroups * kSimdWidth;
    few.x.base = ceil_div(n, kFewSimdgroups * kFewRows / matrices);
    few.x.rows_least = kFewTokens;
    return {one, few};
}

// kMatmul, or kGateUp with two matrices of `n` rows each.
std::vector<Pass> matmul_passes(bool gate_up, DType weight, std::uint32_t rows, std::uint32_t n, std::uint32_t k,
                                const Chip& chip) {
    const std::uint32_t matrices = gate_up ? 2 : 1;
    if (rows <= 1) {
        const Geometry g = gemv_geometry(n * matrices, k, matrices, step_of(weight), chip);
        return {gemv_pass(gate_up ? "gate_up_gemv" : "matmul_gemv", weight, k, g, ceil_div(n, g.rows_per_group()))};
    }
    if (rows <= kMaxTokens) return few_rows(gate_up, weight, rows, n, k, chip);
    const std::uint32_t columns = ceil_div(n, kTileRows / matrices);
    // Too few tiles to give each core one: half of the size.
    const bool small =
        !gate_up && std::uint64_t{columns} * ceil_div(rows, kTileTokens) < static_cast<std::uint64_t>(chip.gpu_cores);
    Pass pass = pass_of(gate_up ? "gate_up_gemm" : small ? "matmul_gemm_small" : "matmul_gemm", weight, k);
    pass.threads.x = kGemmThreads;
    pass.x.base = columns;
    pass.y.rows_per = small ? kSmallTileTokens : kTileTokens;
    return {pass};
}

// kExpertsGateUp or kExpertsDown, of up to `rows` rows with `chosen` choices each. Results have the same bits whatever
// the rows, so the geometry does not depend on them.
KernelChoice experts_kernels(bool gate_up, DType weight, std::uint32_t rows, std::uint32_t experts,
                             std::uint32_t chosen, std::uint32_t n, std::uint32_t k, const Chip& chip) {
    constexpr std::uint32_t kSortThreads = 256, kSumThreads = 64;
    const std::string name = gate_up ? "experts_gate_up" : "experts_down";
    const std::uint32_t matrices = gate_up ? 2 : 1, side_by_side = gate_up ? chosen : 1;
    const Geometry g = gemv_geometry(n * matrices * side_by_side, k, matrices, step_of(weight), chip);
    const std::uint32_t columns = ceil_div(n, g.rows_per_group());
    const auto products = [&](const std::string& function) {
        return with_groups(gemv_pass(function.c_str(), weight, k, g, columns), weight);
    };
    if (rows <= kMaxTokens || experts > kMostExperts) {  // rows seldom share clusters, which are that many
        Pass pass = products(name);
        pass.y = {.base = side_by_side, .rows_per = 1};
        return {.passes = {pass}};
    }
    const std::uint32_t tile_choices = kSimdWidth / (g.rows * matrices), choices = rows * chosen;
    Pass sort;
    sort.function = name + "_sort";
    sort.constants = {{Constant::Type::kUint, 0, tile_choices}, {Constant::Type::kUint, 1, columns}};
    sort.threads.x = kSortThreads;
    Pass tiles = products(name + "_tiles");
    tiles.counted = true;
    KernelChoice choice{.passes = {sort, tiles}, .scratch_bytes = std::uint64_t{results_word(choices)} * sizeof(u32)};
    if (!gate_up) {
        Pass sum;
        sum.function = name + "_sum";
        sum.threads.x = kSumThreads;
        sum.x.base = ceil_div(n, kSumThreads);
        sum.y.rows_per = 1;
        choice.passes.push_back(sum);
        choice.scratch_bytes += std::uint64_t{choices} * n * sizeof(float);
    }
    return choice;
}

bool takes_mixed(const DispatchCmd& cmd) {
    const MixedQkv types{cmd.weight, cmd.last_weight};
    return cmd.op == Op::kNormQkv && cmd.buffers[4] && std::ranges::find(kMixedQkv, types) != std::end(kMixedQkv);
}

Pass norm_qkv_pass(const DispatchCmd& cmd, const Chip& chip) {
    const auto p = cmd.params_as<NormQkvParams>();
    const std::uint32_t parts = cmd.buffers[4] ? 2 : 1;  // of k and v; v may be a command of its own
    // Where v has another type: a split of k that leaves work for every SIMD-group with either.
    const std::uint32_t step = std::max(step_of(cmd.weight), step_of(cmd.last_weight));
    const Geometry g = gemv_geometry(p.n_q + parts * p.n_kv, p.k, 1, step, chip);
    const std::uint32_t per = g.rows_per_group();
    Pass pass = gemv_pass("norm_qkv", cmd.weight, p.k, g, ceil_div(p.n_q, per) + parts * ceil_div(p.n_kv, per));
    if (cmd.last_weight != cmd.weight) (pass.function += '_') += dtype_info(cmd.last_weight).name;
    return pass;
}

Pass embed_pass(const EmbedParams& p, DType weight) {
    constexpr std::uint32_t kThreads = 64;
    Pass pass = pass_of("embed", weight, p.dim);
    pass.threads.x = kThreads;
    pass.x.base = ceil_div(ceil_div(p.dim, 4), kThreads);
    pass.y.rows_per = 1;
    return pass;
}

}  // namespace

std::optional<KernelChoice> choose_matmul(const DispatchCmd& cmd, const Chip& chip) {
    if (!dtype_info(cmd.weight).is_weight || cmd.packed) return std::nullopt;
    const bool experts = cmd.op == Op::kExpertsGateUp || cmd.op == Op::kExpertsDown || cmd.op == Op::kHeadMatmul;
    const bool takes_planes = affine_type(cmd.weight) && (cmd.op == Op::kEmbed || cmd.op == Op::kMatmul || experts);
    if (dtype_info(cmd.weight).planar() && !takes_planes) return std::nullopt;
    if (cmd.last_weight != cmd.weight && !takes_mixed(cmd)) return std::nullopt;
    switch (cmd.op) {
        case Op::kEmbed:
            return KernelChoice{
                .passes = {with_groups(embed_pass(cmd.params_as<EmbedParams>(), cmd.weight), cmd.weight)}};
        case Op::kMatmul: {
            const auto p = cmd.params_as<MatmulParams>();
            KernelChoice choice{.passes = matmul_passes(false, cmd.weight, p.rows, p.n, p.k, chip)};
            for (Pass& pass : choice.passes) pass = with_groups(std::move(pass), cmd.weight);
            return choice;
        }
        case Op::kGateUp: {
            const auto p = cmd.params_as<GateUpParams>();
            return KernelChoice{.passes = matmul_passes(true, cmd.weight, p.rows, p.n, p.k, chip)};
        }
        case Op::kExpertsGateUp: {
            const auto p = cmd.params_as<ExpertsGateUpParams>();
            return experts_kernels(true, cmd.weight, p.rows, p.experts, p.chosen, p.n, p.k, chip);
        }
        case Op::kExpertsDown: {
            const auto p = cmd.params_as<ExpertsDownParams>();
            return experts_kernels(false, cmd.weight, p.rows, p.experts, p.chosen, p.n, p.k, chip);
        }
        case Op::kHeadMatmul: {
            const auto p = cmd.params_as<HeadMatmulParams>();
            const Geometry g = gemv_geometry(p.n, p.k, 1, step_of(cmd.weight), chip);
            Pass pass = gemv_pass("head_matmul", cmd.weight, p.k, g, ceil_div(p.n, g.rows_per_group()));
            pass.constants[kRowsAreVectors].value = p.k % 4 == 0 && p.x_stride % 4 == 0;
            pass.y = {.base = p.heads, .rows_per = 1};
            return KernelChoice{.passes = {with_groups(pass, cmd.weight)}};
        }
        case Op::kNormQkv:
            return KernelChoice{.passes = {norm_qkv_pass(cmd, chip)}};
        case Op::kNormGateUp: {
            const auto p = cmd.params_as<NormGateUpParams>();
            const Geometry g = gemv_geometry(2 * p.n, p.k, 2, step_of(cmd.weight), chip);
            return KernelChoice{
                .passes = {gemv_pass("norm_gate_up", cmd.weight, p.k, g, ceil_div(p.n, g.rows_per_group()))}};
        }
        default:
            return std::nullopt;
    }
}

}  // namespace akunu::metal
