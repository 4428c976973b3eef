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
        if (const std::uint32_t clusters = config.drafter->clusters) {
            const std::vector<std::uint32_t> order = loader.order(prefix + "token_order", config.vocab_size);
            centroids_ = loader.wide(prefix + "centroids", clusters, dim);
            output_ = loader.clusters(prefix + "token_embedding", order, clusters, dim);
            order_ = loader.computed(order);
        } else {
            output_ = loader.matmul(prefix + "token_embedding", config.vocab_size, dim);
            load_common(loader, prefix + "token_embedding", dim);
        }
        next_state_ = loader.matmul(prefix + "next_state", model, dim);
    }

    PlanContext plan(const PlanContext& model) const override {
        return {model.device, own_, model.activations, model.step};
    }

    void reserve(const Device& device, Activations& a, std::uint32_t context) const override {
        a.reserve(kAssistantStream, own_.dim);
        a.reserve("draft_embedding", config_.dim, kActF32 | device.matmul_input(embedding_part_.dtype));
        a.reserve("draft_state", config_.dim, kActF32 | device.matmul_input(state_part_.dtype));
        u32 formats = device.matmul_input(output_.dtype) | device.matmul_input(next_state_.dtype);
        if (centroids_) {
            formats |= device.matmul_input(centroids_.dtype);
            const std::uint64_t used = config_.drafter->clusters_used;
            a.reserve("cluster_scores", centroids_.rows);
            a.reserve("cluster_ids", used);
            a.reserve("cluster_weights", used);
            a.reserve("cluster_logits", used * output_.rows);
        }
        a.reserve("input", own_.dim, formats);
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
        const u32 formats = e.input_format(output) | e.input_format(next_state_);
        e.norm("draft_output_norm", -1, e.hidden(), output_norm_, input,
               centroids_ ? formats | e.input_format(centroids_) : formats);
        if (centroids_) {
            logits_of_clusters(e, input);
        } else {
            e.matmul("draft_output", -1, input, output, e.step.logits, {.y_stride = config_.vocab_size});
        }
        // The state that one draft more goes on from.
        e.matmul("draft_state", -1, input, next_state_, state.f32);
        compact(e, "draft_state", state, state_part_);
    }

  private:
    // Of the tokens of the clusters whose centroids are likeliest. They are chosen, and multiplied with, as experts.
    void logits_of_clusters(Emitter& e, const Act& input) const {
        const u32 clusters = static_cast<u32>(centroids_.rows), used = config_.drafter->clusters_used;
        const u32 n = static_cast<u32>(output_.rows);
        const Binding &scores = e.activations.f32("cluster_scores"), &ids = e.activations.f32("cluster_ids");
        const Binding& logits = e.activations.f32("cluster_logits");
        e.matmul("draft_centroids", -1, input, centroids_, scores);
        e.route("draft_clusters", -1, scores, clusters, used, {.gating = kGateSoftmaxChosen},
                {.ids = ids, .weights = e.activations.f32("cluster_weights"), .choice_bias = {}, .expert_scale = {}});
        e.emit(Op::kExpertsGateUp, "draft_output")
            .input(input, e.input_format(output_))
            .weight(output_)
            .buffer({})
            .buffer({})
            .buffer({})
            .buffer(ids)
            .buffer(logits)
            .buffer({})
            .shape(std::to_string(used) + "x" + shape_of(n, own_.dim))
            .params(ExpertsGateUpParams{.rows = 0,
                                        .experts = clusters,
                                        .chosen = used,
                                        .n = n,
                                        .k = own_.dim,
                                        .activation = kActNone,
                                        .formats = kActF32,
                                        .has_bias = 0,
                                        .limit = 0,
                                        .sharpness = 1,
                                        .up_offset = 0,
                                        .gated = 0});
        e.emit(Op::kClusterLogits, "draft_logits")
            .buffer(logits)
            .buffer(ids)
            .buffer(order_)
            .buffer(e.step.logits)
            .shape(shape_of(used, n))
            .params(ClusterLogitsParams{.rows = 0, .vocab = config_.vocab_size, .chosen = used, .n = n});
    }

    void compact(Emitter& e, const char* name, const Act& x, const Weight& reader) const {
        const u32 format = e.input_format(reader);
        if (format != kActF32) e.quantize(name, -1, x, config_.dim, format);
    }

    const ModelConfig own_;
    Norm output_norm_;
    Weight embedding_part_, state_part_, next_state_;  // E, S, and what makes the next state
    Weight output_, centroids_;                        // all tokens', or those of clusters
    Vector order_;                                     // the tokens of the first cluster, the second one, …
};

}  // namespace

std::unique_ptr<Drafter> load_assistant(const ModelConfig& config, Loader& loader, const Drafter::Target& target) {
    return std::make_unique<Assistant>(config, loader, target);
}

}  // namespace akunu
