// The formats of the KV cache: how a head's keys and values are stored and read back. cpu/kv_layout.h has the layout.

namespace akunu::cpu::AKUNU_ISA {

static inline vf load_cache(const std::uint16_t* p) { return load_half(p); }
static inline vf load_cache(const float* p) { return load(p); }
static inline vf load_cache(const std::int8_t* p) { return to_float(load_i8(p)); }
static inline void store_cache(std::uint16_t* p, vf v) { store_half(p, v); }
static inline void store_cache(float* p, vf v) { store(p, v); }
static inline float cache_value(std::uint16_t v) { return half_to_float(v); }
static inline float cache_value(float v) { return v; }
static inline float cache_value(std::int8_t v) { return v; }

// Two codes of Q4_0.
struct Nibbles {
    std::uint8_t two;
};
static inline vi load_codes(const Nibbles* p) { return load_u8(&p->two); }
static inline float code_value(unsigned code) { return static_cast<float>(code & 15) - 8; }

// Bytes from a page's keys or values to those that are read next. They are fetched while the page is read: pages lie
// apart, so the hardware does not see them coming. Into the second-level cache: more of its lines can be on
// their way than of the first-level one's.
struct Ahead {
    std::ptrdiff_t bytes = 0;
    // What is ahead of kElems elements from `at` on.
    template <std::size_t kElems = 1, typename T>
    const T* fetch(const T* at) const {
        for (std::size_t i = 0; i < kElems; i += 64 / sizeof(T)) {
            __builtin_prefetch(reinterpret_cast<const std::byte*>(at + i) + bytes, 0, 2);
        }
        return at;
    }
};

// Nothing is fetched ahead: several tiles read the same page.
struct NothingAhead {
    template <std::size_t kElems = 1, typename T>
    const T* fetch(const T* at) const {
        return at;
    }
};

// One KV head's keys or values of a page. T: uint16_t is F16, float is F32, int8_t is Q8_0 and Nibbles Q4_0, which have
// scales.
template <typename T>
struct KvUnit {
    static constexpr bool kPaired = std::is_same_v<T, Nibbles>, kScaled = std::is_same_v<T, std::int8_t> || kPaired;
    using Scale = std::conditional_t<kPaired, std::uint16_t, float>;
    T* elems;
    Scale* scales;
    KvUnit(std::byte* at, std::size_t head_dim)
        : elems(reinterpret_cast<T*>(at)), scales(reinterpret_cast<Scale*>(elems + kPagePositions * width(head_dim))) {}

    // How many T a position takes.
    static constexpr std::size_t width(std::size_t head_dim) {
        return kPaired ? scale_runs(head_dim) * (kScaleRun / 2) : head_dim;
    }

