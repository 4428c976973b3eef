// The affine formats of MLX: one kernel for each number of bits, whatever the size of groups and the type of scales.
//
// A packed group of rows is a stream of records: scales and biases of all rows, then the codes of 1, 2 or 4 runs of 32
// elements (code_stream.h). Kernels take a run as a block.

namespace akunu::cpu::AKUNU_ISA {

template <int kBits>
struct FormatAffine : BlockOf32 {
    static constexpr DType kType = affine_dtype({kBits, kAffineGroups[0], kAffineScales[0]});  // stands for all
    // Bytes are taken as signed: 128 less.
    static constexpr bool kSigned = kBits == 8, kHasMin = true, kHalfScales = false;
    static constexpr int kMax = kBits <= 4 ? 15 : 63;                  // so that formats share tiles of panels
    static constexpr std::size_t kCodes = std::size_t{kBits} * 4 * L;  // bytes of a run

    static void scales(const Fields& g, vf* d, vf* m) {
        const auto bits = reinterpret_cast<const std::uint16_t*>(g.p[0]);
        if (g.scale_type == DType::BF16) {
            d[0] = load_bf16(bits);
            m[0] = -load_bf16(bits + L);
        } else if (g.scale_type == DType::F16) {
            d[0] = load_half(bits);
            m[0] = -load_half(bits + L);
        } else {
            d[0] = load(reinterpret_cast<const float*>(g.p[0]));
            m[0] = -load(reinterpret_cast<const float*>(g.p[0]) + L);
        }
        if constexpr (kSigned) m[0] = fma(set1(-128.0f), d[0], m[0]);
    }
    template <int kS, int kJ>
    static vb quants(const Fields& g) {
        if constexpr (kSigned) return sub_bytes(g.bytes<1>(kJ), 128);
        vb q{};
        for_code_parts_of<kBits>([&]<int bits, int first>() {
            const vb words = g.bytes<1>(first + kJ % bits);
            constexpr int kShift = kJ / bits * bits;
            const vb part = and_bytes(kShift == 0 ? words : shift_right<kShift>(words), (1 << bits) - 1);
            q = first == 0 ? part : or_bytes(q, shift_left<first>(part));
        });
        return q;
    }

  private:
    // Does what for_code_parts does, for so many bits.
    template <int kCodeBits, typename F>
    static void for_code_parts_of(F&& f) {
        constexpr int kFour = kCodeBits & 4, kTwo = kCodeBits & 2;
        if constexpr (kFour != 0) f.template operator()<4, 0>();
        if constexpr (kTwo != 0) f.template operator()<2, kFour>();
        if constexpr ((kCodeBits & 1) != 0) f.template operator()<1, kFour + kTwo>();
    }
};

// Where the record of a run begins, and the run in it.
template <int kBits>
struct Packing<FormatAffine<kBits>> {
    static constexpr std::size_t kCodes = FormatAffine<kBits>::kCodes;
    static Fields from_block(Fields group, std::size_t block) {
        const std::size_t header = 2 * L * (group.scale_type == DType::F32 ? 4 : 2),
                          record = header + (kCodes << group.runs);
        const std::size_t run = block & ((std::size_t{1} << group.runs) - 1);
        const std::uint8_t* at = group.p[0] + (block >> group.runs) * record;
        group.p[0] = at;
        group.p[1] = opaque(at + header + run * kCodes);
        return group;
    }
};

// The records of all groups are one stream.
template <int kBits>
struct BlockAhead<FormatAffine<kBits>> {
    static constexpr std::size_t kLine = 64, kLines = FormatAffine<kBits>::kCodes / kLine + 1;
    const std::uint8_t* at;
    BlockAhead(const Fields& group, std::size_t, std::size_t block, std::size_t)
        : at(Packing<FormatAffine<kBits>>::from_block(group, block).p[1] + kFetchNear) {}
    static FarLines far_lines(const Fields& group, std::size_t next, std::size_t block, std::size_t, std::size_t,
                              std::size_t, std::size_t) {
        return {BlockAhead(group, next, block, 0).at + kFetchFar, kLine};
    }
    template <int kStep, int kSteps>
    void fetch(FarLines& far) const {
        for (std::size_t n = kStep * kLines / kSteps; n < (kStep + 1) * kLines / kSteps; ++n) {
            __builtin_prefetch(at + n * kLine);
            far.fetch();
        }
    }
};

}  // namespace akunu::cpu::AKUNU_ISA
