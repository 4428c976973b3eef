// The end of an encoder of images, or a branch of it: rows for a decoder's text, of so many patches each,
//   x = the patches of a row side by side, or their mean; h of each patch is normed before, x behind, or neither
//   out = act(x·W1ᵀ + b1)·W2ᵀ + b2, or x·W2ᵀ + b2
// Patches of a row stand together, so that rows side by side are rows of a longer one in place.
#include "plan/block.h"

namespace akunu {

namespace {

class MergeBlock final : public Block {
  public:
    MergeBlock(Loader& loader, const BlockPlace& place, const MergeConfig& merge)
        : place_(place), merge_(merge), width_(merge.mean ? place.config.dim : place.config.dim * merge.patches) {
        const std::uint64_t inner = merge.dim ? merge.dim : width_, out = place.config.image->dim;
        norm_ = loader.optional_norm(place.name("norm"), place.config.dim);
        merged_norm_ = loader.optional_norm(place.name("merged_norm"), width_);
        if (merge.dim) {
            first_ = loader.matmul(place.name("first"), inner, width_);
            first_bias_ = loader.optional_vector(place.name("first_bias"), inner);
        }
        last_ = loader.matmul(place.name("last"), out, inner);
        last_bias_ = loader.optional_vector(place.name("last_bias"), out);
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("normed", place_.config.dim);
        const std::uint64_t n = merge_.patches;
        a.reserve_merged("merged", width_, kActF32 | device.matmul_input(first_ ? first_.dtype : last_.dtype), n);
        if (!first_) return;
        a.reserve_merged("inner", merge_.dim, kActF32, n);
        a.reserve_merged("inner_act", merge_.dim, device.matmul_input(last_.dtype), n);
    }

    void emit(Emitter& e, Phase /*phase*/) const override {
        const std::uint32_t max_rows = e.max_rows();
        Binding x = e.activations.f32("hidden");
        if (norm_) {
            const Binding& normed = e.activations.f32("normed");
            e.norm("merge_norm", place_.layer, x, norm_, {normed, {}}, kActF32);
            x = normed;
        }
        e.follow(PatchSource::kLogits, e.step.max_logits);
        emit_rows(e, x);
        e.follow(PatchSource::kRows, max_rows);
    }

  private:
    void emit_rows(Emitter& e, Binding x) const {
        const Act& merged = e.activations.act("merged");
        if (merge_.mean) {
            e.emit(Op::kPool, "merge_mean", place_.layer)
                .buffer(x)
                .buffer(e.step.merge_rows)
                .buffer(e.step.logit_rows)
                .buffer(merged.f32)
                .shape(std::to_string(width_))
                .params(PoolParams{.rows = 0, .dim = width_, .pooling = kPoolMean});
            x = merged.f32;
        }
        const std::uint32_t format = e.input_format(first_ ? first_ : last_);
        Act input{x, merged.compact};
        if (merged_norm_) {
            const Act out{merged.f32, merged.compact};
            if (merged_norm_.bias) {
                e.layer_norm("merged_norm", place_.layer, x, merged_norm_, out, width_, format);
            } else {
                e.rms_norm("merged_norm", place_.layer, x, merged_norm_.weight, out,
                           {.dim = width_, .eps = place_.config.norm_eps, .formats = format});
            }
            input = out;
        } else if (format != kActF32) {
            e.quantize("merged", place_.layer, input, width_, format);
        }
        if (first_) {
            const Binding& inner = e.activations.f32("inner");
            e.matmul("merge_first", place_.layer, input, first_, inner, {.bias = first_bias_});
            const Act& activated = e.activations.act("inner_act");
            e.activate("merge_act", place_.layer, merge_.activation, inner, {}, merge_.dim, activated,
                       e.input_format(last_));
            input = activated;
        }
        const ImageConfig& image = *place_.config.image;
        const Binding& rows = e.step.vectors;
        const std::uint64_t skip = std::uint64_t{merge_.part} * image.dim * sizeof(float);
        e.matmul("merge_last", place_.layer, input, last_, {rows.buffer, rows.offset + skip, 0},
                 {.bias = last_bias_, .y_stride = image.dim * image.parts});
    }

    const BlockPlace place_;
    const MergeConfig merge_;
    const u32 width_;  // of merged patches
    Norm norm_, merged_norm_;
    Weight first_, last_;
    Vector first_bias_, last_bias_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const MergeConfig& merge) {
    return std::make_unique<MergeBlock>(loader, place, merge);
}

}  // namespace akunu
