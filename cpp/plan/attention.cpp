// Attention over the paged cache, causal, or over all rows of a sequence, which then are in one step:
//   q, k, v = norm(h)·Wᵀ (+ bias)
//   q, k = rope(norm(q), norm(k)); pages[position] = k, v
//   h += (softmax(scale·q·Kᵀ)·V)·Woᵀ, where heads may have a sink: a score that has no value,
// or, where it has a gate, of each element: h += (sigmoid(norm(h)·Wgᵀ) * softmax(...)·V)·Woᵀ.
// Where it has no Wv, v is k before its norm. A block that reads the keys and values of another has q alone.
#include <algorithm>

#include "core/error.h"
#include "core/head_norm.h"
#include "plan/block.h"

namespace akunu {

namespace {

class AttentionBlock final : public Block {
  public:
    AttentionBlock(Loader& loader, const BlockPlace& place, const AttentionConfig& attention)
        : place_(place), attention_(attention) {
        const std::uint64_t dim = place.config.dim, q = attention.q_dim(), kv = attention.kv_dim();
        const bool whole = attention.norms_whole_rows || attention.norms_by_head;
        const bool own = !attention.kv_owner, split = attention.cards > 1;
        const Split rows = split ? Split::kRows : Split::kNone, columns = split ? Split::kColumns : Split::kNone;
        norm_ = loader.optional_norm(place.name("attn_norm"), dim);
        if (parallel_follows()) beside_norm_ = loader.optional_norm(place.name("ffn_norm"), dim);
        q_ = loader.matmul(place.name("attn_q"), q, dim, false, rows);
        if (own) {
            k_ = loader.matmul(place.name("attn_k"), kv, dim, false, rows);
            const bool has_v = loader.has(place.name("attn_v"));
            v_ = has_v ? loader.matmul(place.name("attn_v"), kv, dim, false, rows) : k_;
            bias_ = loader.joined({{place.name("attn_q_bias"), q, false, split},
                                   {place.name("attn_k_bias"), kv, true, split},
                                   {place.name(has_v ? "attn_v_bias" : "attn_k_bias"), kv, !has_v, split}});
        } else {
            bias_ = loader.optional_vector(place.name("attn_q_bias"), q, split);
        }
        qk_norm_ = loader.joined({{place.name("attn_q_norm"), whole ? q : attention.head_dim, false, split && whole},
                                  {place.name("attn_k_norm"), whole ? kv : attention.head_dim, !own, split && whole}});
        if (attention.q_gain != 0) {
            std::vector<float> weights(2ull * attention.head_dim, 1.0f);
            std::fill_n(weights.begin(), attention.head_dim, attention.q_gain);
            qk_norm_ = loader.computed(weights);
        }
        if (loader.has(place.name("attn_gate"))) {
            gate_ = loader.matmul(place.name("attn_gate"), q, dim, false, rows);
            gate_bias_ = loader.optional_vector(place.name("attn_gate_bias"), q, split);
        }
        sinks_ = loader.optional_vector(place.name("attn_sinks"), attention.n_heads, split);
        output_ = loader.matmul(place.name("attn_output"), dim, q, false, columns);
        output_bias_ = loader.added_once(place.name("attn_output_bias"), dim, split);
        norms_ = place.output_norms(loader, "post_attn_norm", "attn_output_norm");
        if (own && attention.norm_values) value_norm_ = loader.computed(std::vector<float>(attention.head_dim, 1.0f));
    }

    void reserve(const Device& device, Activations& a, std::uint32_t context) const override {
        a.reserve("input", place_.config.dim, input_formats(device));
        a.reserve("qkv", attention_.q_dim() + 2ull * own_kv_dim());
        a.reserve("attn", attention_.q_dim(), kActF32 | Emitter::input_format(device, output_));
        if (gate_) {
            a.reserve("attn_gate", attention_.q_dim());
            a.reserve("attn_gated", attention_.q_dim(), Emitter::input_format(device, output_));
        }
        Emitter::reserve_bounded(device, a, {&q_, &k_, &v_, &output_});
        if (norms_.branch) a.reserve("branch", place_.config.dim);
        if (attention_.cards > 1) a.reserve("partial_sums", place_.config.dim);
        if (device.traits().split_attention) {
            a.reserve_bytes("partials",
                            device.attention_partial_bytes(attention_.n_heads, attention_.head_dim, context));
        }
    }

