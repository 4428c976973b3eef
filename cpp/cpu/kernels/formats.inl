// How each packed weight format unpacks: the bytes of a dot-product step, and the scales of a block.
//
// A block has kSubs sub-blocks of kSub elements with one scale each (and one minimum). `quants<sub, j>` gives the j-th
// four elements of a sub-block for all rows of the group; elements are in the file's order, so activations need no
// reordering. Value of an element: d·(q - kOffset) - m.

namespace akunu::cpu::AKUNU_ISA {

// Hides where a pointer comes from: what it points to is then addressed by constant offsets from it, where the compiler
// would keep an address for every vector of a block.
template <typename T>
static inline const T* opaque(const T* p) {
    asm("" : "+r"(p));
    return p;
}

// The fields of a group's first block, or of a later one.
struct Fields {
    const std::uint8_t* p[4];
    DType scale_type;
    unsigned runs;
    const std::int8_t* levels;
    const float* factors;
    Fields(const std::byte* group, const GroupLayout& layout)
        : scale_type(layout.scale_type),
          runs(layout.runs),
          levels(layout.levels),
          factors(reinterpret_cast<const float*>(group + layout.factors)) {
        for (int i = 0; i < 4; ++i) p[i] = reinterpret_cast<const std::uint8_t*>(group) + layout.field[i];
    }
    template <int kField>
    vb bytes(int unit) const {  // of 4-byte units
        return load_bytes(p[kField] + unit * 4 * L);
    }
    template <int kField>
    vf halves(int unit = 0) const {
        return load_half(reinterpret_cast<const std::uint16_t*>(p[kField]) + unit * L);
    }
    template <int kField>
    const std::uint8_t* single_bytes(int unit = 0) const {
        return p[kField] + unit * L;
    }
};

// How a format is packed: records, and at most one plane besides. Bytes are those of a block.
template <typename F>
struct Packing {
    static constexpr PackFormat kFormat = [] {
        for (const PackFormat& f : kPackFormats) {
            if (f.dtype == F::kType) return f;
        }
        return PackFormat{};
    }();
    static constexpr std::size_t kRecord = kFormat.record_bytes(L);
    static constexpr std::size_t kLast = kFormat.n_fields - std::size_t{1};  // the field of the plane, if any
    static constexpr std::size_t kPlane = kFormat.in_record(kLast) ? 0 : kFormat.field_bytes(kLast, L);

    static Fields from_block(Fields group, std::size_t block) {
        static_assert(kRecord == kFormat.record_offset(kLast, L) + (kPlane == 0 ? kFormat.field_bytes(kLast, L) : 0));
        const std::uint8_t* record = opaque(group.p[0] + block * kRecord);
        for (std::size_t i = 0; i < kLast; ++i) group.p[i] = record + kFormat.record_offset(i, L);
        group.p[kLast] =
            kPlane == 0 ? record + kFormat.record_offset(kLast, L) : opaque(group.p[kLast] + block * kPlane);
        return group;
    }
};

// Lines that are fetched into the second-level cache, one for each that goes into the first.
struct FarLines {
    const std::uint8_t* next;
    std::size_t step;
    void fetch() {
        if constexpr (kFetchFar == 0) return;
        __builtin_prefetch(next, 0, 2);
        next += step;
    }
};

// Fetches a later block of the group, or of the next one, a line at a time, which the processor's own prefetching does
// too late, and not into the first-level cache.
template <typename F>
struct BlockAhead : Packing<F> {
    using Packing<F>::kRecord, Packing<F>::kPlane;
    static constexpr std::size_t kLine = 64;
    static constexpr std::size_t kBlocks = (kFetchNear + kRecord + kPlane - 1) / (kRecord + kPlane);
    static constexpr std::size_t kRecordLines = (kRecord + kLine - 1) / kLine;
    static constexpr std::size_t kLines = kRecordLines + (kPlane + kLine - 1) / kLine;

