// A feed-forward of experts: h += Σ w_e · (act(x·Wg_eᵀ) * x·Wu_eᵀ)·Wd_eᵀ over those that a router chose for the row,
// with x = norm(h) and w from x·Wrᵀ. All have the biases that the model has. A shared expert is one that every row goes
// to: its weight is the sigmoid of a gate of its own, so it is a choice of one of one; without such a gate it is a
// plain feed-forward of the same x.
#include "plan/block.h"

namespace akunu {

namespace {

class ExpertsBlock final : public Block {
  public:
    ExpertsBlock(Loader& loader, const BlockPlace& place, const ExpertsConfig& config)
        : place_(place), config_(config), norm_(loader.optional_norm(place.name("ffn_norm"), place.config.dim)) {
        routed_ = load(loader, "experts", config.count, config.dim);
        routed_.router = loader.wide(place.name("router"), config.count, place.config.dim);
        routed_.router_bias = loader.optional_vector(place.name("router_bias"), config.count);
        choice_bias_ = loader.optional_vector(place.name("router_choice_bias"), config.count);
        expert_scale_ = loader.optional_vector(place.name("expert_scale"), config.count);
        if (config.shared_dim == 0) return;
        if (!loader.has(place.name("shared_router"))) {
            load_plain(loader);
            return;
        }
        shared_ = load(loader, "shared", 1, config.shared_dim);
        shared_.router = loader.wide(place.name("shared_router"), 1, place.config.dim);
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", place_.config.dim, input_formats(device));
        reserve(device, a, routed_, "experts", config_.used, config_.dim);
        if (shared_) reserve(device, a, shared_, "shared", 1, config_.shared_dim);
        if (plain_down_) {
            a.reserve("shared", config_.shared_dim, device.matmul_input(plain_down_.dtype));
            if (!plain_.fuses()) {
                a.reserve("gate", config_.shared_dim);
                a.reserve("up", config_.shared_dim);
            }
        }
    }

    void emit(Emitter& e, Phase /*phase*/) const override {
        const Act input = e.block_input("ffn_norm", place_.layer, norm_, input_formats(e.device));
        const RouterConfig always{.gating = kGateSigmoid};
        route(e, input, routed_, "experts", config_.router, config_.used, choice_bias_, expert_scale_);
        if (shared_) route(e, input, shared_, "shared", always, 1, {}, {});
        gate_up(e, input, routed_, "experts", config_.used);
        if (shared_) gate_up(e, input, shared_, "shared", 1);
        if (plain_down_) {
            const Act& out = e.activations.act("shared");
            e.gated("shared", place_.layer, config_.activation, input, plain_, out, e.input_format(plain_down_));
        }
        down(e, routed_, "experts", config_.used);
        if (shared_) down(e, shared_, "shared", 1);
        if (plain_down_) {
            e.add_to_residual("shared_down", place_.layer, e.activations.act("shared"), plain_down_, {}, {});
        }
    }

  private:
    struct Experts {
        Weight router, gate, up, down;
        Vector router_bias, gate_bias, up_bias, down_bias;
        explicit operator bool() const { return bool(gate); }
    };

    Experts load(Loader& loader, const std::string& of, u32 count, u32 n) const {
        const u32 dim = place_.config.dim;
        const auto name = [&](const char* part) { return place_.prefix + of + part; };
        Experts x;
        x.gate = loader.experts(name("_gate"), count, n, dim);
        x.up = loader.experts(name("_up"), count, n, dim);
        x.down = loader.experts(name("_down"), count, dim, n);
        x.gate_bias = loader.optional_vector(name("_gate_bias"), std::uint64_t{count} * n);
        x.up_bias = loader.optional_vector(name("_up_bias"), std::uint64_t{count} * n);
        x.down_bias = loader.optional_vector(name("_down_bias"), std::uint64_t{count} * dim);
        return x;
    }

    void load_plain(Loader& loader) {
        const u32 dim = place_.config.dim, n = config_.shared_dim;
        plain_.gate = loader.matmul(place_.name("shared_gate"), n, dim);
        plain_.up = loader.matmul(place_.name("shared_up"), n, dim);
        plain_down_ = loader.matmul(place_.name("shared_down"), dim, n);
    }

