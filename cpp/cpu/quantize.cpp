#include "core/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/dequantize.h"
#include "core/error.h"
#include "core/half.h"
#include "cpu/kernel.h"
#include "cpu/thread_pool.h"
#include "cpu/topology.h"

namespace akunu::cpu {

namespace {

// Weights of a piece that one thread converts at a time: what it holds of them stays in its cache.
constexpr std::uint64_t kPiece = std::uint64_t{1} << 16;

// The largest magnitude that a type holds, whatever the block: of most types that of a binary16 scale.
float largest(DType type) {
    switch (type) {
        case DType::F32:
        case DType::MXFP4:
            return HUGE_VALF;
        case DType::BF16:
            return bf16_to_float(0x7F7F);
        default:
            return 65504.0f;
    }
}

std::string place(const QuantizeJob& job, std::uint64_t index) {
    return "tensor " + std::string(job.tensor) + ", row " + std::to_string(job.first_row + index / job.columns) +
           ", column " + std::to_string(index % job.columns);
}

void check_values(const QuantizeJob& job, std::span<const float> values, std::uint64_t first) {
    const float most = largest(job.to);
    // Bits of magnitudes sort as the magnitudes do, and NaN after infinity: differences below zero are beyond.
    const std::uint32_t top = std::bit_cast<std::uint32_t>(std::min(most, std::numeric_limits<float>::max()));
    std::uint32_t beyond = 0;
    for (const float value : values) beyond |= top - (std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFu);
    if (beyond >> 31 == 0) return;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float value = std::fabs(values[i]);
        if (value <= most && value < HUGE_VALF) continue;
        if (!(value < HUGE_VALF)) {
            throw ModelFileError(place(job, first + i) + ": found " + (value > 0 ? "an infinity" : "NaN") +
                                 "; the weights are damaged, fetch them again");
        }
        throw UnsupportedError(place(job, first + i) + ": found " + std::to_string(values[i]) + ", but " +
                               std::string(dtype_info(job.to).name) + " holds " + std::to_string(most) +
                               " at most; choose bf16 or f32");
    }
}

void check_job(const QuantizeJob& job) {
    const auto check = [&](std::string_view what, std::uint64_t found, std::uint64_t expected) {
        if (found == expected) return;
        throw InvalidArgumentError("tensor " + std::string(job.tensor) + ": " + std::string(what) + " has " +
                                   std::to_string(found) + ", expected " + std::to_string(expected));
    };
    const DTypeInfo& from = dtype_info(job.from);
    const std::uint64_t blocks = job.rows * row_bytes(job.from, job.columns) / from.block_bytes;
    check("the source's bytes", job.source.size(), blocks * (from.planar() ? from.planes.codes : from.block_bytes));
    check("the source's scales", job.scales.size(), blocks * from.planes.scales);
    check("the source's biases", job.biases.size(), blocks * from.planes.biases);
    check("the result's bytes", job.out.size(), job.rows * row_bytes(job.to, job.columns));
    if (!can_quantize(job.to)) {
        throw InvalidArgumentError("quantize: " + std::string(dtype_info(job.to).name) +
                                   " is not a type that weights are quantised to");
    }
    if (job.importance.empty()) return;
    check("the importance's columns", job.importance.size(), job.columns);
    for (const float w : job.importance) {
        if (!(w >= 0 && w < HUGE_VALF)) {
            throw InvalidArgumentError("tensor " + std::string(job.tensor) + ": an importance is " + std::to_string(w) +
                                       ", expected a number from 0");
        }
    }
}

// Rows of the source as floats: where they are, or in `memory`.
std::span<const float> read_rows(const QuantizeJob& job, std::uint64_t first, std::uint64_t count,
                                 std::unique_ptr<float[]>& memory) {
    const DTypeInfo& from = dtype_info(job.from);
    const std::uint64_t row = row_bytes(job.from, job.columns), blocks = count * row / from.block_bytes;
    const std::byte* rows = job.source.data() + first * row;
    if (job.from == DType::F32 && reinterpret_cast<std::uintptr_t>(rows) % alignof(float) == 0) {
        return {reinterpret_cast<const float*>(rows), count * job.columns};
    }
    memory = std::make_unique_for_overwrite<float[]>(count * job.columns);
    const std::span<float> values(memory.get(), count * job.columns);
    if (!from.planar()) {
        dequantize_row(job.from, rows, values.data(), values.size());
        return values;
    }
    std::vector<std::byte> joined(count * row);
    std::byte* out = joined.data();
    const std::uint64_t begin = first * row / from.block_bytes;
    for (std::uint64_t b = begin; b < begin + blocks; ++b) {
        const auto plane = [&](std::span<const std::byte> bytes, std::uint64_t n) {
            out = std::copy_n(bytes.data() + b * n, n, out);
        };
        plane(job.source, from.planes.codes);
        plane(job.scales, from.planes.scales);
        plane(job.biases, from.planes.biases);
    }
    dequantize_row(job.from, joined.data(), values.data(), values.size());
    return values;
}

// Importances with a mean of 1, and none of them 0: a column that no text has used is still a column.
std::vector<float> scaled(std::span<const float> importance) {
    double sum = 0;
    for (const float w : importance) sum += w;
    const double mean = sum / static_cast<double>(std::max<std::size_t>(importance.size(), 1));
    std::vector<float> out(importance.size(), 1.0f);
    if (!(mean > 0)) return out;
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = std::max(static_cast<float>(importance[i] / mean), 1e-6f);
    }
    return out;
}

