// A learned augmented residual (Menghani et al., "LAuReL: Learned Augmented Residual Layer", 2024) beside the attention
// block before it, of what that has read, x:
//   h = (h + x + norm(R·(L·x))) / √2
#include <numbers>

#include "core/error.h"
#include "plan/block.h"

namespace akunu {

namespace {

class LaurelBlock final : public Block {
  public:
    LaurelBlock(Loader& loader, const BlockPlace& place, const LaurelConfig& laurel)
        : place_(place),
          rank_(laurel.rank),
          left_(loader.matmul(place.name("laurel_left"), rank_, place.config.dim)),
          right_(loader.matmul(place.name("laurel_right"), place.config.dim, rank_)),
          norm_(loader.vector(place.name("post_laurel_norm"), place.config.dim)) {
        if (!loader.has(place.name("attn_norm"))) {
            throw InvalidArgumentError("tensor '" + place.name("attn_norm") +
                                       "' is missing, whose output a learned residual reads");
        }
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", place_.config.dim, kActF32 | device.matmul_input(left_.dtype));
        a.reserve("laurel", rank_, kActF32 | device.matmul_input(right_.dtype));
        a.reserve("branch", place_.config.dim);
    }

    void emit(Emitter& e, Phase /*phase*/) const override {
        const Act &input = e.activations.act("input"), &inner = e.activations.act("laurel");
        const Binding& branch = e.activations.f32("branch");
        e.matmul("laurel_left", place_.layer, input, left_, inner.f32);
        const std::uint32_t format = e.input_format(right_);
        if (format != kActF32) e.quantize("laurel_left_out", place_.layer, inner, rank_, format);
        e.matmul("laurel_right", place_.layer, inner, right_, branch);
        e.add_rows("laurel", place_.layer, input.f32, e.hidden(), {.accumulate = true});
        e.add_normed("laurel_post_norm", place_.layer, branch, norm_, e.hidden(), std::numbers::sqrt2_v<float> / 2);
    }

  private:
    const BlockPlace place_;
    const std::uint32_t rank_;
    Weight left_, right_;
    Vector norm_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const LaurelConfig& laurel) {
    return std::make_unique<LaurelBlock>(loader, place, laurel);
}

}  // namespace akunu
