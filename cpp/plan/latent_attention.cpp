// Multi-head latent attention (DeepSeek-V2, 2024) over the paged cache, causal:
//   q = norm(x·Wqaᵀ)·Wqbᵀ, or x·Wqᵀ, with x = norm(h); [c, k] = x·Wkvaᵀ; pages[position] = norm(c), rope(k)
//   of each head: q = [qn, qr]; s = scale·(qn·Wk·c + rope(qr)·k); out = (softmax(s)·c)·Wvᵀ
//   h += out·Woᵀ
// A head's weights of keys, Wk, are multiplied with its query instead of with every c: then all heads read the same
// row of each position, and a value is the beginning of its key. Prompts are computed alike: keys and values made of
// every c would be fewer products from some length of a prompt on, but others than those of decode, so that a sequence
// would depend on how its prompt was cut.
#include "core/error.h"
#include "plan/block.h"

namespace akunu {

namespace {

class LatentAttentionBlock final : public Block {
  public:
    LatentAttentionBlock(Loader& loader, const BlockPlace& place, const LatentAttentionConfig& config)
        : place_(place), c_(config) {
        const std::uint64_t dim = place.config.dim, heads = c_.n_heads, queries = heads * c_.query_dim();
        norm_ = loader.optional_norm(place.name("attn_norm"), dim);
        if (c_.q_rank) {
            q_a_ = loader.matmul(place.name("latent_q_a"), c_.q_rank, dim);
            q_a_bias_ = loader.optional_vector(place.name("attn_q_a_bias"), c_.q_rank);
            q_norm_ = loader.vector(place.name("latent_q_norm"), c_.q_rank);
        }
        q_ = loader.matmul(place.name("latent_q"), queries, c_.q_rank ? c_.q_rank : dim);
        kv_a_ = loader.matmul(place.name("latent_kv_a"), c_.key_dim(), dim);
        kv_a_bias_ = loader.optional_vector(place.name("attn_kv_a_bias"), c_.key_dim());
        kv_norm_ = loader.vector(place.name("latent_kv_norm"), c_.latent);
        if (loader.has(place.name("latent_kv_b"))) {
            const auto both =
                loader.keys_and_values(place.name("latent_kv_b"), heads, c_.nope_dim, c_.value_dim, c_.latent);
            k_ = both.first;
            v_ = both.second;
        } else {
            k_ = loader.heads(place.name("latent_k"), heads, c_.latent, c_.nope_dim);
            v_ = loader.heads(place.name("latent_v"), heads, c_.value_dim, c_.latent);
        }
        output_ = loader.matmul(place.name("attn_output"), dim, heads * c_.value_dim);
        output_bias_ = loader.optional_vector(place.name("attn_output_bias"), dim);
    }

    void reserve(const Device& device, Activations& a, std::uint32_t context) const override {
        const std::uint64_t heads = c_.n_heads;
        a.reserve("input", place_.config.dim, input_formats(device));
        if (q_a_) {
            a.reserve("latent_q_a", c_.q_rank, kActF32 | device.matmul_input(q_.dtype));
            a.reserve("latent_q", heads * c_.query_dim());
        }
        a.reserve("latent_a", first().rows + c_.key_dim());
        a.reserve("latent_queries", heads * c_.key_dim());
        a.reserve("attn", heads * c_.latent);
        a.reserve("latent_out", heads * c_.value_dim, kActF32 | device.matmul_input(output_.dtype));
        if (device.traits().split_attention) {
            a.reserve_bytes("partials", device.attention_partial_bytes(c_.n_heads, c_.latent, context));
        }
    }

    Kept keeps(const Device& device, const KvTypes& types) const override {
        if (types.k != types.v) {
            throw UnsupportedError(
                "kv_dtype " + kv_name(types) +
                ": latent attention keeps keys alone, of which its values are a part; name one type");
        }
        return {.bytes = device.kv_bytes(types.k, 1, c_.key_dim())};
    }
    std::uint32_t attention_formats(const Device&) const override { return kActF32; }

    void emit(Emitter& e, Phase phase) const override {
        const int layer = place_.layer;
        project(e, phase);
        const Binding q = queries(e);
        keep(e, c_.n_heads);
        const Binding &queries = e.activations.f32("latent_queries"), &attn = e.activations.f32("attn");
        of_heads(e, "latent_k", q, k_, queries, c_.query_dim(), c_.rope_dim);
        attend(e, phase, queries);
        const Act& out = e.activations.act("latent_out");
        of_heads(e, "latent_v", attn, v_, out.f32, c_.latent, 0);
        if (const u32 format = e.input_format(output_); format != kActF32) {
            e.quantize("latent_out", layer, out, c_.n_heads * c_.value_dim, format);
        }
        e.add_to_residual("attn_output", layer, out, output_, output_bias_, {});
    }

    void emit_keys(Emitter& e) const override {
        const Act input = e.block_input("attn_norm", place_.layer, norm_, e.input_format(kv_a_));
        e.matmul("latent_kv_a", place_.layer, input, kv_a_, latent(e), {.bias = kv_a_bias_});
        keep(e, 0);
    }

  private:
    std::uint32_t input_formats(const Device& device) const {
        return device.matmul_input(q_a_ ? q_a_.dtype : q_.dtype) | device.matmul_input(kv_a_.dtype);
    }
    u32 added_formats(const Emitter& e) const {
        const Weight weights[] = {q_a_ ? q_a_ : q_, kv_a_};
        return e.adapter_formats(weights);
    }
    const PagedCache& cache(const Emitter& e) const { return e.step.kv.at(place_.index); }