    Kept keeps(const Device& device, const KvTypes& types) const override {
        if (!owns_kv()) return {};
        const std::uint32_t heads = attention_.n_kv_heads, dim = attention_.head_dim;
        return {.bytes = device.kv_bytes(types.k, heads, dim) + device.kv_bytes(types.v, heads, dim),
                .window = attention_.window};
    }
    std::uint32_t attention_formats(const Device& device) const override {
        return gate_ ? std::uint32_t{kActF32} : Emitter::input_format(device, output_);
    }

    void emit(Emitter& e, Phase phase) const override {
        if (beside_norm_) {
            e.norm("ffn_norm", place_.layer, e.hidden(), beside_norm_, e.activations.act("beside"),
                   e.activations.formats("beside"));
        }
        project(e, phase);
        norm_rows(e, attention_.n_heads);
        if (value_norm_) {
            const Act heads = rows_in(projections(e).v, attention_.kv_dim()).divided(attention_.n_kv_heads);
            e.rms_norm("attn_v_norm", place_.layer, heads, value_norm_, heads, {.eps = attention_.norm_eps});
        }
        prepare_heads(e, attention_.n_heads);
        attend(e, phase);
        const Act& out = e.activations.act(gate_ ? "attn_gated" : "attn");
        if (gate_) {
            const u32 dim = attention_.q_dim();
            e.activate("attn_gated", place_.layer, kActSigmoid, rows_in(e.activations.f32("attn_gate"), dim),
                       rows_in(e.activations.f32("attn"), dim), out, e.input_formats(output_));
        }
        e.add_to_residual("attn_output", place_.layer, out, output_, output_bias_, norms_, attention_.cards > 1);
    }

    void emit_keys(Emitter& e) const override {
        const Projections p = projections(e);
        const std::uint32_t q = attention_.q_dim(), kv = attention_.kv_dim();
        const std::uint32_t formats = e.input_format(k_) | e.input_format(v_);
        const Act input = e.block_input("attn_norm", place_.layer, norm_, formats);
        e.matmul("attn_k", place_.layer, input, k_, p.k, {.bias = bias(q, kv)});
        e.matmul("attn_v", place_.layer, input, v_, p.v, {.bias = bias(q + kv, kv)});
        norm_rows(e, 0);
        prepare_heads(e, 0);
    }

  private:
    bool owns_kv() const { return !attention_.kv_owner; }
    // The mixer of the block behind it.
    template <typename Config>
    const Config* next() const {
        return place_.next ? std::get_if<Config>(&place_.next->mixer) : nullptr;
    }
    bool parallel_follows() const {
        const auto* feed_forward = next<FeedForwardConfig>();
        return feed_forward && feed_forward->parallel;
    }
    // Whether the block behind it reads what it reads.
    bool feeds_next() const { return next<LaurelConfig>() || (parallel_follows() && !beside_norm_); }
    std::uint32_t own_kv_dim() const { return owns_kv() ? attention_.kv_dim() : 0; }

    std::uint32_t input_formats(const Device& device) const {
        std::uint32_t formats = Emitter::input_format(device, q_);
        if (owns_kv()) formats |= Emitter::input_format(device, k_) | Emitter::input_format(device, v_);
        if (gate_) formats |= Emitter::input_format(device, gate_);
        return formats;
    }

    // What adapters read besides.
    std::uint32_t added_formats(const Emitter& e) const {
        const Weight weights[] = {q_, k_, v_, gate_};
        return e.adapter_formats(weights);
    }

    // The rows of q, of k and of v, one behind the other in a buffer, whose end belongs to none.
    struct Projections {
        Binding q, k, v, all;
    };
    Projections projections(const Emitter& e) const {
        const Binding& all = e.activations.f32("qkv");
        const std::uint64_t rows = e.activations.rows(), q = rows * attention_.q_dim(), kv = rows * own_kv_dim();
        if (!owns_kv()) return {part_of(all, 0, q), {}, {}, all};
        return {part_of(all, 0, q), part_of(all, q, kv), part_of(all, q + kv, kv), all};
    }
    Vector bias(std::uint64_t skip, std::uint64_t n) const { return part_of(bias_, skip, n); }

