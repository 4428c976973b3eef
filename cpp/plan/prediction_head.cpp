// See plan/drafter.h.
#include "plan/drafter.h"

namespace akunu {

namespace {

constexpr const char* kStream = "draft_hidden";

class PredictionHead final : public Drafter {
  public:
    PredictionHead(const ModelConfig& config, Loader& loader, const Target& target) : Drafter(config, target) {
        const DrafterConfig& own = *config.drafter;
        const std::uint64_t dim = config.dim;
        embedding_norm_ = loader.norm(own.prefix + "embedding_norm", dim);
        state_norm_ = loader.norm(own.prefix + "state_norm", dim);
        embedding_part_ = loader.columns(own.prefix + "joined", dim, 2 * dim, 0, dim);
        state_part_ = loader.columns(own.prefix + "joined", dim, 2 * dim, dim, dim);
        output_norm_ = loader.optional_norm(own.prefix + "output_norm", dim);
        load_common(loader, loader.has("output") ? "output" : "token_embedding", dim);
        blocks_ = load_blocks(loader, config, own.blocks, config.blocks.size());
    }

    PlanContext plan(const PlanContext& model) const override {
        return {model.device, model.config, model.activations, model.step};
    }

    void reserve(const Device& device, Activations& a, std::uint32_t context) const override {
        a.reserve(kStream, config_.dim);
        a.reserve("input", config_.dim, device.matmul_input(embedding_part_.dtype));
        a.reserve("draft_state", config_.dim, kActF32 | device.matmul_input(state_part_.dtype));
        for (const auto& block : blocks_) block->reserve(device, a, context);
    }

    bool keeps() const override { return true; }

    void keep(Emitter& e) const override {
        read_model(e, false);
        join(e);
        blocks_.front()->emit_keys(e);
    }

    void enter(Emitter& e, bool first) const override {
        if (first) read_model(e, true);
        join(e);
    }

    void logits(Emitter& e, bool common) const override {
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
        e.norm("draft_state_norm", -1, normed ? state.f32 : e.hidden(), state_norm_, state,
               e.input_format(state_part_));
    }

  private:
    // "draft_state" becomes S's input, of the model's last states: of all rows, or of those with logits.
    void read_model(Emitter& e, bool gathered) const {
        const Act& state = e.activations.act("draft_state");
        e.norm("draft_state", -1, e.hidden(), target_.output_norm, {state.f32, {}}, kActF32, gathered);
        e.norm("draft_state_norm", -1, state.f32, state_norm_, state, e.input_format(state_part_));
    }

    // The residual stream becomes x.
    void join(Emitter& e) const {
        e.stream = kStream;
        const Binding& x = e.hidden();
        const Act &input = e.activations.act("input"), &state = e.activations.act("draft_state");
        const Binding next{e.step.history.buffer,
                           e.step.history.offset + sizeof(u32)};  // the token behind each position
        e.embed("draft_embedding", next, target_.embedding, x, std::to_string(config_.dim),
                {.dim = config_.dim, .vocab = config_.vocab_size, .scale = config_.embedding_scale});
        e.norm("draft_embedding_norm", -1, x, embedding_norm_, input, e.input_format(embedding_part_));
        e.matmul("draft_embedding_part", -1, input, embedding_part_, x);
        e.matmul("draft_state_part", -1, state, state_part_, x, {.accumulate = true});
    }

    Norm embedding_norm_, state_norm_, output_norm_;
    Weight embedding_part_, state_part_;  // E and S
};

}  // namespace

std::unique_ptr<Drafter> load_prediction_head(const ModelConfig& config, Loader& loader,
                                              const Drafter::Target& target) {
    return std::make_unique<PredictionHead>(config, loader, target);
}

std::unique_ptr<Drafter> load_drafter(const ModelConfig& config, Loader& loader, const Drafter::Target& target) {
    return config.drafter->dim ? load_assistant(config, loader, target) : load_prediction_head(config, loader, target);
}

}  // namespace akunu