    // What is multiplied with the block's input: the first matrix of queries, and that of what is kept. The rows of
    // their results stand one behind the other in a buffer.
    const Weight& first() const { return q_a_ ? q_a_ : q_; }
    Binding projected(const Emitter& e) const {
        return part_of(e.activations.f32("latent_a"), 0, std::uint64_t{e.activations.rows()} * first().rows);
    }
    Binding latent(const Emitter& e) const {
        const std::uint64_t rows = e.activations.rows();
        return part_of(e.activations.f32("latent_a"), rows * first().rows, rows * c_.key_dim());
    }
    Binding queries(const Emitter& e) const { return q_a_ ? e.activations.f32("latent_q") : projected(e); }

    // Queries, and what is kept of the row before its norm.
    void project(Emitter& e, Phase phase) const {
        const int layer = place_.layer;
        const auto planar = [](const Weight& w) { return bool(w.scales); };
        const bool fuses = phase == Phase::kDecode && e.fuses_norms();
        if (fuses && norm_ && !added_formats(e) && first().dtype == kv_a_.dtype && !planar(first()) && !q_a_bias_ &&
            !kv_a_bias_) {
            const Binding latents = latent(e), q = projected(e), &all = e.activations.f32("latent_a");
            e.norm_matmuls(q_a_ ? "latent_a" : "latent_q_kv", layer,
                           {.x = e.hidden(),
                            .norm = norm_.weight,
                            .eps = place_.config.norm_eps,
                            .first = &first(),
                            .key = &kv_a_,
                            .key_offset = static_cast<u32>((latents.offset - q.offset) / sizeof(float))},
                           all);
        } else {
            const Act input = e.block_input("attn_norm", layer, norm_, input_formats(e.device) | added_formats(e));
            e.matmul(q_a_ ? "latent_q_a" : "latent_q", layer, input, first(), projected(e), {.bias = q_a_bias_});
            e.matmul("latent_kv_a", layer, input, kv_a_, latent(e), {.bias = kv_a_bias_});
        }
        if (!q_a_) return;
        if (fuses && !e.adapts(q_) && !planar(q_)) {
            e.norm_matmuls("latent_q", layer, {.x = projected(e), .norm = q_norm_, .eps = c_.norm_eps, .first = &q_},
                           queries(e));
            return;
        }
        const Act& a = e.activations.act("latent_q_a");
        e.rms_norm("latent_q_norm", layer, rows_in(projected(e), c_.q_rank), q_norm_, a,
                   {.eps = c_.norm_eps, .formats = e.input_formats(q_)});
        e.matmul("latent_q", layer, a, q_, queries(e));
    }

    // The row of the cache, and the rotated parts of so many queries: of all, or of none.
    void keep(Emitter& e, u32 n_heads) const {
        e.emit(Op::kLatentKv, "latent_kv", place_.layer)
            .buffer(latent(e))
            .buffer(queries(e))
            .buffer(e.activations.f32(rope_table_name(c_.rope)))
            .buffer(kv_norm_)
            .buffer(cache(e).kv)
            .buffer(e.step.rows)
            .buffer(cache(e).tables)
            .kv(e.step.kv_types)
            .shape(std::to_string(n_heads) + "+" + std::to_string(c_.key_dim()))
            .params(LatentKvParams{.rows = 0,
                                   .step = 0,
                                   .n_heads = n_heads,
                                   .nope_dim = c_.nope_dim,
                                   .rope_dim = c_.rope_dim,
                                   .latent = c_.latent,
                                   .style = place_.config.rope_sets.at(c_.rope).style,
                                   .eps = c_.norm_eps,
                                   .temperature = c_.temperature,
                                   .temperature_length = c_.temperature_length,
                                   .max_pages = cache(e).max_pages,
                                   .page_words = cache(e).page_words});
    }

    // y = the products of each head's part of x with its weights, and `copied` elements that follow them.
    void of_heads(Emitter& e, const char* name, const Binding& x, const Weight& w, const Binding& y, u32 x_stride,
                  u32 copied) const {
        const u32 n = static_cast<u32>(w.rows), k = static_cast<u32>(w.cols);
        e.emit(Op::kHeadMatmul, name, place_.layer)
            .buffer(x)
            .weight(w)
            .buffer(y)
            .shape(std::to_string(c_.n_heads) + "x" + shape_of(n, k))
            .params(HeadMatmulParams{
                .rows = 0, .heads = c_.n_heads, .n = n, .k = k, .x_stride = x_stride, .copied = copied});
    }

    void attend(Emitter& e, Phase phase, const Binding& queries) const {
        e.attention("attention", place_.layer, phase,
                    {.q = queries, .kv = cache(e).kv, .rows = e.step.rows, .pages = cache(e).tables},
                    {.rows = 0,
                     .step = 0,
                     .keys = 1,
                     .n_heads = c_.n_heads,
                     .n_kv_heads = 1,
                     .head_dim = c_.key_dim(),
                     .window = 0,
                     .max_pages = cache(e).max_pages,
                     .page_words = cache(e).page_words,
                     .scale = c_.scale,
                     .softcap = 0,
                     .formats = kActF32,
                     .bidirectional = 0,
                     .fixed_keys = 0,
                     .row_ends = 0,
                     .latent = c_.latent});
    }

    const BlockPlace place_;
    const LatentAttentionConfig c_;
    Norm norm_;
    Vector q_a_bias_, q_norm_, kv_a_bias_, kv_norm_, output_bias_;
    Weight q_a_, q_, kv_a_, k_, v_, output_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const LatentAttentionConfig& attention) {
    return std::make_unique<LatentAttentionBlock>(loader, place, attention);
}

}  // namespace akunu