    void project(Emitter& e, Phase phase) const {
        const Projections p = projections(e);
        const std::uint32_t q = attention_.q_dim(), kv = attention_.kv_dim();
        const bool same_k = q_.dtype == k_.dtype, planar = q_.scales || k_.scales || v_.scales || gate_.scales;
        const bool fuses = e.fuses_norms() && norm_ && !feeds_next() && !added_formats(e);
        if (phase == Phase::kDecode && fuses && owns_kv() && same_k && !planar) {
            if (gate_) fused(e, "attn_gate", gate_, nullptr, nullptr, e.activations.f32("attn_gate"), gate_bias_);
            // Q4_K_M and its like keep some layers' v in a wider type.
            const auto mixed = e.device.traits().mixed_qkv;
            if (q_.dtype == v_.dtype || std::ranges::find(mixed, MixedQkv{q_.dtype, v_.dtype}) != mixed.end()) {
                fused(e, "attn_qkv", q_, &k_, &v_, p.all, bias_);
                return;
            }
            fused(e, "attn_qk", q_, &k_, nullptr, {p.all.buffer, p.all.offset, p.v.offset - p.all.offset}, bias_);
            fused(e, "attn_v", v_, nullptr, nullptr, p.v, bias(q + kv, kv));
            return;
        }
        const std::uint32_t formats =
            feeds_next() ? e.activations.formats("input") : input_formats(e.device) | added_formats(e);
        const Act input = e.block_input("attn_norm", place_.layer, norm_, formats);
        e.matmul("attn_q", place_.layer, input, q_, p.q, {.bias = bias(0, q)});
        if (gate_) {
            e.matmul("attn_gate", place_.layer, input, gate_, e.activations.f32("attn_gate"), {.bias = gate_bias_});
        }
        if (!owns_kv()) return;
        e.matmul("attn_k", place_.layer, input, k_, p.k, {.bias = bias(q, kv)});
        e.matmul("attn_v", place_.layer, input, v_, p.v, {.bias = bias(q + kv, kv)});
    }

    // Norms over the whole rows of q, unless it has no heads, and of k; those over each head are done where it is
    // rotated.
    void norm_rows(Emitter& e, std::uint32_t n_heads) const {
        if (!qk_norm_ || !attention_.norms_whole_rows) return;
        const Projections p = projections(e);
        const auto norm = [&](const char* name, const Binding& x, const Vector& weight, std::uint32_t dim) {
            e.rms_norm(name, place_.layer, rows_in(x, dim), weight, {x, {}}, {.eps = attention_.norm_eps});
        };
        if (n_heads) norm("attn_q_norm", p.q, part_of(qk_norm_, 0, attention_.q_dim()), attention_.q_dim());
        if (!owns_kv()) return;
        norm("attn_k_norm", p.k, part_of(qk_norm_, attention_.q_dim(), attention_.kv_dim()), attention_.kv_dim());
    }

    // y, ... = norm(h)·Wᵀ (+ bias) for up to three weights.
    void fused(Emitter& e, const char* name, const Weight& first, const Weight* key, const Weight* value,
               const Binding& y, const Vector& bias) const {
        const Projections p = projections(e);
        const auto skip = [&](const Binding& b) { return static_cast<u32>((b.offset - y.offset) / sizeof(float)); };
        e.norm_matmuls(name, place_.layer,
                       {.x = e.hidden(),
                        .norm = norm_.weight,
                        .eps = place_.config.norm_eps,
                        .first = &first,
                        .key = key,
                        .value = value,
                        .key_offset = key ? skip(p.k) : 0,
                        .value_offset = value ? skip(p.v) : 0,
                        .bias = bias},
                       y);
    }

    // The keys and values that it reads.
    const PagedCache& cache(const Emitter& e) const { return e.step.kv.at(attention_.kv_owner.value_or(place_.index)); }

    // Where its rows are in that cache.
    const Binding& rows(const Emitter& e) const { return cache(e).rows ? cache(e).rows : e.step.rows; }

    // Heads that are rotated, normed, or both, in place, and those that go into the cache then.
    struct Turn {
        Binding q, k, v;
        std::uint32_t n_heads, n_kv_heads;
        std::optional<std::uint32_t> rope;
        Vector norms;
    };

