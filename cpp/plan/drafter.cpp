#include "plan/drafter.h"

namespace akunu {

namespace {

constexpr const char* kStream = "draft_hidden";

}  // namespace

Drafter::Drafter(const ModelConfig& config, Loader& loader, const Target& target) : config_(config), target_(target) {
    const DrafterConfig& own = *config.drafter;
    const std::uint64_t dim = config.dim;
    embedding_norm_ = loader.norm(own.prefix + "embedding_norm", dim);
    state_norm_ = loader.norm(own.prefix + "state_norm", dim);
    embedding_part_ = loader.columns(own.prefix + "joined", dim, 2 * dim, 0, dim);
    state_part_ = loader.columns(own.prefix + "joined", dim, 2 * dim, dim, dim);
    output_norm_ = loader.optional_norm(own.prefix + "output_norm", dim);
    if (config.vocab_size >= 2 * kCommonTokens) {
        const char* output = loader.has("output") ? "output" : "token_embedding";
        common_ = loader.part_of_rows(output, config.vocab_size, dim, 0, kCommonTokens);
    }
    for (const BlockConfig& block : own.blocks) {
        const BlockPlace place{config, config.blocks.size() + blocks_.size(), block.prefix, block.layer};
        blocks_.push_back(std::visit([&](const auto& mixer) { return load_block(loader, place, mixer); }, block.mixer));
    }
}

void Drafter::reserve(const Device& device, Activations& a, std::uint32_t context) const {
    a.reserve(kStream, config_.dim);
    a.reserve("input", config_.dim, device.matmul_input(embedding_part_.dtype));
    a.reserve("draft_state", config_.dim, kActF32 | device.matmul_input(state_part_.dtype));
    for (const auto& block : blocks_) block->reserve(device, a, context);
}

void Drafter::enter(Emitter& e) const {
    const Binding& x = e.hidden();
    const Act &input = e.activations.act("input"), &state = e.activations.act("draft_state");
    const Binding next{e.step.history.buffer, e.step.history.offset + sizeof(u32)};  // the token behind each position
    e.embed("draft_embedding", next, target_.embedding, x, std::to_string(config_.dim),
            {.dim = config_.dim, .vocab = config_.vocab_size, .scale = config_.embedding_scale});
    e.norm("draft_embedding_norm", -1, x, embedding_norm_, input, e.input_format(embedding_part_));
    e.matmul("draft_embedding_part", -1, input, embedding_part_, x);
    e.matmul("draft_state_part", -1, state, state_part_, x, {.accumulate = true});
}

void Drafter::read_model(Emitter& e, bool gathered) const {
    const Act& state = e.activations.act("draft_state");
    e.norm("draft_state", -1, e.hidden(), target_.output_norm, {state.f32, {}}, kActF32, gathered);
    e.norm("draft_state_norm", -1, state.f32, state_norm_, state, e.input_format(state_part_));
}

void Drafter::keep(Emitter& e) const {
    read_model(e, false);
    e.stream = kStream;
    enter(e);
    blocks_.front()->emit_keys(e);
}

void Drafter::emit(Emitter& e, Phase phase, bool first) const {
    if (first) read_model(e, true);
    e.stream = kStream;
    enter(e);
    for (const auto& block : blocks_) block->emit(e, phase);
}

void Drafter::logits(Emitter& e, bool common) const {
    e.stream = kStream;
    const Act &input = e.activations.act("input"), &state = e.activations.act("draft_state");
    const bool normed = config_.drafter->normed_state && output_norm_;
    const Norm& norm = output_norm_ ? output_norm_ : target_.output_norm;
    const Weight& output = common ? common_ : target_.output;
    e.norm("draft_output_norm", -1, e.hidden(), norm, input, e.input_format(output));
    e.matmul("draft_output", -1, input, output, e.step.logits,
             {.softcap = config_.final_softcap, .y_stride = config_.vocab_size});
    // The state that one draft more goes on from.
    if (normed) e.norm("draft_state", -1, e.hidden(), output_norm_, {state.f32, {}}, kActF32);
    e.norm("draft_state_norm", -1, normed ? state.f32 : e.hidden(), state_norm_, state, e.input_format(state_part_));
}

}  // namespace akunu
