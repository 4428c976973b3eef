#include "engine/weight_source.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/half.h"

namespace akunu {

namespace {

std::uint64_t next_random(std::uint64_t& s) {  // splitmix64
    std::uint64_t z = (s += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

void put_half(std::byte* at, float v) {
    const std::uint16_t h = float_to_half(v);
    std::memcpy(at, &h, 2);
}

// A scale that is near `v`; returns the end of it.
std::byte* put_scale(DType type, std::byte* at, float v) {
    if (type == DType::F32) {
        std::memcpy(at, &v, 4);
        return at + 4;
    }
    const int exponent = static_cast<int>(std::lround(std::log2(v)));
    *at = static_cast<std::byte>(type == DType::F8E8M0 ? 127 + exponent : std::max(1, 7 + exponent) << 3);
    return at + 1;
}

// Overwrites a random block's scales, so that its values have a standard deviation of about `sigma`.
void set_scales(DType t, std::byte* block, float sigma) {
    switch (t) {
        case DType::Q4_0:
        case DType::IQ4_NL:
            put_half(block, t == DType::Q4_0 ? sigma / 4.6f : sigma / 65);
            break;
        case DType::Q4_1:
            put_half(block, sigma / 4.6f);
            put_half(block + 2, -sigma * 1.63f);
            break;
        case DType::Q5_0:
            put_half(block, sigma / 9.2f);
            break;
        case DType::Q5_1:
            put_half(block, sigma / 9.2f);
            put_half(block + 2, -sigma * 1.68f);
            break;
        case DType::Q8_0:
            put_half(block, sigma / 74);
            break;
        case DType::NVFP4:
            for (unsigned i = 0; i < 4; ++i) put_scale(DType::F8E4M3, block + i, sigma / 2.9f);
            break;
        case DType::MXFP4:  // E8M0 exponent
            block[0] = static_cast<std::byte>(127 + static_cast<int>(std::lround(std::log2(sigma / 3))));
            break;
        case DType::Q2_K:
            put_half(block + 80, sigma / 10);
            put_half(block + 82, sigma / 10);
            break;
        case DType::Q3_K:
            put_half(block + 108, sigma / 42);
            break;
        case DType::Q4_K:
        case DType::Q5_K:
            put_half(block, sigma / (t == DType::Q4_K ? 170 : 340));
            put_half(block + 2, sigma / 21);
            break;
        case DType::Q6_K:
            put_half(block + 208, sigma / 1370);
            break;
        case DType::IQ4_XS:
            put_half(block, sigma / 1200);
            break;
        case DType::IQ1_S:
            put_half(block, sigma / 7.2f);
            break;
        case DType::IQ1_M: {  // a quarter of it in front of each four scales
            const unsigned half = float_to_half(sigma / 7.2f);
            for (unsigned i = 0; i < 4; ++i) {
                std::byte& top = block[49 + 2 * i];
                top = (top & std::byte{15}) | static_cast<std::byte>((half >> (4 * i) & 15) << 4);
            }
            break;
        }
        case DType::IQ2_XXS:
        case DType::IQ2_XS:
        case DType::IQ2_S:
            put_half(block, sigma / 55);
            break;
        case DType::IQ3_XXS:
        case DType::IQ3_S:
            put_half(block, sigma / 141);
            break;
        case DType::TQ1_0:
            put_half(block + 52, sigma / 0.82f);
            break;
        case DType::TQ2_0:
            put_half(block + 64, sigma / 1.12f);
            break;
        case DType::Q1_0:
            put_half(block, sigma);
            break;
        case DType::Q2_0:
            put_half(block, sigma / 1.12f);
            break;
        default:
            break;
    }
}

void put_float(DType type, std::byte* at, float v) {
    if (type == DType::F32) {
        std::memcpy(at, &v, 4);
    } else {
        const std::uint16_t h = type == DType::F16 ? float_to_half(v) : float_to_bf16(v);
        std::memcpy(at, &h, 2);
    }
}

void put_random(std::span<std::byte> out, std::uint64_t& seed) {
    for (std::size_t i = 0; i < out.size(); i += 8) {
        const std::uint64_t r = next_random(seed);
        std::memcpy(out.data() + i, &r, std::min<std::size_t>(8, out.size() - i));
    }
}

// Fills `out` with its first `pattern` bytes.
void repeat(std::span<std::byte> out, std::uint64_t pattern) {
    for (std::uint64_t have = pattern; have < out.size();) {
        const std::uint64_t n = std::min(pattern, out.size() - have);
        std::memcpy(out.data() + have, out.data(), n);
        have += n;
    }
}

// The planes of `bytes`, one behind the other.
HostTensor planar_tensor(const SyntheticSource::Shape& s, std::span<const std::byte> bytes) {
    const Planes& planes = dtype_info(s.dtype).planes;
    const std::uint64_t blocks = s.rows * s.cols / dtype_info(s.dtype).block_elems;
    return {.dtype = s.dtype,
            .rows = s.rows,
            .cols = s.cols,
            .bytes = bytes.first(blocks * planes.codes),
            .scales = bytes.subspan(blocks * planes.codes, blocks * planes.scales),
            .biases = bytes.subspan(blocks * (planes.codes + planes.scales), blocks * planes.biases)};
}

// Random codes, whose scales and biases are all the same.
void fill_planes(const DTypeInfo& info, std::span<std::byte> out, float sigma, std::uint64_t seed) {
    const std::uint64_t blocks = out.size() / info.block_bytes, codes = blocks * info.planes.codes;
    const std::uint64_t pattern = std::min<std::uint64_t>(codes, 1 << 20);
    put_random(out.first(pattern), seed);
    repeat(out.first(codes), pattern);
    std::byte* at = out.data() + codes;
    if (info.planes.biases == 0) {  // floats
        if (info.has_float_codes()) {
            for (std::byte& code : out.first(codes)) code &= std::byte{0xBF};  // below 2, and no NaN
        }
        const float spread = info.has_float_codes() ? 0.6f : 2.9f;
        for (std::byte* end = out.data() + out.size(); at < end;) at = put_scale(info.scale_type, at, sigma / spread);
        return;
    }
    const auto most = static_cast<float>((1u << info.planes.codes * 8 / info.block_elems) - 1);
    const float scale = sigma * 3.46f / most;
    for (std::uint64_t i = 0; i < blocks; ++i, at += info.planes.scales) put_float(info.scale_type, at, scale);
    for (std::uint64_t i = 0; i < blocks; ++i, at += info.planes.biases) {
        put_float(info.scale_type, at, -scale * most / 2);
    }
}

}  // namespace

HostTensor SyntheticSource::get(const std::string& name) {
    const Shape& s = shapes_.at(name);
    const DTypeInfo& info = dtype_info(s.dtype);
    const std::uint64_t total = s.rows * row_bytes(s.dtype, s.cols);
    auto& out = bytes_[name];
    out.resize(total);
    if (info.planar()) {
        const float sigma = 1.0f / std::sqrt(static_cast<float>(s.cols));
        fill_planes(info, out, sigma, std::hash<std::string>{}(name));
        return planar_tensor(s, out);
    }

    // A pattern of a prime number of blocks, repeated: rows differ, and filling runs at memory speed.
    constexpr std::uint64_t kPatternBlocks = 4093;
    const std::uint64_t per_block = info.block_elems == 1 ? 64 : 1;  // floats: 64 elements at a time
    const std::uint64_t block = info.block_bytes * per_block;
    const std::uint64_t pattern = std::min<std::uint64_t>(kPatternBlocks * block, total);
    std::uint64_t seed = std::hash<std::string>{}(name);
    const float sigma = 1.0f / std::sqrt(static_cast<float>(s.cols));
    const bool norm = s.rows == 1;
    const float vector = name.ends_with("delta_decay") ? -1.0f : 1.0f;  // a state that grew would be infinite soon
    if (info.block_elems == 1) {
        for (std::uint64_t i = 0; i * info.block_bytes < pattern; ++i) {
            const double u = static_cast<double>(next_random(seed) >> 11) * 0x1p-53;
            const float v = norm ? vector : static_cast<float>((u - 0.5) * 3.46) * sigma;
            put_float(s.dtype, out.data() + i * info.block_bytes, v);
        }
    } else {
        put_random(std::span(out).first(pattern), seed);
        for (std::uint64_t i = 0; i < pattern; i += block) set_scales(s.dtype, out.data() + i, sigma);
    }
    repeat(out, pattern);
    return {s.dtype, s.rows, s.cols, out};
}

std::uint64_t SyntheticSource::total_bytes() const {
    std::uint64_t n = 0;
    for (const auto& [name, s] : shapes_) n += s.rows * row_bytes(s.dtype, s.cols);
    return n;
}

ShapeSource::ShapeSource(std::map<std::string, Shape> shapes) : SyntheticSource(std::move(shapes)) {
    for (const auto& [name, s] : shapes_) size_ = std::max(size_, s.rows * row_bytes(s.dtype, s.cols));
    zeros_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros_ == MAP_FAILED) {
        throw DeviceError("out of address space: could not map " + std::to_string(size_) + " bytes");
    }
}

ShapeSource::~ShapeSource() { munmap(zeros_, size_); }

HostTensor ShapeSource::get(const std::string& name) {
    const Shape& s = shapes_.at(name);
    const std::span<const std::byte> bytes{static_cast<const std::byte*>(zeros_), s.rows * row_bytes(s.dtype, s.cols)};
    if (dtype_info(s.dtype).planar()) return planar_tensor(s, bytes);
    return {s.dtype, s.rows, s.cols, bytes};
}

}  // namespace akunu
