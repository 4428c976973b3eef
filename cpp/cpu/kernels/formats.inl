// How each packed weight format unpacks: the bytes of a dot-product step, and the scales of a block.
//
// A block has kSubs sub-blocks of kSub elements with one scale each (and one minimum). `quants<sub, j>` gives the j-th
// four elements of a sub-block for all rows of the group; elements are in the file's order, so activations need no
// reordering. Value of an element: d·(q - kOffset) - m.

namespace akunu::cpu::AKUNU_ISA {

template <int N, typename F>
static inline void unroll(F&& f) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
        (f.template operator()<I>(), ...);
    }(std::make_integer_sequence<int, N>{});
}

// The planes of one group.
struct Planes {
    const std::uint8_t* p[4];
    Planes(const std::byte* group, const GroupLayout& layout) {
        for (int i = 0; i < 4; ++i) p[i] = reinterpret_cast<const std::uint8_t*>(group) + layout.plane[i];
    }
    template <int kPlane, int kCount>
    vb bytes(std::size_t block, int unit) const {  // a plane of 4-byte units
        return load_bytes(p[kPlane] + (block * kCount + unit) * 4 * L);
    }
    template <int kPlane, int kCount = 1>
    vf halves(std::size_t block, int unit = 0) const {
        return load_half(reinterpret_cast<const std::uint16_t*>(p[kPlane]) + (block * kCount + unit) * L);
    }
    template <int kPlane, int kCount>
    const std::uint8_t* byte_plane(std::size_t block, int unit) const {
        return p[kPlane] + (block * kCount + unit) * L;
    }
};

// Fetches a later block of the group, or of the next one, a line at a time: the processor's own prefetching stops where
// a plane ends, and keeps out of the first-level cache.
template <typename F>
struct BlockAhead {
    static constexpr std::size_t kBytes = 4096;  // how far
    static constexpr std::size_t kLine = 64;
    static constexpr PackFormat kFormat = [] {
        for (const PackFormat& f : kPackFormats) {
            if (f.dtype == F::kType) return f;
        }
        return PackFormat{};
    }();
    static constexpr std::size_t plane_bytes(std::size_t i) {
        return std::size_t{kFormat.fields[i].unit} * kFormat.fields[i].count * L;
    }
    struct Line {
        std::size_t plane, offset;
    };
    // Line `n` of a block; behind the last one, how many there are and their bytes.
    static constexpr Line line(std::size_t n) {
        std::size_t seen = 0, bytes = 0;
        for (std::size_t i = 0; i < kFormat.n_fields; ++i) {
            const std::size_t lines = (plane_bytes(i) + kLine - 1) / kLine;
            if (n < seen + lines) return {i, (n - seen) * kLine};
            seen += lines;
            bytes += plane_bytes(i);
        }
        return {seen, bytes};
    }
    static constexpr std::size_t kLines = line(~std::size_t{0}).plane;
    static constexpr std::size_t kBlocks = (kBytes + line(~std::size_t{0}).offset - 1) / line(~std::size_t{0}).offset;

    const std::uint8_t* planes[4];
    BlockAhead(const Planes& p, const GroupLayout& layout, std::size_t block, std::size_t blocks) {
        const bool next = block + kBlocks >= blocks;
        const std::size_t b = next ? block + kBlocks - blocks : block + kBlocks;
        for (std::size_t i = 0; i < kFormat.n_fields; ++i) {
            planes[i] = p.p[i] + b * plane_bytes(i) + (next ? layout.bytes : 0);
        }
    }
    // The share of step `kStep` of `kSteps`.
    template <int kStep, int kSteps>
    void fetch() const {
        constexpr std::size_t first = kStep * kLines / kSteps, last = (kStep + 1) * kLines / kSteps;
        unroll<last - first>([&]<int i>() {
            constexpr Line at = line(first + i);
            __builtin_prefetch(planes[at.plane] + at.offset);
        });
    }
};

template <int kNibble>
static inline vb nibble(vb v) {
    if constexpr (kNibble == 0) return and_bytes(v, 0x0F);
    return and_bytes(shift_right<4>(v), 0x0F);
}

// Bit kBit of every byte, moved to bit kTo.
template <int kBit, int kTo>
static inline vb bit_to(vb v) {
    constexpr auto mask = static_cast<std::uint8_t>(1 << kTo);
    if constexpr (kBit > kTo) return and_bytes(shift_right<kBit - kTo>(v), mask);
    return and_bytes(shift_left<kTo - kBit>(v), mask);
}

struct BlockOf32 {
    static constexpr int kBlock = 32, kSub = 32, kSubs = 1, kMax = 15, kOffset = 0;
    static constexpr bool kSigned = false, kHasMin = false;
};

struct FormatQ4_0 : BlockOf32 {
    static constexpr DType kType = DType::Q4_0;
    static constexpr int kOffset = 8;
    static void scales(const Planes& g, std::size_t b, vf* d, vf*) { d[0] = g.halves<1>(b); }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        return nibble<kJ / 4>(g.bytes<0, 4>(b, kJ % 4));
    }
};