    const std::uint8_t *record, *plane;
    // The group that comes next is `next` bytes behind.
    BlockAhead(const Fields& group, std::size_t next, std::size_t block, std::size_t blocks) {
        const bool later = block + kBlocks >= blocks;
        const std::size_t b = later ? block + kBlocks - blocks : block + kBlocks, skip = later ? next : 0;
        record = group.p[0] + b * kRecord + skip;
        plane = group.p[Packing<F>::kLast] + b * kPlane + skip;
    }
    // For the blocks from `block` on, where M of all `tokens` are taken, from `token` on. One tile alone fetches what
    // it reads soon. Of several, of which all but the first find the group in the cache, each has a share of the next
    // one's group: memory is never idle.
    static FarLines far_lines(const Fields& group, std::size_t next, std::size_t block, std::size_t blocks,
                              std::size_t token, std::size_t m, std::size_t tokens) {
        if (m == tokens) return {group.p[0] + (block + kBlocks) * kRecord + kFetchFar, kLine};
        return {group.p[0] + next + blocks * kRecord * token / tokens, kRecord * m / (tokens * kRecordLines)};
    }
    // The share of step `kStep` of `kSteps`.
    template <int kStep, int kSteps>
    void fetch(FarLines& far) const {
        constexpr std::size_t first = kStep * kLines / kSteps, last = (kStep + 1) * kLines / kSteps;
        for (std::size_t n = first; n < last; ++n) {
            if (n < kRecordLines) {
                __builtin_prefetch(record + n * kLine);
                far.fetch();
            } else {
                __builtin_prefetch(plane + (n - kRecordLines) * kLine);
            }
        }
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

// kHalfScales: scales are halves, or halves times integers of at most 8 bits.
struct BlockOf32 {
    static constexpr int kBlock = 32, kSub = 32, kSubs = 1, kMax = 15, kOffset = 0;
    static constexpr bool kSigned = false, kHasMin = false, kHalfScales = true;
};

struct FormatQ4_0 : BlockOf32 {
    static constexpr DType kType = DType::Q4_0;
    static constexpr int kOffset = 8;
    static void scales(const Fields& g, vf* d, vf*) { d[0] = g.halves<1>(); }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return nibble<kJ / 4>(g.bytes<0>(kJ % 4));
    }
};

struct FormatQ4_1 : BlockOf32 {
    static constexpr DType kType = DType::Q4_1;
    static constexpr bool kHasMin = true;
    static void scales(const Fields& g, vf* d, vf* m) {
        d[0] = g.halves<0>(0);
        m[0] = -g.halves<0>(1);
    }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return nibble<kJ / 4>(g.bytes<1>(kJ % 4));
    }
};

// Fields: the high bits, then the nibbles.
template <int kJ, int kField>
static inline vb five_bits(const Fields& g) {
    return or_bytes(nibble<kJ / 4>(g.bytes<kField + 1>(kJ % 4)), bit_to<kJ, 4>(g.bytes<kField>(0)));
}

struct FormatQ5_0 : BlockOf32 {
    static constexpr DType kType = DType::Q5_0;
    static constexpr int kMax = 31, kOffset = 16;
    static void scales(const Fields& g, vf* d, vf*) { d[0] = g.halves<2>(); }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return five_bits<kJ, 0>(g);
    }
};

struct FormatQ5_1 : BlockOf32 {
    static constexpr DType kType = DType::Q5_1;
    static constexpr int kMax = 31;
    static constexpr bool kHasMin = true;
    static void scales(const Fields& g, vf* d, vf* m) {
        d[0] = g.halves<0>(0);
        m[0] = -g.halves<0>(1);
    }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return five_bits<kJ, 1>(g);
    }
};

struct FormatQ8_0 : BlockOf32 {
    static constexpr DType kType = DType::Q8_0;
    static constexpr bool kSigned = true;
    static void scales(const Fields& g, vf* d, vf*) { d[0] = g.halves<1>(); }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return g.bytes<0>(kJ);
    }
};

alignas(16) constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                    1,    13,   25,  38,  53,  69,  89,  113};

struct FormatIQ4_NL : BlockOf32 {
    static constexpr DType kType = DType::IQ4_NL;
    static constexpr bool kSigned = true;
    static void scales(const Fields& g, vf* d, vf*) { d[0] = g.halves<1>(); }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return lookup16(kIq4Values, nibble<kJ / 4>(g.bytes<0>(kJ % 4)));
    }
};

// E2M1 values doubled, plus 12; the block's scale is 2^(e - 127) / 2.
alignas(16) constexpr std::int8_t kMxfp4Values[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

// Values of E4M3 that are no NaN. Their bits are those of binary32 but for the exponent's bias.
static inline vf load_e4m3(const std::int8_t* p) {
    const vi bits = (load_i8(p) << 20) & static_cast<std::int32_t>(0x87F00000u);
    vf v;
    std::memcpy(&v, &bits, sizeof v);
    return v * set1(0x1p120f);
}

// MLX's mxfp4 too is packed so.
struct FormatMXFP4 : BlockOf32 {
    static constexpr DType kType = DType::MXFP4;
    static constexpr int kMax = 24, kOffset = 12;
    static constexpr bool kHalfScales = false;
    static void scales(const Fields& g, vf* d, vf*) {
        // 2^(e - 128): a normal number for e >= 2, else the subnormals 2^-128 and 2^-127.
        const vi e = load_u8(g.single_bytes<1>(0));
        const vi normal = (e - 1) << 23, subnormal = set1i(0x00200000) << (e & 1);
        const vi bits = e < 2 ? subnormal : normal;
        std::memcpy(&d[0], &bits, sizeof bits);
    }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return lookup16(kMxfp4Values, nibble<kJ / 4>(g.bytes<0>(kJ % 4)));
    }
};

