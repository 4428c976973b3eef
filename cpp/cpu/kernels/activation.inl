// What becomes of a row of activations: rounded to the q8 format, or through an activation function.

namespace akunu::cpu::AKUNU_ISA {

// One block of 32 of the q8 format.
static inline void quantize_block(const Q8Row& row, std::size_t block, const float* x) {
    constexpr int kVectors = 32 / L;
    vf v[kVectors], top = zero();
    for (int i = 0; i < kVectors; ++i) {
        v[i] = load(x + i * L);
        top = max_(top, max_(v[i], -v[i]));
    }
    const float amax = reduce_max(top);
    const float d = q8_scale(amax);
    const vf inverse = set1(d > 0 ? 127.0f / amax : 0.0f);
    vf half[2] = {zero(), zero()};  // sums of floats are as exact as those of integers
    for (int i = 0; i < kVectors; ++i) {
        const vi q = round_int(v[i] * inverse);
        store_i8(row.q() + block * 32 + static_cast<std::size_t>(i) * L, q);
        half[i * L / 16] += to_float(q);
    }
    const float first = reduce_add(half[0]), second = reduce_add(half[1]);
    row.d()[block] = d;
    row.s16()[2 * block] = first;
    row.s16()[2 * block + 1] = second;
    row.s()[block] = first + second;
}

static inline void quantize_row(std::byte* out, const Q8Layout& at, std::size_t dim, const float* x) {
    const Q8Row row{out, at};
    for (std::size_t b = 0; b < dim / 32; ++b) quantize_block(row, b, x + b * 32);
}

// Calls f(function) with the function of that number: inside a loop its constants would be loaded for each vector.
template <typename F>
static inline void with_activation(u32 activation, F&& f) {
    switch (activation) {
        case kActGeluTanh:
            return f([](vf x) { return gelu_tanh(x); });
        case kActGelu:
            return f([](vf x) { return gelu(x); });
        case kActTanh:
            return f([](vf x) { return tanh_(x); });
        case kActRelu:
            return f([](vf x) { return max_(x, zero()); });
        case kActRelu2:
            return f([](vf x) {
                const vf positive = max_(x, zero());
                return positive * positive;
            });
        case kActNone:
            return f([](vf x) { return x; });
        case kActSigmoid:
            return f([](vf x) { return sigmoid(x); });
        default:
            return f([](vf x) { return silu(x); });
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
