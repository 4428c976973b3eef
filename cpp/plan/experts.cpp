// A feed-forward of experts: h += Σ w_e · (act(x·Wg_eᵀ) * x·Wu_eᵀ)·Wd_eᵀ over those that a router chose for the row,
// with x = norm(h) and w from x·Wrᵀ. All have the biases that the model has. A shared expert is one that every row goes
// to: its weight is the sigmoid of a gate of its own, so it is a choice of one of one; without such a gate it is a
// plain feed-forward of the same x. Experts may lack Wg, and then are act(x·Wu_eᵀ)·Wd_eᵀ. They may have x·Wiᵀ for x,
// and give what is added as a vector of that size, to be multiplied by Wo.
//
// Norms of their own may stand before the router, before the plain feed-forward, behind it and behind the experts,
// whose sum is a branch then that has a norm, too:
//   h += norm(norm(Σ w_e · expert_e(norm(h))) + norm(shared(norm(h)))), w from norm(h)·Wrᵀ
#include "plan/block.h"

namespace akunu {

namespace {

class ExpertsBlock final : public Block {
  public:
    ExpertsBlock(Loader& loader, const BlockPlace& place, const ExpertsConfig& config)
        : place_(place),
          config_(config),
          norm_(loader.optional_norm(place.name(has_own_norm(loader, place) ? "experts_norm" : "ffn_norm"),
                                     place.config.dim)) {
        latent_ = config.latent_dim ? config.latent_dim : place.config.dim;
        routed_ = load(loader, "experts", config.count, config.dim, latent_);
        if (config.latent_dim) {
            latent_in_ = loader.matmul(place.name("latent_in"), latent_, place.config.dim);
            latent_out_ = loader.matmul(place.name("latent_out"), place.config.dim, latent_);
        }
        routed_.router = loader.wide(place.name("router"), config.count, place.config.dim);
        routed_.router_bias = loader.optional_vector(place.name("router_bias"), config.count);
        choice_bias_ = loader.optional_vector(place.name("router_choice_bias"), config.count);
        expert_scale_ = loader.optional_vector(place.name("expert_scale"), config.count);
        if (loader.has(place.name("router_norm"))) {
            router_norm_ = loader.norm(place.name("router_norm"), place.config.dim, config.router.input_scale);
        }
        norms_ = place.output_norms(loader, "post_ffn_norm", "ffn_output_norm");
        post_experts_ = loader.optional_vector(place.name("post_experts_norm"), place.config.dim);
        if (config.shared_dim == 0) return;
        if (!loader.has(place.name("shared_router"))) {
            load_plain(loader);
            return;
        }
        shared_ = load(loader, "shared", 1, config.shared_dim, place.config.dim);
        shared_.router = loader.wide(place.name("shared_router"), 1, place.config.dim);
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", place_.config.dim, input_formats(device) | device.matmul_input(routed_.router.dtype));
        reserve(device, a, routed_, "experts", config_.used, config_.dim);
        if (norms_.branch) a.reserve("branch", place_.config.dim);
        if (shared_) reserve(device, a, shared_, "shared", 1, config_.shared_dim);
        if (post_shared_) a.reserve("shared_branch", place_.config.dim);
        if (shared_norm_) a.reserve("shared_input", place_.config.dim, plain_formats(device));
        if (plain_down_) {
            a.reserve("shared", config_.shared_dim, device.matmul_input(plain_down_.dtype));
            if (!plain_.gate || !plain_.fuses() || a.wide()) {
                if (plain_.gate) a.reserve("gate", config_.shared_dim);
                a.reserve("up", config_.shared_dim);
            }
        }
        if (latent_in_) {
            a.reserve("latent_in", latent_, device.matmul_input(routed_.gate.dtype) | u32{kActF32});
            a.reserve("latent_out", latent_, device.matmul_input(latent_out_.dtype) | u32{kActF32});
        }
    }