// Two sub-blocks of 16 with E4M3 scales.
struct FormatNvfp4 {
    static constexpr DType kType = DType::MlxNvfp4;
    static constexpr int kBlock = 32, kSub = 16, kSubs = 2, kMax = 24, kOffset = 12;
    static constexpr bool kSigned = false, kHasMin = false, kHalfScales = false;
    static void scales(const Fields& g, vf* d, vf*) {
        const vf half = load(g.factors);  // of what the row is multiplied with
        unroll<2>(
            [&]<int s>() { d[s] = half * load_e4m3(reinterpret_cast<const std::int8_t*>(g.single_bytes<1>(s))); });
    }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return lookup16(kMxfp4Values, nibble<kS>(g.bytes<0>(kJ)));
    }
};

struct BlockOf256 {
    static constexpr int kBlock = 256, kSub = 32, kSubs = 8, kMax = 15, kOffset = 0;
    static constexpr bool kSigned = false, kHasMin = false, kHalfScales = true;
};

// The 6-bit scales and minimums that Q4_K and Q5_K share: 12 bytes a row, field 1.
static inline void scales_and_mins(const Fields& g, vf d, vf dmin, vf* scale, vf* min) {
    vi byte[12];
    unroll<12>([&]<int i>() { byte[i] = load_u8(g.single_bytes<1>(i)); });
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
    static void scales(const Fields& g, vf* d, vf* m) { scales_and_mins(g, g.halves<0>(0), g.halves<0>(1), d, m); }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return nibble<kS % 2>(g.bytes<2>(kS / 2 * 8 + kJ));
    }
};

struct FormatQ5_K : BlockOf256 {
    static constexpr DType kType = DType::Q5_K;
    static constexpr int kMax = 31;
    static constexpr bool kHasMin = true;
    static void scales(const Fields& g, vf* d, vf* m) { scales_and_mins(g, g.halves<0>(0), g.halves<0>(1), d, m); }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return or_bytes(nibble<kS % 2>(g.bytes<3>(kS / 2 * 8 + kJ)), bit_to<kS, 4>(g.bytes<2>(kJ)));
    }
};

// 16 sub-blocks of 16: two to each run of 32, four runs to each half of 128.
struct BlockOf16x16 : BlockOf256 {
    static constexpr int kSub = 16, kSubs = 16;
};

// Formats whose scales are small integers times what a block has in common: scale<s> and common. Where kCommonLast, an
// instruction set multiplies with the integers as such, and with the rest once a block. The sums of 32 elements are
// then integers below 2^24, which floats hold too.
template <typename F>
constexpr bool kHasCommon = kCommonLast && requires(const Fields& g) { F::common(g); };

template <typename F>
static inline void scales_in_common(const Fields& g, vf* d) {
    const vf common = F::common(g);
    unroll<F::kSubs>([&]<int s>() {
        const vf scale = to_float(F::template scale<s>(g));
        d[s] = kHasCommon<F> ? scale : common * scale;
    });
}

template <int kS>
struct SubOf16 {
    static constexpr int half = kS / 8, run = kS % 8 / 2, part = kS % 2;
};

struct FormatQ6_K : BlockOf16x16 {
    static constexpr DType kType = DType::Q6_K;
    static constexpr int kMax = 63, kOffset = 32;
    static vf common(const Fields& g) { return g.halves<3>(); }
    template <int kS>
    static vi scale(const Fields& g) {
        return load_i8(reinterpret_cast<const std::int8_t*>(g.single_bytes<0>(kS)));
    }
    static void scales(const Fields& g, vf* d, vf*) { scales_in_common<FormatQ6_K>(g, d); }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        using S = SubOf16<kS>;
        const vb low = nibble<S::run / 2>(g.bytes<1>(S::half * 16 + S::run % 2 * 8 + S::part * 4 + kJ));
        const vb high = g.bytes<2>(S::half * 8 + S::part * 4 + kJ);
        if constexpr (S::run < 2) return or_bytes(low, and_bytes(shift_left<4 - 2 * S::run>(high), 0x30));
        return or_bytes(low, and_bytes(shift_right<2 * S::run - 4>(high), 0x30));
    }
};