    // Prepares k, v and so many heads of q: all of them, or none.
    void prepare_heads(Emitter& e, std::uint32_t n_heads) const {
        const Projections p = projections(e);
        const std::uint32_t n_kv_heads = owns_kv() ? attention_.n_kv_heads : 0;
        const std::uint32_t q_norm = attention_.norms_by_head ? n_heads * attention_.head_dim : attention_.head_dim;
        const std::uint32_t k_norm = attention_.norms_by_head ? attention_.kv_dim() : attention_.head_dim;
        Vector norms = attention_.norms_whole_rows ? Vector{} : qk_norm_;
        if (attention_.norms_by_head && !n_heads) norms = part_of(norms, attention_.q_dim(), k_norm);
        const auto rope = attention_.rope, q_rope = attention_.q_rope ? attention_.q_rope : rope;
        const bool after = norms && attention_.norms_after_rope;
        if (q_rope == rope && !(after && rope)) {
            turn(e, "prepare_heads", {p.q, p.k, p.v, n_heads, n_kv_heads, rope, norms});
            return;
        }
        // Where k and q are not turned alike, or not normed before, each is turned by itself.
        const Vector before = after ? Vector{} : norms;
        if (n_heads) turn(e, "rope_q", {p.q, {}, {}, n_heads, 0, q_rope, part_of(before, 0, q_norm)});
        if (owns_kv()) {
            const Vector key = part_of(before, q_norm, k_norm);
            turn(e, "rope_k", {p.k, {}, {}, n_kv_heads, 0, rope, key});
        }
        turn(e, "prepare_heads", {p.q, p.k, p.v, n_heads, n_kv_heads, {}, after ? norms : Vector{}});
    }

    void turn(Emitter& e, const char* name, const Turn& t) const {
        const RopeSet* rope = t.rope ? &place_.config.rope_sets.at(*t.rope) : nullptr;
        if (t.n_kv_heads == 0 && !rope && !t.norms) return;
        e.emit(Op::kPrepareHeads, name, place_.layer)
            .buffer(t.q)
            .buffer(t.k)
            .buffer(t.v)
            .buffer(rope ? e.activations.f32(rope_table_name(*t.rope)) : Binding{})
            .buffer(t.n_kv_heads ? cache(e).kv : Binding{})
            .buffer(t.norms)
            .buffer(rows(e))
            .buffer(cache(e).tables)
            .kv(e.step.kv_types)
            .shape(std::to_string(t.n_heads) + "+" + shape_of(t.n_kv_heads, attention_.head_dim))
            .params(PrepareHeadsParams{.rows = 0,
                                       .step = 0,
                                       .n_heads = t.n_heads,
                                       .n_kv_heads = t.n_kv_heads,
                                       .head_dim = attention_.head_dim,
                                       .rope_dim = rope ? rope->dim() : 0,
                                       .style = rope ? rope->style : kRopeHalf,
                                       .qk_norm = !t.norms                   ? kHeadNormNone
                                                  : attention_.norms_by_head ? kHeadNormLayer
                                                                             : kHeadNormRms,
                                       .eps = attention_.norm_eps,
                                       .max_pages = cache(e).max_pages,
                                       .page_words = cache(e).page_words});
    }

    void attend(Emitter& e, Phase phase) const {
        const bool whole = phase == Phase::kEncoded && attention_.whole_images;
        e.attention("attention", place_.layer, phase,
                    {.q = projections(e).q,
                     .kv = cache(e).kv,
                     .rows = rows(e),
                     .pages = cache(e).tables,
                     .sinks = sinks_,
                     .ends = whole ? e.step.ends : Binding{},
                     .formats = gate_ ? 0 : e.adapter_formats({&output_, 1})},
                    {.rows = 0,
                     .step = 0,
                     .keys = 1,
                     .n_heads = attention_.n_heads,
                     .n_kv_heads = attention_.n_kv_heads,
                     .head_dim = attention_.head_dim,
                     .window = attention_.window,
                     .max_pages = cache(e).max_pages,
                     .page_words = cache(e).page_words,
                     .scale = attention_.scale,
                     .softcap = attention_.softcap,
                     .formats = gate_ ? u32{kActF32} : e.input_format(output_),
                     .bidirectional = attention_.bidirectional,
                     .fixed_keys = 0,
                     .row_ends = whole,
                     .latent = 0});
    }

    const BlockPlace place_;
    const AttentionConfig attention_;
    Norm norm_, beside_norm_;  // the latter of a parallel feed-forward, which reads the rows before they change
    Vector bias_, gate_bias_, qk_norm_, value_norm_, sinks_, output_bias_;
    Emitter::OutputNorms norms_;
    Weight q_, k_, v_, gate_, output_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const AttentionConfig& attention) {
    return std::make_unique<AttentionBlock>(loader, place, attention);
}

}  // namespace akunu