struct FormatQ4_1 : BlockOf32 {
    static constexpr DType kType = DType::Q4_1;
    static constexpr bool kHasMin = true;
    static void scales(const Planes& g, std::size_t b, vf* d, vf* m) {
        d[0] = g.halves<1>(b);
        m[0] = -g.halves<2>(b);
    }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        return nibble<kJ / 4>(g.bytes<0, 4>(b, kJ % 4));
    }
};

template <int kJ>
static inline vb five_bits(const Planes& g, std::size_t b) {
    return or_bytes(nibble<kJ / 4>(g.bytes<0, 4>(b, kJ % 4)), bit_to<kJ, 4>(g.bytes<1, 1>(b, 0)));
}

struct FormatQ5_0 : BlockOf32 {
    static constexpr DType kType = DType::Q5_0;
    static constexpr int kMax = 31, kOffset = 16;
    static void scales(const Planes& g, std::size_t b, vf* d, vf*) { d[0] = g.halves<2>(b); }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        return five_bits<kJ>(g, b);
    }
};

struct FormatQ5_1 : BlockOf32 {
    static constexpr DType kType = DType::Q5_1;
    static constexpr int kMax = 31;
    static constexpr bool kHasMin = true;
    static void scales(const Planes& g, std::size_t b, vf* d, vf* m) {
        d[0] = g.halves<2>(b);
        m[0] = -g.halves<3>(b);
    }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        return five_bits<kJ>(g, b);
    }
};

struct FormatQ8_0 : BlockOf32 {
    static constexpr DType kType = DType::Q8_0;
    static constexpr bool kSigned = true;
    static void scales(const Planes& g, std::size_t b, vf* d, vf*) { d[0] = g.halves<1>(b); }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        return g.bytes<0, 8>(b, kJ);
    }
};

alignas(16) constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                    1,    13,   25,  38,  53,  69,  89,  113};

struct FormatIQ4_NL : BlockOf32 {
    static constexpr DType kType = DType::IQ4_NL;
    static constexpr bool kSigned = true;
    static void scales(const Planes& g, std::size_t b, vf* d, vf*) { d[0] = g.halves<1>(b); }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        return lookup16(kIq4Values, nibble<kJ / 4>(g.bytes<0, 4>(b, kJ % 4)));
    }
};

// E2M1 values doubled, plus 12; the block's scale is 2^(e - 127) / 2.
alignas(16) constexpr std::int8_t kMxfp4Values[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

struct FormatMXFP4 : BlockOf32 {
    static constexpr DType kType = DType::MXFP4;
    static constexpr int kMax = 24, kOffset = 12;
    static void scales(const Planes& g, std::size_t b, vf* d, vf*) {
        // 2^(e - 128): a normal number for e >= 2, else the subnormals 2^-128 and 2^-127.
        const vi e = load_u8(g.byte_plane<1, 1>(b, 0));
        const vi normal = (e - 1) << 23, subnormal = set1i(0x00200000) << (e & 1);
        const vi bits = e < 2 ? subnormal : normal;
        std::memcpy(&d[0], &bits, sizeof bits);
    }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        return lookup16(kMxfp4Values, nibble<kJ / 4>(g.bytes<0, 4>(b, kJ % 4)));
    }
};

struct BlockOf256 {
    static constexpr int kBlock = 256, kSub = 32, kSubs = 8, kMax = 15, kOffset = 0;
    static constexpr bool kSigned = false, kHasMin = false;
};

// The 6-bit scales and minimums that Q4_K and Q5_K share: 12 bytes a row.
template <int kPlane>
static inline void scales_and_mins(const Planes& g, std::size_t b, vf d, vf dmin, vf* scale, vf* min) {
    vi byte[12];
    unroll<12>([&]<int i>() { byte[i] = load_u8(g.byte_plane<kPlane, 12>(b, i)); });
    unroll<4>([&]<int i>() {
        scale[i] = d * to_float(byte[i] & 63);
        min[i] = dmin * to_float(byte[i + 4] & 63);
        scale[i + 4] = d * to_float((byte[i + 8] & 15) | ((byte[i] >> 6) << 4));
        min[i + 4] = dmin * to_float((byte[i + 8] >> 4) | ((byte[i + 4] >> 6) << 4));
    });
}

struct FormatQ4_K : BlockOf256 {
    static constexpr DType kType = DType::Q4_K;
    static constexpr bool kHasMin = true;
    static void scales(const Planes& g, std::size_t b, vf* d, vf* m) {
        scales_and_mins<1>(g, b, g.halves<2>(b), g.halves<3>(b), d, m);
    }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        return nibble<kS % 2>(g.bytes<0, 32>(b, kS / 2 * 8 + kJ));
    }
};