template <int kS, int kJ>
static inline vb two_bits(const Fields& g) {
    using S = SubOf16<kS>;
    return and_bytes(shift_right<2 * S::run>(g.bytes<2>(S::half * 8 + S::part * 4 + kJ)), 3);
}

struct FormatQ3_K : BlockOf16x16 {
    static constexpr DType kType = DType::Q3_K;
    static constexpr int kMax = 7, kOffset = 4;
    static vf common(const Fields& g) { return g.halves<3>(); }
    template <int kS>
    static vi scale(const Fields& g) {
        const vi low = load_u8(g.single_bytes<0>(kS % 8)), high = load_u8(g.single_bytes<0>(8 + kS % 4));
        return (((low >> (kS / 8 * 4)) & 15) | (((high >> (kS / 4 * 2)) & 3) << 4)) - 32;
    }
    static void scales(const Fields& g, vf* d, vf*) { scales_in_common<FormatQ3_K>(g, d); }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        using S = SubOf16<kS>;
        const vb mask = g.bytes<1>(S::part * 4 + kJ);
        return or_bytes(two_bits<kS, kJ>(g), bit_to<4 * S::half + S::run, 2>(mask));
    }
};

struct FormatQ2_K : BlockOf16x16 {
    static constexpr DType kType = DType::Q2_K;
    static constexpr int kMax = 3;
    static constexpr bool kHasMin = true;
    static void scales(const Fields& g, vf* d, vf* m) {
        const vf super = g.halves<0>(0), super_min = g.halves<0>(1);
        unroll<16>([&]<int i>() {
            const vi byte = load_u8(g.single_bytes<1>(i));
            d[i] = super * to_float(byte & 15);
            m[i] = super_min * to_float(byte >> 4);
        });
    }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return two_bits<kS, kJ>(g);
    }
};

// Levels that a weight's type says; all types with as many are packed so. Scales are d/8 times odd integers.
template <int kSubs>
static inline void odd_scales(const Fields& g, vf half, vf* d) {
    const vf eighth = half * set1(0.125f);
    unroll<kSubs>([&]<int i>() {
        const vi s = load_u8(g.single_bytes<0>(i / 2));
        d[i] = eighth * to_float(((s >> (4 * (i % 2))) & 15) * 2 + 1);
    });
}

struct FormatThreeBitLevels : BlockOf16x16 {
    static constexpr DType kType = DType::Iq2Levels;  // stands for all
    static constexpr bool kSigned = true;
    static void scales(const Fields& g, vf* d, vf*) { odd_scales<16>(g, g.halves<3>(), d); }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        using S = SubOf16<kS>;
        const vb high = bit_to<4 * S::half + S::run, 2>(g.bytes<1>(S::part * 4 + kJ));
        return lookup16(g.levels, or_bytes(two_bits<kS, kJ>(g), high));
    }
};

struct FormatFourBitLevels : BlockOf256 {
    static constexpr DType kType = DType::Iq3SLevels;  // stands for all
    static constexpr bool kSigned = true;
    static void scales(const Fields& g, vf* d, vf*) { odd_scales<8>(g, g.halves<2>(), d); }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return lookup16(g.levels, nibble<kJ / 4>(g.bytes<1>(kS * 4 + kJ % 4)));
    }
};

// Twice a bit, less one.
struct FormatQ1_0 {
    static constexpr DType kType = DType::Q1_0;
    static constexpr int kBlock = 128, kSub = 32, kSubs = 4, kMax = 2, kOffset = 1;
    static constexpr bool kSigned = false, kHasMin = false, kHalfScales = true;
    static void scales(const Fields& g, vf* d, vf*) {
        d[0] = g.halves<1>();
        unroll<3>([&]<int i>() { d[i + 1] = d[0]; });
    }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return bit_to<kJ, 1>(g.bytes<0>(kS));
    }
};

struct FormatIQ4_XS : BlockOf256 {
    static constexpr DType kType = DType::IQ4_XS;
    static constexpr bool kSigned = true;
    static void scales(const Fields& g, vf* d, vf*) {
        const vf super = g.halves<0>(0);
        const vi high = load_u16(reinterpret_cast<const std::uint16_t*>(g.p[0]) + L);
        unroll<8>([&]<int i>() {
            const vi low = (load_u8(g.single_bytes<1>(i / 2)) >> (4 * (i % 2))) & 15;
            d[i] = super * to_float((low | (((high >> (2 * i)) & 3) << 4)) - 32);
        });
    }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        return lookup16(kIq4Values, nibble<kJ / 4>(g.bytes<2>(kS * 4 + kJ % 4)));
    }
};

}  // namespace akunu::cpu::AKUNU_ISA
