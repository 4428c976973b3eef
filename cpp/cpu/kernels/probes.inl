// What this processor reaches: the ceilings that `profile` and the benchmarks compare with.

namespace akunu::cpu::AKUNU_ISA {

// Keeps a value alive without storing it.
template <typename T>
static inline void keep(const T& v) {
    asm volatile("" : : "m"(v) : "memory");
}

// FLOPs done: independent chains of multiply-adds.
static double probe_f32(std::uint64_t iterations) {
    constexpr int kChains = 12;
    vf acc[kChains];
    for (int i = 0; i < kChains; ++i) acc[i] = set1(static_cast<float>(i));
    vf x = set1(0.999f), y = set1(0.001f);
    keep(x), keep(y);
    for (std::uint64_t n = 0; n < iterations; ++n) {
        for (vf& a : acc) a = fma(a, x, y);
    }
    for (vf& a : acc) keep(a);
    return static_cast<double>(iterations) * kChains * L * 2;
}

// Integer operations done (multiplies and adds) by the dot product that the matmuls use.
static double probe_int8(std::uint64_t iterations) {
    constexpr int kChains = 8, kSteps = 8;
    alignas(64) std::uint8_t weights[4 * L];
    alignas(64) std::int8_t x[4 * kSteps * kChains];
    for (int i = 0; i < 4 * L; ++i) weights[i] = static_cast<std::uint8_t>(i % 16);
    for (int i = 0; i < 4 * kSteps * kChains; ++i) x[i] = static_cast<std::int8_t>(i - 128);
    vi acc[kChains] = {};
    for (std::uint64_t n = 0; n < iterations; ++n) {
        keep(weights), keep(x);
        const vb w = load_bytes(weights);
        DotU<15, kSteps> dots[kChains];
        unroll<kSteps>([&]<int j>() {
            for (int i = 0; i < kChains; ++i) dots[i].template step<j>(w, x + 4 * (i * kSteps + j));
        });
        for (int i = 0; i < kChains; ++i) acc[i] += dots[i].sum();
    }
    for (vi& a : acc) keep(a);
    return static_cast<double>(iterations) * kChains * kSteps * 4 * L * 2;
}

// Bytes read, front to back.
static double probe_read(const std::byte* data, std::uint64_t bytes) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(data);
    constexpr std::uint64_t kLine = 64, kLines = 8, kAhead = 4096;
    vb acc = load_bytes(p);
    for (std::uint64_t i = 0; i + kLine * kLines <= bytes; i += kLine * kLines) {
        for (std::uint64_t j = 0; j < kLines; ++j) __builtin_prefetch(p + i + kAhead + j * kLine);
        for (std::uint64_t j = 0; j < kLine * kLines; j += sizeof(vb)) acc = or_bytes(acc, load_bytes(p + i + j));
    }
    keep(acc);
    return static_cast<double>(bytes / (kLine * kLines) * (kLine * kLines));
}

}  // namespace akunu::cpu::AKUNU_ISA