    void emit(Emitter& e, Phase phase) const override {
        const RouterConfig always{.gating = kGateSigmoid};
        if (router_norm_) {
            const Act input = normed(e, "router_norm", router_norm_, e.input_format(routed_.router));
            route(e, input, routed_, "experts", config_.router, config_.used, choice_bias_, expert_scale_);
        }
        const Act input = normed(e, "ffn_norm", norm_, input_formats(e.device) | added_formats(e));
        if (!router_norm_) {
            route(e, input, routed_, "experts", config_.router, config_.used, choice_bias_, expert_scale_);
        }
        if (shared_) route(e, input, shared_, "shared", always, 1, {}, {});
        gate_up(e, latent_in_ ? latent(e, input) : input, routed_, "experts", config_.used);
        if (shared_) gate_up(e, input, shared_, "shared", 1);
        if (plain_down_) {
            shared_norm_ ? normed_plain(e, phase)
                         : plain(e, input, e.activations.act("shared"), e.input_formats(plain_down_));
        }
        const Binding& sum = norms_.branch ? e.activations.f32("branch") : e.hidden();
        if (latent_in_) {
            const Act& latent = e.activations.act("latent_out");
            down(e, routed_, "experts", config_.used, latent.f32, false);
            const u32 format = e.input_format(latent_out_);
            if (format != kActF32) e.quantize("latent_sum", place_.layer, latent, latent_, format);
            e.matmul("latent_out", place_.layer, latent, latent_out_, sum, {.accumulate = !norms_.branch});
        } else {
            down(e, routed_, "experts", config_.used, sum, !norms_.branch);
        }
        if (post_shared_) {  // beside the experts' last matrix
            e.matmul("shared_down", place_.layer, e.activations.act("shared"), plain_down_,
                     e.activations.f32("shared_branch"), {.bias = plain_down_bias_});
        }
        if (post_experts_) {
            e.rms_norm("experts_post_norm", place_.layer, rows_in(sum, place_.config.dim), post_experts_, {sum, {}},
                       {.eps = place_.config.norm_eps});
        }
        if (shared_) down(e, shared_, "shared", 1, sum, true);
        if (plain_down_) add_plain(e, sum);
        if (norms_.branch) {
            e.add_normed("ffn_post_norm", place_.layer, sum, norms_.branch, e.hidden(), norms_.scale);
        }
    }

  private:
    struct Experts {  // `gate` is `up` where there is no gate, and there is no `up` then
        Weight router, gate, up, down;
        Vector router_bias, gate_bias, up_bias, down_bias;
        explicit operator bool() const { return bool(gate); }
    };

    Experts load(Loader& loader, const std::string& of, u32 count, u32 n, u32 dim) const {
        const auto name = [&](const char* part) { return place_.prefix + of + part; };
        Experts x;
        x.gate = loader.experts(name(loader.has(name("_gate")) ? "_gate" : "_up"), count, n, dim);
        if (loader.has(name("_gate"))) x.up = loader.experts(name("_up"), count, n, dim);
        x.down = loader.experts(name("_down"), count, dim, n);
        x.gate_bias = loader.optional_vector(name("_gate_bias"), std::uint64_t{count} * n);
        x.up_bias = loader.optional_vector(name("_up_bias"), std::uint64_t{count} * n);
        x.down_bias = loader.optional_vector(name("_down_bias"), std::uint64_t{count} * dim);
        return x;
    }

    // The experts have one; what stands beside them has that of a feed-forward then.
    static bool has_own_norm(const Loader& loader, const BlockPlace& place) {
        return loader.has(place.name("experts_norm"));
    }

    Act normed(Emitter& e, const char* name, const Norm& norm, u32 formats) const {
        return e.block_input(name, place_.layer, norm, formats);
    }

    void add_plain(Emitter& e, const Binding& sum) const {
        if (post_shared_) {
            e.add_normed("shared_post_norm", place_.layer, e.activations.f32("shared_branch"), post_shared_, sum);
            return;
        }
        e.matmul("shared_down", place_.layer, e.activations.act("shared"), plain_down_, sum,
                 {.bias = plain_down_bias_, .accumulate = true});
    }

    void load_plain(Loader& loader) {
        const u32 dim = place_.config.dim, n = config_.shared_dim;
        if (loader.has(place_.name("shared_gate"))) plain_.gate = loader.matmul(place_.name("shared_gate"), n, dim);
        plain_.up = loader.matmul(place_.name("shared_up"), n, dim);
        plain_down_ = loader.matmul(place_.name("shared_down"), dim, n);
        plain_.gate_bias = loader.optional_vector(place_.name("shared_gate_bias"), n);
        plain_.up_bias = loader.optional_vector(place_.name("shared_up_bias"), n);
        plain_down_bias_ = loader.optional_vector(place_.name("shared_down_bias"), dim);
        if (has_own_norm(loader, place_)) shared_norm_ = loader.optional_norm(place_.name("ffn_norm"), dim);
        post_shared_ = loader.optional_vector(place_.name("post_shared_norm"), dim);
    }

    u32 plain_formats(const Device& device) const {
        if (!plain_down_) return 0;
        return device.matmul_input(plain_.up.dtype) | (plain_.gate ? device.matmul_input(plain_.gate.dtype) : 0);
    }
    u32 input_formats(const Device& device) const {
        u32 formats = device.matmul_input(latent_in_ ? latent_in_.dtype : routed_.gate.dtype);
        if (!router_norm_) formats |= device.matmul_input(routed_.router.dtype);
        if (shared_) formats |= device.matmul_input(shared_.router.dtype) | device.matmul_input(shared_.gate.dtype);
        return shared_norm_ ? formats : formats | plain_formats(device);
    }