    // Quantises n values as Q4_0: code i goes to codes[i], 0 behind them. The value that is farthest from 0 is -8
    // times the scale; of two as far the negative one.
    static std::uint16_t write_codes(const float* x, std::size_t n, std::uint8_t (&codes)[kScaleRun]) {
        float high = 0, low = 0;
        for (std::size_t i = 0; i < n; ++i) high = std::max(high, x[i]), low = std::min(low, x[i]);
        const float d = (high > -low ? high : low) / -8, inverse = d != 0 ? 1 / d : 0.0f;
        for (std::size_t i = 0; i < n; ++i) {
            codes[i] = static_cast<std::uint8_t>(std::min(15.0f, std::max(0.0f, x[i] * inverse + 8.5f)));
        }
        for (std::size_t i = n; i < kScaleRun; ++i) codes[i] = 8;
        return static_cast<std::uint16_t>(float_to_half(d));
    }
    // Quantises n values that share a scale: sets `scale`, and value i where `element(i)` refers to.
    template <typename Element>
    static void write_run(const float* x, std::size_t n, float& scale, Element&& element) {
        float max = 0;
        for (std::size_t i = 0; i < n; ++i) max = std::max(max, std::abs(x[i]));
        const float d = q8_scale(max), inverse = d > 0 ? 1 / d : 0.0f;
        scale = d;
        for (std::size_t i = 0; i < n; ++i) {
            element(i) = static_cast<std::int8_t>(std::clamp(std::nearbyint(x[i] * inverse), -127.0f, 127.0f));
        }
    }
    // `pos` is the position in the page.
    void store_key(std::size_t pos, const float* x, std::size_t head_dim) const {
        const std::size_t group = pos / kKeyGroup, lane = pos % kKeyGroup;
        T* to = elems + group * width(head_dim) * kKeyGroup + lane;
        if constexpr (kPaired) {
            for (std::size_t d = 0; d < head_dim; d += kScaleRun) {
                std::uint8_t codes[kScaleRun];
                scales[(group * scale_runs(head_dim) + d / kScaleRun) * kKeyGroup + lane] =
                    write_codes(x + d, std::min(kScaleRun, head_dim - d), codes);
                for (std::size_t i = 0; i < kScaleRun; i += 2) {
                    to[(d + i) / 2 * kKeyGroup].two = static_cast<std::uint8_t>(codes[i] | codes[i + 1] << 4);
                }
            }
        } else if constexpr (kScaled) {
            for (std::size_t d = 0; d < head_dim; d += kScaleRun) {
                write_run(x + d, std::min(kScaleRun, head_dim - d),
                          scales[(group * scale_runs(head_dim) + d / kScaleRun) * kKeyGroup + lane],
                          [&](std::size_t i) -> T& { return to[(d + i) * kKeyGroup]; });
            }
        } else {
            std::size_t d = 0;
            for (; d + L <= head_dim; d += L) {
                T values[L];
                store_cache(values, load(x + d));
                for (std::size_t i = 0; i < L; ++i) to[(d + i) * kKeyGroup] = values[i];
            }
            for (; d < head_dim; ++d) to[d * kKeyGroup] = convert(x[d]);
        }
    }
    // Those of n positions of a group, rows of x that are `stride` apart.
    void store_keys(std::size_t pos, std::size_t n, const float* x, std::size_t stride, std::size_t head_dim) const {
        for (std::size_t i = 0; i < n;) {
            if constexpr (!kScaled) {
                if ((pos + i) % L == 0 && n - i >= L) {
                    store_vectors(pos + i, x + i * stride, stride, head_dim);
                    i += L;
                    continue;
                }
            }
            store_key(pos + i, x + i * stride, head_dim);
            ++i;
        }
    }
    void store_value(std::size_t pos, const float* x, std::size_t head_dim) const {
        T* to = elems + pos * width(head_dim);
        if constexpr (kPaired) {
            for (std::size_t d = 0; d < head_dim; d += kScaleRun) {
                std::uint8_t codes[kScaleRun];
                scales[pos * scale_runs(head_dim) + d / kScaleRun] =
                    write_codes(x + d, std::min(kScaleRun, head_dim - d), codes);
                for (std::size_t i = 0; i < kScaleRun / 2; ++i) {
                    to[d / 2 + i].two = static_cast<std::uint8_t>(codes[i] | codes[i + kScaleRun / 2] << 4);
                }
            }
        } else if constexpr (kScaled) {
            for (std::size_t d = 0; d < head_dim; d += kScaleRun) {
                write_run(x + d, std::min(kScaleRun, head_dim - d), scales[pos * scale_runs(head_dim) + d / kScaleRun],
                          [&](std::size_t i) -> T& { return to[d + i]; });
            }
        } else {
            std::size_t d = 0;
            for (; d + L <= head_dim; d += L) store_cache(to + d, load(x + d));
            for (; d < head_dim; ++d) to[d] = convert(x[d]);
        }
    }

  private:
    // Keys of L positions, from a multiple of L on: whole vectors of an element.
    void store_vectors(std::size_t pos, const float* x, std::size_t stride, std::size_t head_dim) const {
        T* to = elems + pos / kKeyGroup * head_dim * kKeyGroup + pos % kKeyGroup;
        std::size_t d = 0;
        for (; d + L <= head_dim; d += L) {
            vf v[L];
            unroll<L>([&]<int i>() { v[i] = load(x + i * stride + d); });
            transpose(v);
            unroll<L>([&]<int i>() { store_cache(to + (d + i) * kKeyGroup, v[i]); });
        }
        for (; d < head_dim; ++d) {
            for (std::size_t i = 0; i < L; ++i) to[d * kKeyGroup + i] = convert(x[i * stride + d]);
        }
    }
    static T convert(float v) {
        if constexpr (std::is_same_v<T, float>) return v;
        return static_cast<T>(float_to_half(v));
    }
};

// Calls f.operator()<T>() with what elements of a type are.
template <typename F>
static inline auto with_elements(DType type, F&& f) {
    switch (type) {
        case DType::F32:
            return f.template operator()<float>();
        case DType::Q8_0:
            return f.template operator()<std::int8_t>();
        case DType::Q4_0:
            return f.template operator()<Nibbles>();
        default:
            return f.template operator()<std::uint16_t>();
    }
}

// A sequence's keys and values in one layer.
struct KvPages {
    std::byte* kv;
    const u32* pages;
    std::size_t page_bytes, n_kv_heads, head_dim;
    KvTypes types;
    std::size_t key_unit = kv_unit_bytes(types.k, head_dim), value_unit = kv_unit_bytes(types.v, head_dim);

    std::byte* key_unit_at(std::size_t page, std::size_t head) const {
        return kv + pages[page] * page_bytes + head * key_unit;
    }
    std::byte* value_unit_at(std::size_t page, std::size_t head) const {
        return kv + pages[page] * page_bytes + n_kv_heads * key_unit + head * value_unit;
    }
    template <typename T>
    KvUnit<T> keys(std::size_t page, std::size_t head) const {
        return {key_unit_at(page, head), head_dim};
    }
    template <typename T>
    KvUnit<T> values(std::size_t page, std::size_t head) const {
        return {value_unit_at(page, head), head_dim};
    }
};

}  // namespace akunu::cpu::AKUNU_ISA