    u32 input_formats(const Device& device) const {
        const u32 plain =
            plain_down_ ? device.matmul_input(plain_.gate.dtype) | device.matmul_input(plain_.up.dtype) : 0;
        const auto of = [&](const Experts& x) {
            return device.matmul_input(x.router.dtype) | device.matmul_input(x.gate.dtype);
        };
        return of(routed_) | (shared_ ? of(shared_) : 0) | plain;
    }

    void reserve(const Device& device, Activations& a, const Experts& x, const std::string& name, u32 used,
                 u32 n) const {
        a.reserve(name + "_logits", x.router.rows);
        a.reserve(name + "_ids", used);
        a.reserve(name + "_weights", used);
        a.reserve(name, n, device.matmul_input(x.down.dtype), used);
    }

    void route(Emitter& e, const Act& input, const Experts& x, const std::string& name, const RouterConfig& r, u32 used,
               const Vector& choice_bias, const Vector& expert_scale) const {
        const Binding& logits = e.activations.f32(name + "_logits");
        e.matmul(name + "_router", place_.layer, input, x.router, logits, {.bias = x.router_bias});
        e.emit(Op::kRoute, name + "_route", place_.layer)
            .buffer(logits)
            .buffer(choice_bias)
            .buffer(expert_scale)
            .buffer(e.activations.f32(name + "_ids"))
            .buffer(e.activations.f32(name + "_weights"))
            .shape(shape_of(used, x.router.rows))
            .params(RouteParams{.rows = 0,
                                .experts = static_cast<u32>(x.router.rows),
                                .chosen = used,
                                .gating = r.gating,
                                .groups = r.groups,
                                .groups_used = r.groups_used,
                                .group_top = r.group_top,
                                .renormalise = r.renormalise,
                                .sum_eps = r.sum_eps,
                                .sum_min = r.sum_min,
                                .scale = r.scale,
                                .has_choice_bias = bool(choice_bias),
                                .has_expert_scale = bool(expert_scale)});
    }

    void gate_up(Emitter& e, const Act& input, const Experts& x, const std::string& name, u32 used) const {
        const u32 n = static_cast<u32>(x.gate.rows);
        e.emit(Op::kExpertsGateUp, name + "_gate_up", place_.layer)
            .input(input, e.input_format(x.gate))
            .weight(x.gate)
            .weight(x.up)
            .buffer(x.gate_bias)
            .buffer(x.up_bias)
            .buffer(e.activations.f32(name + "_ids"))
            .act(e.activations.act(name))
            .shape(std::to_string(used) + "x" + shape_of(2ull * n, place_.config.dim))
            .params(ExpertsGateUpParams{.rows = 0,
                                        .experts = static_cast<u32>(x.gate.count),
                                        .chosen = used,
                                        .n = n,
                                        .k = place_.config.dim,
                                        .activation = config_.activation,
                                        .formats = e.input_format(x.down),
                                        .has_bias = bool(x.gate_bias),
                                        .limit = config_.limit,
                                        .sharpness = config_.sharpness,
                                        .up_offset = config_.up_offset});
    }

    void down(Emitter& e, const Experts& x, const std::string& name, u32 used) const {
        const u32 k = static_cast<u32>(x.down.cols);
        e.emit(Op::kExpertsDown, name + "_down", place_.layer)
            .input(e.activations.act(name), e.input_format(x.down))
            .weight(x.down)
            .buffer(e.hidden())
            .buffer(x.down_bias)
            .buffer(e.activations.f32(name + "_ids"))
            .buffer(e.activations.f32(name + "_weights"))
            .shape(std::to_string(used) + "x" + shape_of(place_.config.dim, k))
            .params(ExpertsDownParams{.rows = 0,
                                      .experts = static_cast<u32>(x.down.count),
                                      .chosen = used,
                                      .n = place_.config.dim,
                                      .k = k,
                                      .accumulate = 1,
                                      .has_bias = bool(x.down_bias)});
    }

    const BlockPlace place_;
    const ExpertsConfig config_;
    Norm norm_;
    Experts routed_, shared_;
    Emitter::Gated plain_;  // a shared expert without a gate
    Weight plain_down_;
    Vector choice_bias_, expert_scale_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const ExpertsConfig& experts) {
    return std::make_unique<ExpertsBlock>(loader, place, experts);
}

}  // namespace akunu