    u32 added_formats(const Emitter& e) const {
        const Weight weights[] = {plain_.gate, plain_.up, latent_in_};
        return e.adapter_formats(weights);
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
        e.route(name + "_route", place_.layer, logits, x.router.rows, used, r,
                {.ids = e.activations.f32(name + "_ids"),
                 .weights = e.activations.f32(name + "_weights"),
                 .choice_bias = choice_bias,
                 .expert_scale = expert_scale});
    }

    // What experts read of the rows.
    Act latent(Emitter& e, const Act& input) const {
        const Act& out = e.activations.act("latent_in");
        e.matmul("latent_in", place_.layer, input, latent_in_, out.f32);
        const u32 format = e.input_format(routed_.gate);
        if (format != kActF32) e.quantize("latent_rows", place_.layer, out, latent_, format);
        return out;
    }

    // The same of a norm of its own, whose place is its own, so that nothing waits for it.
    void normed_plain(Emitter& e, Phase phase) const {
        const Act& out = e.activations.act("shared");
        const u32 formats = e.input_formats(plain_down_);
        if (phase == Phase::kDecode && e.fuses_norms() && plain_.gate && plain_.fuses() && !added_formats(e)) {
            e.norm_gated("shared", place_.layer, config_.activation, shared_norm_, plain_, out, formats);
            return;
        }
        const Act& input = e.activations.act("shared_input");
        e.norm("shared_norm", place_.layer, e.hidden(), shared_norm_, input,
               plain_formats(e.device) | added_formats(e));
        plain(e, input, out, formats);
    }

    // out = act(x·Wgᵀ) * x·Wuᵀ, or act(x·Wuᵀ), of the shared expert that has no router.
    void plain(Emitter& e, const Act& input, const Act& out, u32 formats) const {
        if (plain_.gate) return e.gated("shared", place_.layer, config_.activation, input, plain_, out, formats);
        const Binding& up = e.activations.f32("up");
        e.matmul("shared_up", place_.layer, input, plain_.up, up, {.bias = plain_.up_bias});
        e.activate("shared_act", place_.layer, config_.activation, rows_in(up, config_.shared_dim), {}, out, formats);
    }

    void gate_up(Emitter& e, const Act& input, const Experts& x, const std::string& name, u32 used) const {
        const u32 n = static_cast<u32>(x.gate.rows), k = static_cast<u32>(x.gate.cols);
        auto c = e.emit(Op::kExpertsGateUp, name + (x.up ? "_gate_up" : "_up"), place_.layer);
        c.input(input, e.input_format(x.gate)).weight(x.gate);
        x.up ? c.weight(x.up) : c.buffer({});
        c.buffer(x.gate_bias)
            .buffer(x.up_bias)
            .buffer(e.activations.f32(name + "_ids"))
            .act(e.activations.act(name))
            .shape(std::to_string(used) + "x" + shape_of((x.up ? 2ull : 1ull) * n, k))
            .params(ExpertsGateUpParams{.rows = 0,
                                        .experts = static_cast<u32>(x.gate.count),
                                        .chosen = used,
                                        .n = n,
                                        .k = k,
                                        .activation = config_.activation,
                                        .formats = e.input_format(x.down),
                                        .has_bias = bool(x.gate_bias),
                                        .limit = config_.limit,
                                        .sharpness = config_.sharpness,
                                        .up_offset = config_.up_offset,
                                        .gated = bool(x.up)});
    }

    void down(Emitter& e, const Experts& x, const std::string& name, u32 used, const Binding& y,
              bool accumulate) const {
        const u32 n = static_cast<u32>(x.down.rows), k = static_cast<u32>(x.down.cols);
        e.emit(Op::kExpertsDown, name + "_down", place_.layer)
            .input(e.activations.act(name), e.input_format(x.down))
            .weight(x.down)
            .buffer(y)
            .buffer(x.down_bias)
            .buffer(e.activations.f32(name + "_ids"))
            .buffer(e.activations.f32(name + "_weights"))
            .shape(std::to_string(used) + "x" + shape_of(n, k))
            .params(ExpertsDownParams{.rows = 0,
                                      .experts = static_cast<u32>(x.down.count),
                                      .chosen = used,
                                      .n = n,
                                      .k = k,
                                      .accumulate = accumulate,
                                      .has_bias = bool(x.down_bias)});
    }

    const BlockPlace place_;
    const ExpertsConfig config_;
    Norm norm_, router_norm_, shared_norm_;
    Vector post_experts_, post_shared_;
    Emitter::OutputNorms norms_;
    Experts routed_, shared_;
    Emitter::Gated plain_;  // a shared expert without a router
    Weight plain_down_, latent_in_, latent_out_;
    u32 latent_ = 0;  // elements of what experts read
    Vector choice_bias_, expert_scale_, plain_down_bias_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const ExpertsConfig& experts) {
    return std::make_unique<ExpertsBlock>(loader, place, experts);
}

}  // namespace akunu
