#include "metal/include/sampling.h"

#include "metal/choose/kernel_choice.h"

namespace akunu::metal {

namespace {

constexpr Constant kForArgmax{Constant::Type::kBool, 0, 0};
constexpr Constant kForSampler{Constant::Type::kBool, 0, 1};

// A threadgroup for each of `slices` of every row, or one for a row.
Pass per_slice(const char* function, u32 slices, std::vector<Constant> constants = {}) {
    Pass pass{.function = function, .constants = std::move(constants), .x = {slices}, .y = {}, .z = {}};
    pass.y.rows_per = 1;
    pass.threads.x = kSliceThreads;
    return pass;
}
Pass per_row(const char* function, u32 threads) {
    Pass pass{.function = function, .constants = {}, .x = {}, .y = {}, .z = {}};
    pass.x.rows_per = 1;
    pass.threads.x = threads;
    return pass;
}

// By one threadgroup.
KernelChoice of_sequences(const char* function) {
    Pass pass{.function = function, .constants = {}, .x = {}, .y = {}, .z = {}};
    pass.threads.x = kAcceptThreads;
    return {.passes = {pass}};
}

}  // namespace

std::optional<KernelChoice> choose_sampling(const DispatchCmd& cmd, const Chip&) {
    if (cmd.op == Op::kAccept) return of_sequences("accept");
    if (cmd.op == Op::kAdvance) return of_sequences("advance");
    if (cmd.param_bytes != sizeof(SampleParams)) return {};
    const auto p = cmd.params_as<SampleParams>();
    const u32 slices = slice_count(p.vocab);
    if (p.vocab == 0 || slices > kMaxSlices) return {};
    switch (cmd.op) {
        case Op::kSpeechRules:
            return KernelChoice{{per_slice("rules_slices_f32", slices), per_slice("rules_words_f32", slices)},
                                p.rows * rules_bytes(p.vocab)};
        case Op::kArgmax:
            return KernelChoice{
                {per_slice("best_slices_f32", slices, {kForArgmax}), per_row("argmax_f32", kSliceThreads)},
                p.rows * best_bytes(p.vocab)};
        case Op::kSamplePrepare:
            return KernelChoice{{per_slice("sample_prepare_f32", ceil_div(p.vocab, kPrepareTokens))}, 0};
        case Op::kSampleSelect:
            return KernelChoice{
                {per_slice("best_slices_f32", slices, {kForSampler}), per_slice("sample_spread_f32", slices),
                 per_slice("sample_gather_f32", slices), per_row("sample_select_f32", kSampleThreads)},
                p.rows * select_bytes(p.vocab)};
        case Op::kLogprobs:
            return KernelChoice{{per_slice("logprob_slices_f32", slices), per_row("logprobs_f32", kSliceThreads)},
                                p.rows * logprob_bytes(p.vocab)};
        default:
            return {};
    }
}

}  // namespace akunu::metal