struct FormatQ5_K : BlockOf256 {
    static constexpr DType kType = DType::Q5_K;
    static constexpr int kMax = 31;
    static constexpr bool kHasMin = true;
    static void scales(const Planes& g, std::size_t b, vf* d, vf* m) {
        scales_and_mins<2>(g, b, g.halves<3, 2>(b, 0), g.halves<3, 2>(b, 1), d, m);
    }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        return or_bytes(nibble<kS % 2>(g.bytes<0, 32>(b, kS / 2 * 8 + kJ)), bit_to<kS, 4>(g.bytes<1, 8>(b, kJ)));
    }
};

// 16 sub-blocks of 16: two to each run of 32, four runs to each half of 128.
struct BlockOf16x16 : BlockOf256 {
    static constexpr int kSub = 16, kSubs = 16;
};

template <int kS>
struct SubOf16 {
    static constexpr int half = kS / 8, run = kS % 8 / 2, part = kS % 2;
};

struct FormatQ6_K : BlockOf16x16 {
    static constexpr DType kType = DType::Q6_K;
    static constexpr int kMax = 63, kOffset = 32;
    static void scales(const Planes& g, std::size_t b, vf* d, vf*) {
        const vf super = g.halves<3>(b);
        unroll<16>([&]<int i>() {
            d[i] = super * to_float(load_i8(reinterpret_cast<const std::int8_t*>(g.byte_plane<2, 16>(b, i))));
        });
    }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        using S = SubOf16<kS>;
        const vb low = nibble<S::run / 2>(g.bytes<0, 32>(b, S::half * 16 + S::run % 2 * 8 + S::part * 4 + kJ));
        const vb high = g.bytes<1, 16>(b, S::half * 8 + S::part * 4 + kJ);
        if constexpr (S::run < 2) return or_bytes(low, and_bytes(shift_left<4 - 2 * S::run>(high), 0x30));
        return or_bytes(low, and_bytes(shift_right<2 * S::run - 4>(high), 0x30));
    }
};

template <int kS, int kJ>
static inline vb two_bits(const Planes& g, std::size_t b) {
    using S = SubOf16<kS>;
    return and_bytes(shift_right<2 * S::run>(g.bytes<0, 16>(b, S::half * 8 + S::part * 4 + kJ)), 3);
}

struct FormatQ3_K : BlockOf16x16 {
    static constexpr DType kType = DType::Q3_K;
    static constexpr int kMax = 7, kOffset = 4;
    static void scales(const Planes& g, std::size_t b, vf* d, vf*) {
        const vf super = g.halves<3>(b);
        vi byte[12];
        unroll<12>([&]<int i>() { byte[i] = load_u8(g.byte_plane<2, 12>(b, i)); });
        unroll<16>([&]<int i>() {
            const vi low = i < 8 ? byte[i % 8] & 15 : byte[i % 8] >> 4;
            const vi high = (byte[8 + i % 4] >> (2 * (i / 4))) & 3;
            d[i] = super * to_float((low | (high << 4)) - 32);
        });
    }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        using S = SubOf16<kS>;
        const vb mask = g.bytes<1, 8>(b, S::part * 4 + kJ);
        return or_bytes(two_bits<kS, kJ>(g, b), bit_to<4 * S::half + S::run, 2>(mask));
    }
};

struct FormatQ2_K : BlockOf16x16 {
    static constexpr DType kType = DType::Q2_K;
    static constexpr int kMax = 3;
    static constexpr bool kHasMin = true;
    static void scales(const Planes& g, std::size_t b, vf* d, vf* m) {
        const vf super = g.halves<2>(b), super_min = g.halves<3>(b);
        unroll<16>([&]<int i>() {
            const vi byte = load_u8(g.byte_plane<1, 16>(b, i));
            d[i] = super * to_float(byte & 15);
            m[i] = super_min * to_float(byte >> 4);
        });
    }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        return two_bits<kS, kJ>(g, b);
    }
};

struct FormatIQ4_XS : BlockOf256 {
    static constexpr DType kType = DType::IQ4_XS;
    static constexpr bool kSigned = true;
    static void scales(const Planes& g, std::size_t b, vf* d, vf*) {
        const vf super = g.halves<2>(b);
        const vi high = load_u16(reinterpret_cast<const std::uint16_t*>(g.p[3]) + b * L);
        unroll<8>([&]<int i>() {
            const vi low = (load_u8(g.byte_plane<1, 4>(b, i / 2)) >> (4 * (i % 2))) & 15;
            d[i] = super * to_float((low | (((high >> (2 * i)) & 3) << 4)) - 32);
        });
    }
    template <int kS, int kJ>
    static vb quants(const Planes& g, std::size_t b) {
        return lookup16(kIq4Values, nibble<kJ / 4>(g.bytes<0, 32>(b, kS * 4 + kJ % 4)));
    }
};

}  // namespace akunu::cpu::AKUNU_ISA
