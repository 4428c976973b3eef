#include "audio/spectrum.h"

#include <cmath>
#include <numbers>

namespace akunu::audio {

namespace {

Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
Complex operator*(const Complex& a, float b) { return {a.re * b, a.im * b}; }
Complex minus_i(const Complex& a) { return {a.im, -a.re}; }  // -i a

// Transforms of 2, 4 and 5 points, in place.
void butterfly(std::array<Complex, 2>& x) { x = {x[0] + x[1], x[0] - x[1]}; }

void butterfly(std::array<Complex, 4>& x) {
    const Complex even = x[0] + x[2], even_rest = x[0] - x[2];
    const Complex odd = x[1] + x[3], odd_rest = minus_i(x[1] - x[3]);
    x = {even + odd, even_rest + odd_rest, even - odd, even_rest - odd_rest};
}

void butterfly(std::array<Complex, 5>& x) {
    constexpr float c1 = 0.309016994374947424f, c2 = -0.809016994374947424f;  // cos(2 pi / 5), cos(4 pi / 5)
    constexpr float s1 = 0.951056516295153572f, s2 = 0.587785252292473129f;   // sin
    const Complex a = x[1] + x[4], b = x[2] + x[3], d = x[1] - x[4], e = x[2] - x[3];
    const Complex p = x[0] + a * c1 + b * c2, q = x[0] + a * c2 + b * c1;
    const Complex r = minus_i(d * s1 + e * s2), s = minus_i(d * s2 - e * s1);
    x = {x[0] + a + b, p + r, q + s, q - s, p - r};
}

}  // namespace

Spectrum::Spectrum() {
    constexpr double turn = 2 * std::numbers::pi;
    for (std::size_t i = 0; i < kFrame; ++i) {
        window_[i] = static_cast<float>(0.5 - 0.5 * std::cos(turn * static_cast<double>(i) / kFrame));
    }
    const auto root = [&](std::size_t k, std::size_t n) {
        const double angle = -turn * static_cast<double>(k) / static_cast<double>(n);
        return Root{static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
    };
    for (std::size_t k = 0; k < kHalf; ++k) roots_[k] = root(k, kHalf);
    for (std::size_t k = 0; k < kBins; ++k) half_roots_[k] = root(k, kFrame);
}

// One pass of Stockham's algorithm: `stride` interleaved transforms of `length` points become `stride * R` of
// `length / R`.
template <std::size_t R>
void Spectrum::pass(const Complex* from, Complex* to, std::size_t length, std::size_t stride) const {
    const std::size_t rest = length / R;
    for (std::size_t p = 0; p < rest; ++p) {
        for (std::size_t q = 0; q < stride; ++q) {
            std::array<Complex, R> x;
            for (std::size_t j = 0; j < R; ++j) x[j] = from[q + stride * (p + rest * j)];
            butterfly(x);
            to[q + stride * R * p] = x[0];
            for (std::size_t j = 1; j < R; ++j) {
                const Root w = roots_[j * p * stride];
                to[q + stride * (R * p + j)] = {x[j].re * w.re - x[j].im * w.im, x[j].re * w.im + x[j].im * w.re};
            }
        }
    }
}

void Spectrum::power(const std::array<const float*, kLanes>& frames, std::array<Lanes, kBins>& bins) const {
    std::array<Complex, kHalf> a, b;
    const auto sample = [&](std::size_t i) {
        return Lanes{frames[0][i], frames[1][i], frames[2][i], frames[3][i]} * window_[i];
    };
    for (std::size_t i = 0; i < kHalf; ++i) a[i] = {sample(2 * i), sample(2 * i + 1)};
    pass<5>(a.data(), b.data(), 200, 1);
    pass<5>(b.data(), a.data(), 40, 5);
    pass<4>(a.data(), b.data(), 8, 25);
    pass<2>(b.data(), a.data(), 2, 100);
    // X[k] = even[k] + w^k odd[k], where Z[k] = even[k] + i odd[k] and both are spectra of real samples.
    for (std::size_t k = 0; k < kBins; ++k) {
        const Complex& z = a[k % kHalf];
        const Complex& mirror = a[(kHalf - k) % kHalf];
        const Complex even = {z.re + mirror.re, z.im - mirror.im};
        const Complex odd = {z.im + mirror.im, mirror.re - z.re};
        const Root w = half_roots_[k];
        const Lanes re = even.re + odd.re * w.re - odd.im * w.im;
        const Lanes im = even.im + odd.re * w.im + odd.im * w.re;
        bins[k] = (re * re + im * im) * 0.25f;
    }
}

}  // namespace akunu::audio
