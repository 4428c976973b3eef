#include "core/sampling.h"

#include "metal/choose/kernel_choice.h"
#include "metal/choose/params.h"
#include "metal/include/sampling.h"

namespace akunu::metal {

namespace {

static_assert(kTopLogprobs == kMaxLogprobs);
static_assert(sizeof(SamplerSettings) == sizeof(SamplerState));
static_assert(offsetof(SamplerSettings, seed_lo) == offsetof(SamplerState, seed_lo));
static_assert(offsetof(SamplerSettings, end_ids) == offsetof(SamplerState, end_ids));
static_assert(offsetof(SamplerSettings, bias) == offsetof(SamplerState, bias));
static_assert(sizeof(LogitBias) == 8 && offsetof(LogitBias, bias) == 4);
static_assert(sizeof(ReplayControl) == sizeof(Control) && offsetof(ReplayControl, stop) == offsetof(Control, stop));
static_assert(sizeof(TokenLogprobs) == sizeof(LogprobRecord));
static_assert(offsetof(TokenLogprobs, values) == offsetof(LogprobRecord, values));

constexpr Constant kForArgmax{Constant::Type::kBool, 0, 0};
constexpr Constant kForSampler{Constant::Type::kBool, 0, 1};

Pass pass(const char* function, u32 groups, u32 threads, std::vector<Constant> constants = {}) {
    return {
        .function = function, .constants = std::move(constants), .x = {groups}, .y = {}, .z = {}, .threads = {threads}};
}

}  // namespace

std::optional<KernelChoice> choose_sampling(const DispatchCmd& cmd, const Chip&) {
    if (cmd.param_bytes != sizeof(SampleParams)) return {};
    const auto p = params_of<SampleParams>(cmd);
    const u32 slices = slice_count(p.vocab);
    if (p.vocab == 0 || slices > kMaxSlices) return {};
    const std::uint64_t best = std::uint64_t{slices} * sizeof(Ranked);
    switch (cmd.op) {
        case Op::kArgmax:
            return KernelChoice{
                {pass("best_slices_f32", slices, kSliceThreads, {kForArgmax}), pass("argmax_f32", 1, kSliceThreads)},
                best};
        case Op::kSamplePrepare:
            return KernelChoice{{pass("sample_prepare_f32", ceil_div(p.vocab, kPrepareTokens), kSliceThreads)}, 0};
        case Op::kSampleSelect:
            return KernelChoice{
                {pass("best_slices_f32", slices, kSliceThreads, {kForSampler}),
                 pass("sample_spread_f32", slices, kSliceThreads), pass("sample_gather_f32", slices, kSliceThreads),
                 pass("sample_select_f32", 1, kDrawThreads)},
                sizeof(SampleList) + best + std::uint64_t{slices} * sizeof(SampleSlice) +
                    std::uint64_t{p.vocab} * sizeof(Ranked)};
        case Op::kLogprobs:
            return KernelChoice{
                {pass("logprob_slices_f32", slices, kSliceThreads), pass("logprobs_f32", 1, kSliceThreads)},
                std::uint64_t{slices} * sizeof(LogprobSlice)};
        default:
            return {};
    }
}

}  // namespace akunu::metal
