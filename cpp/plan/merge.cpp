// The end of an encoder of images, or a branch of it: rows for a decoder's sequence, of so many patches each,
//   x = the patches of a row side by side, or their mean; h of each patch is normed before, x behind, or neither
//   x = (gain·x - bias)·scale, where the model has such a standard; then it may be normed without a weight
//   x = x·W0ᵀ, where the model has it
//   out = act(x·W1ᵀ + b1)·W2ᵀ + b2, or x·W2ᵀ + b2
// Patches of a row stand together, so that rows side by side are rows of a longer one in place.
#include <vector>

#include "plan/block.h"

namespace akunu {

namespace {

class MergeBlock final : public Block {
  public:
    MergeBlock(Loader& loader, const BlockPlace& place, const MergeConfig& merge)
        : place_(place), merge_(merge), width_(merge.mean ? place.config.dim : place.config.dim * merge.patches) {
        const std::uint64_t out = place.config.image->dim;
        norm_ = loader.optional_norm(place.name("norm"), place.config.dim);
        merged_norm_ = loader.optional_norm(place.name("merged_norm"), width_);
        if (merge.normed) merged_norm_.weight = loader.computed(std::vector<float>(width_, 1.0f));
        if (loader.has(place.name("standard_scale"))) {
            std::vector<float> scale = loader.values(place.name("standard_scale"), width_),
                               bias = loader.values(place.name("standard_bias"), width_);
            for (std::size_t i = 0; i < scale.size(); ++i) {
                bias[i] *= -scale[i];
                scale[i] *= merge.gain;
            }
            standard_scale_ = loader.computed(scale);
            standard_bias_ = loader.computed(bias);
        }
        // Its inputs are in the file element by element, those of all patches together.
        if (loader.has(place.name("before"))) {
            before_ = loader.convolution(place.name("before"), place.config.dim, place.config.dim, merge.patches, true);
        }
        const std::uint64_t width = before_ ? before_.rows : width_;
        if (merge.dim) {
            first_ = loader.matmul(place.name("first"), merge.dim, width);
            first_bias_ = loader.optional_vector(place.name("first_bias"), merge.dim);
        }
        last_ = loader.matmul(place.name("last"), out, merge.dim ? merge.dim : width);
        last_bias_ = loader.optional_vector(place.name("last_bias"), out);
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("normed", place_.config.dim);
        const std::uint64_t n = merge_.patches;
        a.reserve_merged("merged", width_, kActF32 | device.matmul_input(product().dtype), n);
        if (before_) a.reserve_merged("before", before_.rows, kActF32 | device.matmul_input(next().dtype), n);
        if (!first_) return;
        a.reserve_merged("inner", merge_.dim, kActF32, n);
        a.reserve_merged("inner_act", merge_.dim, device.matmul_input(last_.dtype), n);
    }

    void emit(Emitter& e, Phase /*phase*/) const override {
        const std::uint32_t max_rows = e.max_rows();
        Binding x = e.activations.f32("hidden");
        if (norm_) {
            const Binding& normed = e.activations.f32("normed");
            if (norm_.bias) {
                e.norm("merge_norm", place_.layer, x, norm_, {normed, {}}, kActF32);
            } else {
                e.rms_norm("merge_norm", place_.layer, rows_in(x, place_.config.dim), norm_.weight, {normed, {}},
                           {.eps = merge_.patch_eps});
            }
            x = normed;
        }
        e.follow(PatchSource::kLogits, e.step.max_logits);
        emit_rows(e, x);
        e.follow(PatchSource::kRows, max_rows);
    }

  private:
    // The first product with merged patches, and the one behind `before_`.
    const Weight& next() const { return first_ ? first_ : last_; }
    const Weight& product() const { return before_ ? before_ : next(); }

    // The epsilon of the norm of merged patches, whose input is smaller by the gain where there is no standard.
    float eps() const {
        if (!merge_.normed) return merge_.norm_eps;
        return standard_scale_ ? merge_.norm_eps : merge_.norm_eps / (merge_.gain * merge_.gain);
    }

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
        if (standard_scale_) {
            e.affine("merge_standard", place_.layer, x, standard_scale_, standard_bias_, merged.f32, width_, {});
            x = merged.f32;
        }
        const std::uint32_t format = e.input_format(product());
        Act input{x, merged.compact};
        if (merged_norm_) {
            input = merged;
            if (merged_norm_.bias) {
                e.layer_norm("merged_norm", place_.layer, x, merged_norm_, input, width_, format, false, eps());
            } else {
                e.rms_norm("merged_norm", place_.layer, rows_in(x, width_), merged_norm_.weight, input,
                           {.eps = eps(), .formats = format});
            }
        } else if (format != kActF32) {
            e.quantize("merged", place_.layer, input, width_, format);
        }
        if (before_) {
            const Act& before = e.activations.act("before");
            e.matmul("merge_before", place_.layer, input, before_, before.f32);
            const std::uint32_t own = e.input_format(next());
            if (own != kActF32) e.quantize("merge_before", place_.layer, before, static_cast<u32>(before_.rows), own);
            input = before;
        }
        if (first_) {
            const Binding& inner = e.activations.f32("inner");
            e.matmul("merge_first", place_.layer, input, first_, inner, {.bias = first_bias_});
            const Act& activated = e.activations.act("inner_act");
            e.activate("merge_act", place_.layer, merge_.activation, rows_in(inner, merge_.dim), {}, activated,
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
    Weight before_, first_, last_;
    Vector first_bias_, last_bias_, standard_scale_, standard_bias_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const MergeConfig& merge) {
    return std::make_unique<MergeBlock>(loader, place, merge);
}

}  // namespace akunu
