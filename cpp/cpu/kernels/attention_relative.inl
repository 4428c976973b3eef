// Attention of whole sequences by the distance of a key from a query: see RelativeAttentionParams.

namespace akunu::cpu::AKUNU_ISA {

constexpr std::size_t kRelativeBlock = 256;  // keys whose scores are kept at a time

// A head of a sequence's rows.
struct RelativeHead {
    const RelativeAttentionParams& p;
    const float *k, *v, *bias, *distance_keys, *distance_queries;
    const u32* columns;  // of distance 0
    std::size_t dim;     // elements of a row
    std::size_t n;       // keys

    std::size_t column(std::size_t position, std::size_t key) const {
        const auto reach = static_cast<std::int64_t>(p.reach);
        const auto distance = static_cast<std::int64_t>(key) - static_cast<std::int64_t>(position);
        return columns[std::clamp(distance, -reach, reach)];
    }

    template <bool kKeys, bool kQueries>
    float score(const float* q, std::size_t position, std::size_t key) const {
        const float* const k_row = k + key * dim;
        const std::size_t c = column(position, key), hd = p.head_dim;
        const float* const key_row = kKeys ? distance_keys + c * dim : nullptr;
        const float* const query_row = kQueries ? distance_queries + c * dim : nullptr;
        vf sum[2] = {zero(), zero()};
        std::size_t i = 0;
        for (; i + L <= hd; i += L) {
            const vf x = load(k_row + i);
            sum[0] = fma(load(q + i), kKeys ? x + load(key_row + i) : x, sum[0]);
            if constexpr (kQueries) sum[1] = fma(x, load(query_row + i), sum[1]);
        }
        float total = reduce_add(kQueries ? sum[0] + sum[1] : sum[0]);
        for (; i < hd; ++i) {
            total += q[i] * (kKeys ? k_row[i] + key_row[i] : k_row[i]);
            if constexpr (kQueries) total += k_row[i] * query_row[i];
        }
        return total * p.scale + (bias ? bias[c * p.n_heads] : 0.0f);
    }

    // out += weights of keys [first, first + count)·v
    void mix(const float* weights, std::size_t first, std::size_t count, float* out) const {
        constexpr std::size_t kTogether = 4;
        const std::size_t hd = p.head_dim;
        const float* const rows = v + first * dim;
        std::size_t i = 0;
        for (; i + kTogether * L <= hd; i += kTogether * L) {
            vf sum[kTogether];
            for (std::size_t j = 0; j < kTogether; ++j) sum[j] = load(out + i + j * L);
            for (std::size_t key = 0; key < count; ++key) {
                const vf w = set1(weights[key]);
                for (std::size_t j = 0; j < kTogether; ++j) sum[j] = fma(w, load(rows + key * dim + i + j * L), sum[j]);
            }
            for (std::size_t j = 0; j < kTogether; ++j) store(out + i + j * L, sum[j]);
        }
        for (std::size_t key = 0; key < count && i < hd; ++key) {
            add_scaled(rows + key * dim + i, weights[key], out + i, hd - i);
        }
    }

    template <bool kKeys, bool kQueries>
    void attend(const float* q, std::size_t position, float* out) const {
        float top = -std::numeric_limits<float>::infinity(), sum = 0;
        std::memset(out, 0, p.head_dim * sizeof(float));
        for (std::size_t first = 0; first < n; first += kRelativeBlock) {
            alignas(64) float scores[kRelativeBlock];
            const std::size_t count = std::min(kRelativeBlock, n - first);
            float most = top;
            for (std::size_t i = 0; i < count; ++i) {
                scores[i] = score<kKeys, kQueries>(q, position, first + i);
                most = std::max(most, scores[i]);
            }
            for (std::size_t i = count; i < kRelativeBlock; ++i) scores[i] = -std::numeric_limits<float>::infinity();
            if (first > 0) {
                const float kept = std::exp(top - most);
                sum *= kept;
                for (std::size_t i = 0; i < p.head_dim; ++i) out[i] *= kept;
            }
            top = most;
            vf added = zero();
            for (std::size_t i = 0; i < count; i += L) {
                const vf e = exp_below_88(load(scores + i) - set1(top));
                store(scores + i, e);
                added += e;
            }
            sum += reduce_add(added);
            mix(scores, first, count, out);
        }
        for (std::size_t i = 0; i < p.head_dim; ++i) out[i] /= sum;
    }
};

// An item is a row of a head: neighbours have the same keys.
template <bool kKeys, bool kQueries>
static void relative_attention(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<RelativeAttentionParams>(params);
    const auto floats = [&](std::size_t i) { return cmd.buffers[i].as<float>(); };
    const auto* where = cmd.buffers[8].as<Row>();
    const std::size_t dim = std::size_t{p.n_heads} * p.head_dim, rows = p.rows;
    auto items = worker.claim(rows * p.n_heads, std::uint64_t{64} * p.head_dim);
    while (items.next()) {
        for (std::uint64_t u = items.begin; u < items.end; ++u) {
            const std::size_t head = u / rows, row = u % rows, at = head * p.head_dim;
            const std::size_t position = where[row].position, first = row - position;
            const Row* const end = std::partition_point(
                where + row, where + rows, [&](const Row& other) { return other.slot == where[row].slot; });
            const RelativeHead relative{p,
                                        floats(1) + first * dim + at,
                                        floats(2) + first * dim + at,
                                        p.has_bias ? floats(4) + head : nullptr,
                                        kKeys ? floats(5) + at : nullptr,
                                        kQueries ? floats(6) + at : nullptr,
                                        cmd.buffers[3].as<u32>() + p.reach,
                                        dim,
                                        static_cast<std::size_t>(end - (where + first))};
            relative.attend<kKeys, kQueries>(floats(0) + row * dim + at, position, floats(7) + row * dim + at);
        }
    }
}

static Kernel find_relative_attention(const DispatchCmd& cmd) {
    const auto p = cmd.params_as<RelativeAttentionParams>();
    if (p.has_keys) return p.has_queries ? relative_attention<true, true> : relative_attention<true, false>;
    return p.has_queries ? relative_attention<false, true> : relative_attention<false, false>;
}

}  // namespace akunu::cpu::AKUNU_ISA
