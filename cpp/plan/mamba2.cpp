// Mamba-2 in attention's place (Dao and Gu, 2024; Granite 4, Nemotron-H):
//   z, xbc, dt = norm(h)·Wᵀ; x, B, C = silu(conv(xbc))
//   y = the scan of x, B, C and dt, whose state is the sequence's (SsmScanParams)
//   h += (rms_norm(y·silu(z))·w)·Woᵀ, the norm over each group of heads
#include <cmath>

#include "plan/block.h"

namespace akunu {

namespace {

class Mamba2Block final : public Block {
  public:
    Mamba2Block(Loader& loader, const BlockPlace& place, const Mamba2Config& mamba)
        : place_(place),
          mamba_(mamba),
          record_(delta_record(mamba.blocks(), mamba.heads, mamba.state_dim, mamba.head_dim)) {
        const std::uint64_t dim = place.config.dim, heads = mamba.heads;
        norm_ = loader.norm(place.name("attn_norm"), dim);
        z_ = loader.matmul(place.name("mamba_z"), mamba.values(), dim);
        xbc_ = loader.matmul(place.name("mamba_xbc"), mamba.channels(), dim);
        dt_ = loader.matmul(place.name("mamba_dt"), heads, dim);
        z_bias_ = loader.optional_vector(place.name("mamba_z_bias"), mamba.values());
        xbc_bias_ = loader.optional_vector(place.name("mamba_xbc_bias"), mamba.channels());
        dt_in_bias_ = loader.optional_vector(place.name("mamba_dt_in_bias"), heads);
        conv_ = loader.depthwise(place.name("mamba_conv"), mamba.channels(), mamba.taps, place.name("mamba_conv_bias"));
        has_conv_bias_ = loader.has(place.name("mamba_conv_bias"));
        std::vector<float> constants;
        const auto add = [&](const char* tensor) {
            const std::vector<float> values = loader.values(place.name(tensor), heads);
            constants.insert(constants.end(), values.begin(), values.end());
        };
        // A file has the decay's factor, or A_log, the logarithm of its negative.
        const bool logarithm = loader.has(place.name("mamba_a_log"));
        add(logarithm ? "mamba_a_log" : "mamba_decay");
        if (logarithm) {
            for (float& v : constants) v = -std::exp(v);
        }
        add("mamba_dt_bias");
        add("mamba_d");
        constants_ = loader.computed(constants);
        gated_norm_ = loader.vector(place.name("mamba_norm"), mamba.values());
        output_ = loader.matmul(place.name("mamba_output"), dim, mamba.values());
        output_bias_ = loader.optional_vector(place.name("mamba_output_bias"), dim);
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", place_.config.dim, input_formats(device));
        a.reserve("mamba_z", mamba_.values());
        a.reserve("mamba_xbc", mamba_.channels());
        a.reserve("mamba_conv", mamba_.channels());
        a.reserve("mamba_dt", mamba_.heads);
        a.reserve("mamba_y", mamba_.values());
        a.reserve("mamba", mamba_.values(), device.matmul_input(output_.dtype));
    }

    Kept keeps(const Device& /*device*/, const KvTypes& /*types*/) const override {
        const std::uint64_t inputs = (mamba_.taps - 1 + kStashRows) * std::uint64_t{mamba_.channels()};
        return {.bytes = (conv_at() + inputs) * sizeof(float), .owner = Kept::Owner::kSequence};
    }

    void emit(Emitter& e, Phase /*phase*/) const override {
        const Act input = e.block_input("attn_norm", place_.layer, norm_, input_formats(e.device) | added_formats(e));
        const Binding &z = e.activations.f32("mamba_z"), &xbc = e.activations.f32("mamba_xbc");
        const Binding &convolved = e.activations.f32("mamba_conv"), &dt = e.activations.f32("mamba_dt");
        const Binding& y = e.activations.f32("mamba_y");
        e.matmul("mamba_xbc", place_.layer, input, xbc_, xbc, {.bias = xbc_bias_});
        e.matmul("mamba_dt", place_.layer, input, dt_, dt, {.bias = dt_in_bias_});
        e.matmul("mamba_z", place_.layer, input, z_, z, {.bias = z_bias_});
        const Binding& state = e.step.state.at(place_.index);
        e.emit(Op::kShortConv, "mamba_conv", place_.layer)
            .buffer(xbc)
            .buffer(conv_)
            .buffer({state.buffer, state.offset + conv_at() * sizeof(float)})
            .buffer(convolved)
            .buffer(e.step.rows)
            .buffer(e.step.slots)
            .shape(shape_of(mamba_.channels(), mamba_.taps))
            .params(ShortConvParams{.rows = 0,
                                    .step = 0,
                                    .channels = mamba_.channels(),
                                    .taps = mamba_.taps,
                                    .has_bias = has_conv_bias_,
                                    .activation = 1 + u32{kActSilu},
                                    .state_words = e.step.state_words,
                                    .gated = 0});
        e.emit(Op::kSsmScan, "mamba_scan", place_.layer)
            .buffer(convolved)
            .buffer(dt)
            .buffer(constants_)
            .buffer(state)
            .buffer(y)
            .buffer(e.step.rows)
            .buffer(e.step.state_spans)
            .buffer(e.step.slots)
            .shape(shape_of(mamba_.heads, mamba_.state_dim) + "x" + std::to_string(mamba_.head_dim))
            .params(SsmScanParams{.rows = 0,
                                  .step = 0,
                                  .groups = mamba_.groups,
                                  .blocks = mamba_.blocks(),
                                  .heads = mamba_.heads,
                                  .state_dim = mamba_.state_dim,
                                  .head_dim = mamba_.head_dim,
                                  .state_words = e.step.state_words});
        const Act& out = e.activations.act("mamba");
        const u32 group = mamba_.values() / mamba_.groups;
        e.emit(Op::kGatedNorm, "mamba_norm", place_.layer)
            .buffer(y)
            .buffer(z)
            .buffer(gated_norm_)
            .act(out)
            .shape(shape_of(mamba_.groups, group))
            .params(GatedNormParams{.rows = 0,
                                    .groups = mamba_.groups,
                                    .dim = group,
                                    .eps = mamba_.norm_eps,
                                    .formats = e.input_formats(output_)});
        e.add_to_residual("mamba_output", place_.layer, out, output_, output_bias_, {});
    }

  private:
    u32 input_formats(const Device& device) const {
        return device.matmul_input(z_.dtype) | device.matmul_input(xbc_.dtype) | device.matmul_input(dt_.dtype);
    }
    u32 added_formats(const Emitter& e) const {
        const Weight weights[] = {z_, xbc_, dt_};
        return e.adapter_formats(weights);
    }
    // Where the convolution's part of a record begins, in floats.
    std::uint64_t conv_at() const { return (record_.words + 15) / 16 * 16; }

    const BlockPlace place_;
    const Mamba2Config mamba_;
    const DeltaRecord record_;
    Norm norm_;
    Vector conv_, constants_, gated_norm_, z_bias_, xbc_bias_, dt_in_bias_, output_bias_;
    bool has_conv_bias_ = false;
    Weight z_, xbc_, dt_, output_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const Mamba2Config& mamba) {
    return std::make_unique<Mamba2Block>(loader, place, mamba);
}

}  // namespace akunu
