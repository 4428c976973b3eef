// See plan/drafter.h.
#include "plan/drafter.h"

namespace akunu {

namespace {

constexpr const char* kAssistantStream = "assistant_hidden";

// The model's configuration, with the sizes of the assistant.
ModelConfig sized(const ModelConfig& model) {
    ModelConfig own = model;
    own.dim = model.drafter->dim;
    own.norm_eps = model.drafter->norm_eps;
    own.branch_norm_eps.reset();
    return own;
}

class Assistant final : public Drafter {
  public:
    Assistant(const ModelConfig& config, Loader& loader, const Target& target)
        : Drafter(config, target), own_(sized(config)) {
        const std::string& prefix = config.drafter->prefix;
        const std::uint64_t dim = own_.dim, model = config.dim;
        embedding_part_ = loader.columns(prefix + "joined", dim, 2 * model, 0, model);
        state_part_ = loader.columns(prefix + "joined", dim, 2 * model, model, model);
        blocks_ = load_blocks(loader, own_, config.drafter->blocks, config.blocks.size());
        output_norm_ = loader.norm(prefix + "output_norm", dim);
        output_ = loader.matmul(prefix + "token_embedding", config.vocab_size, dim);
        load_common(loader, prefix + "token_embedding", dim);
        next_state_ = loader.matmul(prefix + "next_state", model, dim);
    }

    PlanContext plan(const PlanContext& model) const override {
        return {model.device, own_, model.activations, model.step};
    }

    void reserve(const Device& device, Activations& a, std::uint32_t context) const override {
        a.reserve(kAssistantStream, own_.dim);
        a.reserve("draft_embedding", config_.dim, kActF32 | device.matmul_input(embedding_part_.dtype));
        a.reserve("draft_state", config_.dim, kActF32 | device.matmul_input(state_part_.dtype));
        a.reserve("input", own_.dim, device.matmul_input(output_.dtype) | device.matmul_input(next_state_.dtype));
        for (const auto& block : blocks_) block->reserve(device, a, context);
    }

    bool stands_still() const override { return true; }

    void enter(Emitter& e, bool first) const override {
        const Act &embedding = e.activations.act("draft_embedding"), &state = e.activations.act("draft_state");
        if (first) {
            e.rms_norm("draft_state", -1, rows_in(e.hidden(), config_.dim), target_.output_norm.weight, state,
                       {.eps = config_.norm_eps, .formats = e.input_format(state_part_), .gathered = true});
        }
        e.stream = kAssistantStream;
        e.embed("draft_embedding", e.step.history, target_.embedding, embedding.f32, std::to_string(config_.dim),
                {.dim = config_.dim,
                 .vocab = config_.vocab_size,
                 .scale = config_.embedding_scale,
                 .rows = e.step.sampled_rows});
        compact(e, "draft_embedding", embedding, embedding_part_);
        e.matmul("draft_embedding_part", -1, embedding, embedding_part_, e.hidden());
        e.matmul("draft_state_part", -1, state, state_part_, e.hidden(), {.accumulate = true});
    }

    void logits(Emitter& e, bool common) const override {
        e.stream = kAssistantStream;
        const Act &input = e.activations.act("input"), &state = e.activations.act("draft_state");
        const Weight& output = common ? common_ : output_;
        e.norm("draft_output_norm", -1, e.hidden(), output_norm_, input,
               e.input_format(output) | e.input_format(next_state_));
        e.matmul("draft_output", -1, input, output, e.step.logits, {.y_stride = config_.vocab_size});
        // The state that one draft more goes on from.
        e.matmul("draft_state", -1, input, next_state_, state.f32);
        compact(e, "draft_state", state, state_part_);
    }

  private:
    void compact(Emitter& e, const char* name, const Act& x, const Weight& reader) const {
        const u32 format = e.input_format(reader);
        if (format != kActF32) e.quantize(name, -1, x, config_.dim, format);
    }

    const ModelConfig own_;
    Norm output_norm_;
    Weight embedding_part_, state_part_, output_, next_state_;  // E, S, and what makes the next state
};

}  // namespace

std::unique_ptr<Drafter> load_assistant(const ModelConfig& config, Loader& loader, const Drafter::Target& target) {
    return std::make_unique<Assistant>(config, loader, target);
}

}  // namespace akunu