void store(const QuantizeJob& job, const Quantizer& quantizer, std::span<const float> values,
           std::span<const float> importance, std::byte* out) {
    const auto n = static_cast<std::uint64_t>(values.size());
    switch (job.to) {
        case DType::F32:
            std::memcpy(out, values.data(), values.size_bytes());
            return;
        case DType::F16:
        case DType::BF16:
            for (std::uint64_t i = 0; i < n; ++i, out += 2) {
                const std::uint16_t v = job.to == DType::F16 ? float_to_half(values[i]) : float_to_bf16(values[i]);
                std::memcpy(out, &v, sizeof v);
            }
            return;
        default:
            break;
    }
    for (std::uint64_t first = 0; first < n; first += quantizer.batch) {
        const std::uint64_t batch = std::min(quantizer.batch, n - first);
        quantizer.run({values.data() + first, importance.empty() ? nullptr : importance.data(), first % job.columns,
                       job.columns, batch},
                      out + row_bytes(job.to, first));
    }
}

}  // namespace

}  // namespace akunu::cpu

namespace akunu {

bool can_quantize(DType type) {
    const bool floats = type == DType::F32 || type == DType::F16 || type == DType::BF16;
    return floats || cpu::select_kernels().quantizer(type).run;
}

void quantize_rows(const QuantizeJob& job, int threads) {
    cpu::check_job(job);
    if (job.rows == 0 || job.columns == 0) return;
    const cpu::Quantizer quantizer = cpu::select_kernels().quantizer(job.to);
    const std::vector<float> importance = cpu::scaled(job.importance);
    const std::uint64_t rows = std::max<std::uint64_t>(1, cpu::kPiece / job.columns);
    const std::uint64_t out_row = row_bytes(job.to, job.columns);

    // Where several pieces fail, the first one speaks: the message does not hang on the threads.
    std::mutex mutex;
    std::exception_ptr failure;
    int failed = 0;
    const auto piece = [&](int i) {
        try {
            const std::uint64_t first = static_cast<std::uint64_t>(i) * rows;
            const std::uint64_t count = std::min(rows, job.rows - first);
            std::unique_ptr<float[]> memory;
            const std::span<const float> values = cpu::read_rows(job, first, count, memory);
            cpu::check_values(job, values, first * job.columns);
            cpu::store(job, quantizer, values, importance, job.out.data() + first * out_row);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failure || i < failed) {
                failure = std::current_exception();
                failed = i;
            }
        }
    };
    cpu::ThreadPool& pool = cpu::ThreadPool::of_process();
    const int team = threads > 0 ? threads : cpu::usable_cores();
    pool.reserve(team);
    pool.run(team, static_cast<int>((job.rows + rows - 1) / rows), piece);
    if (failure) std::rethrow_exception(failure);
}

}  // namespace akunu
