// A gated short convolution in attention's place (LFM2):
//   b, c, v = norm(h)·Wᵀ (+ bias)
//   h += (c * conv(b * v))·Woᵀ (+ bias), whose state is b * v of the sequence's last rows (ShortConvParams)
#include "plan/block.h"

namespace akunu {

namespace {

class ShortConvolutionBlock final : public Block {
  public:
    ShortConvolutionBlock(Loader& loader, const BlockPlace& place, const ShortConvolutionConfig& convolution)
        : place_(place), taps_(convolution.taps) {
        const std::uint64_t dim = place.config.dim;
        norm_ = loader.norm(place.name("attn_norm"), dim);
        input_ = loader.matmul(place.name("conv_input"), 3 * dim, dim);
        input_bias_ = loader.optional_vector(place.name("conv_input_bias"), 3 * dim);
        weights_ = loader.depthwise(place.name("conv_taps"), dim, taps_, place.name("conv_taps_bias"));
        biased_ = loader.has(place.name("conv_taps_bias"));
        output_ = loader.matmul(place.name("conv_output"), dim, dim);
        output_bias_ = loader.optional_vector(place.name("conv_output_bias"), dim);
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", place_.config.dim, device.matmul_input(input_.dtype));
        a.reserve("conv_input", 3ull * place_.config.dim);
        a.reserve("conv", place_.config.dim, device.matmul_input(output_.dtype) | u32{kActF32});
    }

    Kept keeps(const Device& /*device*/, const KvTypes& /*types*/) const override {
        return {.bytes = (taps_ - 1 + kStashRows) * std::uint64_t{place_.config.dim} * sizeof(float),
                .owner = Kept::Owner::kSequence};
    }

    void emit(Emitter& e, Phase /*phase*/) const override {
        const u32 dim = place_.config.dim;
        const Act input = e.block_input("attn_norm", place_.layer, norm_, e.input_formats(input_));
        const Binding& parts = e.activations.f32("conv_input");
        const Act& out = e.activations.act("conv");
        e.matmul("conv_input", place_.layer, input, input_, parts, {.bias = input_bias_});
        e.emit(Op::kShortConv, "conv", place_.layer)
            .buffer(parts)
            .buffer(weights_)
            .buffer(e.step.state.at(place_.index))
            .buffer(out.f32)
            .buffer(e.step.rows)
            .buffer(e.step.slots)
            .shape(shape_of(dim, taps_))
            .params(ShortConvParams{.rows = 0,
                                    .step = 0,
                                    .channels = dim,
                                    .taps = taps_,
                                    .has_bias = biased_,
                                    .activation = 0,
                                    .state_words = e.step.state_words,
                                    .gated = 1});
        const u32 format = e.input_format(output_);
        if (format != kActF32) e.quantize("conv_out", place_.layer, out, dim, format);
        e.add_to_residual("conv_output", place_.layer, out, output_, output_bias_, {});
    }

  private:
    const BlockPlace place_;
    const u32 taps_;
    Norm norm_;
    Weight input_, output_;
    Vector weights_, input_bias_, output_bias_;
    bool biased_ = false;  // the convolution itself
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const ShortConvolutionConfig& convolution) {
    return std::make_unique<ShortConvolutionBlock>(loader, place, convolution);
}

}  // namespace akunu
