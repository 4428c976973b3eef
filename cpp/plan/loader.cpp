#include "plan/loader.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/dequantize.h"
#include "core/error.h"
#include "core/half.h"
#include "core/take_weight.h"

namespace akunu {

namespace {

// Reads rows of a tensor as floats, also where planes hold its codes, scales and biases.
class HostRows {
  public:
    explicit HostRows(const HostTensor& t)
        : tensor_(t), type_(dtype_info(t.dtype)), joined_(type_.planar() ? row_bytes(t.dtype, t.cols) : 0) {}

    void values(std::uint64_t row, float* out) {
        if (type_.planar()) join(row);
        const std::byte* const from =
            type_.planar() ? joined_.data() : tensor_.bytes.data() + row * row_bytes(tensor_.dtype, tensor_.cols);
        dequantize_row(tensor_.dtype, from, out, tensor_.cols);
        if (tensor_.factors.empty()) return;
        for (std::uint64_t c = 0; c < tensor_.cols; ++c) out[c] *= tensor_.factors.front();
    }

  private:
    void join(std::uint64_t row) {
        std::byte* to = joined_.data();
        const std::uint64_t blocks = tensor_.cols / type_.block_elems;
        for (std::uint64_t b = row * blocks; b < (row + 1) * blocks; ++b) {
            const auto append = [&](std::span<const std::byte> plane, std::uint64_t n) {
                to = std::ranges::copy(plane.subspan(b * n, n), to).out;
            };
            append(tensor_.bytes, type_.planes.codes);
            append(tensor_.scales, type_.planes.scales);
            append(tensor_.biases, type_.planes.biases);
        }
    }

    const HostTensor& tensor_;
    const DTypeInfo& type_;
    std::vector<std::byte> joined_;  // one row, block by block
};

}  // namespace

Loader::Loader(Device& device, WeightSource& source, const Progress& progress, bool whole, bool paged, bool needed)
    : device_(device),
      source_(source),
      progress_(progress),
      whole_(whole),
      paged_(paged),
      needed_(needed),
      total_(source.total_bytes()) {}

void Loader::loaded(std::uint64_t bytes) {
    done_ += bytes;
    if (progress_) progress_(std::min(done_, total_), total_, {});
}

void Loader::finish() const {
    if (progress_) progress_(total_, total_, {});
}

HostTensor Loader::tensor(const std::string& name, std::uint64_t rows, std::uint64_t cols, Split split) {
    HostTensor t = source_.get(name);
    t.split = split;
    if (split == Split::kRows) rows *= device_.traits().cards;
    if (split == Split::kColumns) cols *= device_.traits().cards;
    if (t.rows != rows || t.cols != cols) {
        throw ModelFileError("tensor '" + name + "' is " + std::to_string(t.rows) + "x" + std::to_string(t.cols) +
                             ", expected " + std::to_string(rows) + "x" + std::to_string(cols));
    }
    return t;
}

Weight Loader::prepared(HostTensor t) {
    const bool halves = t.dtype == DType::F16 || t.dtype == DType::BF16;
    if (whole_) t.whole = Whole::kSequences;
    if (t.whole == Whole::kNone && halves && device_.traits().whole_halves) t.whole = Whole::kRows;
    return kept(take_weight(device_, t, [&](const HostTensor& weight) { return device_.prepare_weight(weight); }), t);
}

Weight Loader::kept(const Weight& w, const HostTensor& t) {
    if (w.mapped) {
        mapped_bytes_ += w.bytes();
    } else {
        owned_.emplace_back(device_, w.data.buffer);
        owned_bytes_ += w.data.buffer.size;
    }
    loaded(t.total_bytes());
    return w;
}

Weight Loader::wide(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    const HostTensor t = tensor(name, rows, cols);
    if (t.dtype == DType::F32 || !t.scales.empty()) return matrix(name, rows, cols, false);
    std::vector<float> values(rows * cols);
    dequantize_row(t.dtype, t.bytes.data(), values.data(), values.size());
    if (!t.factors.empty()) {
        for (float& value : values) value *= t.factors.front();
    }
    const Weight w = prepared({DType::F32, rows, cols, std::as_bytes(std::span(values))});
    source_.done(name);
    return w;
}

Weight Loader::experts(const std::string& name, std::uint64_t count, std::uint64_t rows, std::uint64_t cols) {
    const bool can = source_.in_place(name), paged = paged_ && count > 1 && can;
    if (paged_ && count > 1 && !can && needed_) {
        throw UnsupportedError("tensor '" + name +
                               "': the model does not fit the memory, and its experts cannot stay in files that hold "
                               "their rows in another order or each expert by itself; akunu convert makes a GGUF file "
                               "of it, from which they can be used");
    }
    const HostTensor tensors = tensor(name, count * rows, cols);
    const Weight w = parted(tensors, count, paged);
    if (paged) {
        mapped_bytes_ += tensors.total_bytes();
    } else if (!w.mapped) {
        source_.done(name);
    }
    return w;
}

Weight Loader::clusters(const std::string& name, std::span<const std::uint32_t> order, std::uint64_t count,
                        std::uint64_t cols) {
    HostTensor t = tensor(name, order.size(), cols);
    std::vector<std::byte> moved[3];
    std::span<const std::byte>* const planes[3] = {&t.bytes, &t.scales, &t.biases};
    for (std::size_t i = 0; i < 3; ++i) {
        const std::span<const std::byte> plane = *planes[i];
        const std::size_t row = plane.size() / order.size();
        moved[i].resize(plane.size());
        for (std::size_t r = 0; row != 0 && r < order.size(); ++r) {
            std::ranges::copy(plane.subspan(order[r] * row, row), moved[i].data() + r * row);
        }
        *planes[i] = moved[i];
    }
    t.mapping = {};
    const Weight w = parted(t, count);
    source_.done(name);
    return w;
}

Weight Loader::heads(const std::string& name, std::uint64_t count, std::uint64_t rows, std::uint64_t cols) {
    const Weight w = parted(tensor(name, count * rows, cols), count);
    if (!w.mapped) source_.done(name);
    return w;
}

Weight Loader::parted(const HostTensor& tensors, std::uint64_t count, bool paged) {
    const Weight prepared = take_weight(device_, tensors, [&](const HostTensor& all) {
        std::vector<HostTensor> parts(count, all);
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto part = [&](std::span<const std::byte> bytes) {
                return bytes.subspan(bytes.size() / count * i, bytes.size() / count);
            };
            parts[i].rows = tensors.rows / count;
            parts[i].bytes = part(all.bytes);
            parts[i].scales = part(all.scales);
            parts[i].biases = part(all.biases);
            if (all.factors.size() > 1) parts[i].factors = all.factors.subspan(i, 1);
        }
        return paged ? device_.page_experts(parts) : device_.prepare_experts(parts);
    });
    return kept(prepared, tensors);
}

std::pair<Weight, Weight> Loader::keys_and_values(const std::string& name, std::uint64_t count, std::uint64_t key_rows,
                                                  std::uint64_t value_rows, std::uint64_t cols) {
    const std::uint64_t rows = key_rows + value_rows;
    const HostTensor t = tensor(name, count * rows, cols);
    const DTypeInfo& type = dtype_info(t.dtype);
    // Blocks lie along the rows, so that what is turned has another type: floats keep theirs. What has planes, or a
    // factor besides, becomes F16 as a whole.
    const bool floats = type.block_elems == 1 && !type.planar(), rewritten = type.planar() || !t.factors.empty();
    const DType turned = floats ? t.dtype : DType::F16, kept = rewritten ? DType::F16 : t.dtype;
    const std::uint64_t size = dtype_info(turned).block_bytes, stride = row_bytes(kept, cols);
    std::vector<std::byte> keys(count * cols * key_rows * size), values(count * value_rows * stride);
    HostRows rows_of(t);
    std::vector<float> row(cols);
    const auto halve = [](float value, std::byte* to) {
        const std::uint16_t half = float_to_half(value);
        std::memcpy(to, &half, sizeof half);
    };
    // The bytes of a row, whose values are in `row` unless they are floats.
    const auto read = [&](std::uint64_t r) -> const std::byte* {
        if (!floats) rows_of.values(r, row.data());
        return t.bytes.data() + r * row_bytes(t.dtype, cols);
    };
    for (std::uint64_t h = 0; h < count; ++h) {
        for (std::uint64_t r = 0; r < key_rows; ++r) {
            const std::byte* const from = read(h * rows + r);
            for (std::uint64_t c = 0; c < cols; ++c) {
                std::byte* const to = keys.data() + ((h * cols + c) * key_rows + r) * size;
                if (floats) {
                    std::memcpy(to, from + c * size, size);
                } else {
                    halve(row[c], to);
                }
            }
        }
        for (std::uint64_t r = 0; r < value_rows; ++r) {
            const std::byte* const from = read(h * rows + key_rows + r);
            std::byte* const to = values.data() + (h * value_rows + r) * stride;
            if (rewritten) {
                for (std::uint64_t c = 0; c < cols; ++c) halve(row[c], to + c * sizeof(std::uint16_t));
            } else {
                std::memcpy(to, from, stride);
            }
        }
    }
    const Weight key = parted({turned, count * cols, key_rows, keys}, count);
    const Weight value = parted({kept, count * value_rows, cols, values}, count);
    source_.done(name);
    return {key, value};
}

Weight Loader::matrix(const std::string& name, std::uint64_t rows, std::uint64_t cols, bool whole, Split split) {
    HostTensor t = tensor(name, rows, cols, split);
    if (whole) t.whole = Whole::kSequences;
    Weight w = prepared(t);
    if (!w.mapped) source_.done(name);
    w.input_bounds = bounds(name + "_input");
    w.output_bounds = bounds(name + "_output");
    if (split == Split::kColumns && w.output_bounds) {
        throw UnsupportedError("tensor '" + name +
                               "' has bounds of its results, which no part of a sum has; the model "
                               "runs on one GPU");
    }
    return w;
}

Bounds Loader::bounds(const std::string& name) {
    Bounds found;
    if (has(name + "_min")) found.low = values(name + "_min", 1).front();
    if (has(name + "_max")) found.high = values(name + "_max", 1).front();
    if (!(found.low <= found.high)) {
        throw ModelFileError("the bounds of '" + name + "' are " + std::to_string(found.low) + " and " +
                             std::to_string(found.high) + ", expected the lower one first");
    }
    return found;
}

Weight Loader::matmul(const std::string& name, std::uint64_t rows, std::uint64_t cols, bool whole, Split split) {
    Weight w = matrix(name, rows, cols, whole, split);
    if (split != Split::kNone) return w;  // adapters change whole matrices
    linears_.push_back({name, static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(cols)});
    w.linear = static_cast<std::uint32_t>(linears_.size());
    return w;
}

Weight Loader::stacked(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    std::vector<float> values(rows * cols);
    for (std::uint64_t i = 0; i < rows; ++i) {
        const HostTensor t = tensor(name + "." + std::to_string(i), 1, cols);
        dequantize_row(t.dtype, t.bytes.data(), values.data() + i * cols, cols);
    }
    return prepared({DType::F32, rows, cols, std::as_bytes(std::span(values))});
}

Weight Loader::part_of_rows(const std::string& name, std::uint64_t rows, std::uint64_t cols, std::uint64_t first,
                            std::uint64_t n) {
    HostTensor t = tensor(name, rows, cols);
    const auto part = [&](std::span<const std::byte> plane) {
        return plane.subspan(plane.size() / rows * first, plane.size() / rows * n);
    };
    t.rows = n;
    if (t.factors.size() > 1) t.factors = t.factors.subspan(first / n, 1);
    t.bytes = part(t.bytes);
    t.scales = part(t.scales);
    t.biases = part(t.biases);
    const Weight w = prepared(t);
    if (!w.mapped) source_.done(name);
    return w;
}

Weight Loader::columns(const std::string& name, std::uint64_t rows, std::uint64_t cols, std::uint64_t first,
                       std::uint64_t n) {
    const HostTensor t = tensor(name, rows, cols);
    const DTypeInfo& type = dtype_info(t.dtype);
    if (!t.scales.empty()) {
        throw UnsupportedError("tensor '" + name + "' has type '" + std::string(type.name) +
                               "', expected floats or blocks: its columns are of two matrices");
    }
    const std::size_t bytes = row_bytes(t.dtype, cols);
    HostTensor part{t.dtype, rows, n, {}};
    part.factors = t.factors;
    std::vector<std::byte> packed;
    std::vector<float> values;
    if (first % type.block_elems == 0 && n % type.block_elems == 0) {
        const std::size_t skip = row_bytes(t.dtype, first), kept = row_bytes(t.dtype, n);
        packed.resize(rows * kept);
        for (std::uint64_t r = 0; r < rows; ++r) {
            std::memcpy(packed.data() + r * kept, t.bytes.data() + r * bytes + skip, kept);
        }
        part.bytes = packed;
    } else {  // a block has elements of both
        std::vector<float> row(cols);
        for (std::uint64_t r = 0; r < rows; ++r) {
            dequantize_row(t.dtype, t.bytes.data() + r * bytes, row.data(), cols);
            values.insert(values.end(), row.begin() + static_cast<std::ptrdiff_t>(first),
                          row.begin() + static_cast<std::ptrdiff_t>(first + n));
        }
        part.dtype = DType::F32;
        part.bytes = std::as_bytes(std::span(values));
    }
    return prepared(part);
}

Weight Loader::convolution(const std::string& name, std::uint64_t out, std::uint64_t in, std::uint64_t taps,
                           bool taps_last) {
    HostTensor t = tensor(name, out, in * taps);
    const DTypeInfo& type = dtype_info(t.dtype);
    const bool floats = type.block_elems == 1 && !type.planar();
    if (!taps_last) {
        if (!floats) {
            throw UnsupportedError("tensor '" + name + "' has type '" + std::string(type.name) +
                                   "', expected floats: a convolution's weights are not quantised");
        }
        return matrix(name, out, in * taps, false);
    }
    std::vector<float> values;  // of what is quantised, whose blocks lie across the taps
    if (!floats) {
        values.resize(out * in * taps);
        HostRows rows(t);
        for (std::uint64_t o = 0; o < out; ++o) rows.values(o, values.data() + o * in * taps);
        t.dtype = DType::F32;
        t.bytes = std::as_bytes(std::span(values));
    }
    std::vector<std::byte> moved(t.bytes.size());
    const std::size_t size = dtype_info(t.dtype).block_bytes;
    for (std::uint64_t o = 0; o < out; ++o) {
        for (std::uint64_t i = 0; i < in; ++i) {
            for (std::uint64_t tap = 0; tap < taps; ++tap) {
                std::memcpy(moved.data() + ((o * taps + tap) * in + i) * size,
                            t.bytes.data() + ((o * in + i) * taps + tap) * size, size);
            }
        }
    }
    Weight w = prepared({t.dtype, out, in * taps, moved});
    source_.done(name);
    return w;
}

Vector Loader::depthwise(const std::string& name, std::uint64_t channels, std::uint64_t taps, const std::string& bias) {
    const HostTensor t = tensor(name, channels, taps);
    const DTypeInfo& type = dtype_info(t.dtype);
    if (type.block_elems != 1) {
        throw UnsupportedError("tensor '" + name + "' has type '" + std::string(type.name) +
                               "', expected floats: a convolution's weights are not quantised");
    }
    std::vector<float> row(taps), moved(channels * taps);
    for (std::uint64_t c = 0; c < channels; ++c) {
        dequantize_row(t.dtype, t.bytes.data() + c * taps * type.block_bytes, row.data(), taps);
        for (std::uint64_t tap = 0; tap < taps; ++tap) moved[tap * channels + c] = row[tap];
    }
    source_.done(name);
    loaded(t.bytes.size());
    if (!bias.empty() && has(bias)) {
        const std::vector<float> added = values(bias, channels);
        moved.insert(moved.end(), added.begin(), added.end());
    }
    return computed(moved);
}

Weight Loader::lookup(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    const HostTensor t = tensor(name, rows, cols);
    return kept(take_weight(device_, t, [&](const HostTensor& weight) { return device_.map_weight(weight); }), t);
}

Vector Loader::vector(const std::string& name, std::uint64_t n) { return joined({{name, n}}); }

Norm Loader::norm(const std::string& name, std::uint64_t n, float scale) {
    if (scale == 1) return {vector(name, n), optional_vector(name + "_bias", n)};
    const auto scaled = [&](const std::string& part) {
        std::vector<float> all = values(part, n);
        for (float& value : all) value *= scale;
        return computed(all);
    };
    return {scaled(name), has(name + "_bias") ? scaled(name + "_bias") : Vector{}};
}

Vector Loader::joined(std::initializer_list<JoinedVector> parts) {
    const auto present = std::ranges::count_if(parts, [&](const JoinedVector& p) { return has(p.name); });
    if (present == 0 && parts.size() > 1) return {};
    for (const JoinedVector& p : parts) {
        if (!has(p.name) && !p.may_lack) {
            const std::string beside = parts.size() > 1 ? ", though others that belong to it are there" : "";
            throw ModelFileError("tensor '" + p.name + "' is missing" + beside);
        }
    }
    std::vector<std::vector<float>> of_cards(device_.traits().cards);
    for (const JoinedVector& p : parts) {
        const std::uint64_t n = p.split ? p.n * of_cards.size() : p.n;
        const std::vector<float> all = has(p.name) ? values(p.name, n) : std::vector<float>(n);
        for (std::size_t card = 0; card < of_cards.size(); ++card) {
            const auto begin = all.begin() + static_cast<std::ptrdiff_t>(p.split ? card * p.n : 0);
            of_cards[card].insert(of_cards[card].end(), begin, begin + static_cast<std::ptrdiff_t>(p.n));
        }
    }
    return uploaded(of_cards);
}

Vector Loader::added_once(const std::string& name, std::uint64_t n, bool split) {
    if (!has(name)) return {};
    std::vector<std::vector<float>> of_cards(device_.traits().cards, values(name, n));
    for (std::size_t card = 1; split && card < of_cards.size(); ++card) std::ranges::fill(of_cards[card], 0.0f);
    return uploaded(of_cards);
}

std::vector<float> Loader::values(const std::string& name, std::uint64_t n) {
    if (!has(name)) throw ModelFileError("tensor '" + name + "' is missing");
    const HostTensor t = source_.get(name);
    if (t.rows * t.cols != n) {
        throw ModelFileError("tensor '" + name + "' has " + std::to_string(t.rows * t.cols) + " elements, expected " +
                             std::to_string(n));
    }
    std::vector<float> values(n);
    dequantize_row(t.dtype, t.bytes.data(), values.data(), n);
    source_.done(name);
    loaded(t.bytes.size());
    return values;
}

std::vector<std::uint32_t> Loader::order(const std::string& name, std::uint64_t n) {
    const HostTensor t = source_.get(name);
    const std::size_t size = dtype_info(t.dtype).block_bytes;
    std::vector<std::uint32_t> order(n);
    if (!device_.traits().reads_weights) {
        std::iota(order.begin(), order.end(), 0u);
        return order;
    }
    std::vector<bool> there(n);
    for (std::uint64_t i = 0; i < n; ++i) {
        std::uint64_t value = 0;
        std::memcpy(&value, t.bytes.data() + i * size, size);
        if (value >= n || there[value]) {
            throw ModelFileError("tensor '" + name + "' has " + std::to_string(value) + " at " + std::to_string(i) +
                                 ", expected each number below " + std::to_string(n) + " once");
        }
        there[value] = true;
        order[i] = static_cast<std::uint32_t>(value);
    }
    source_.done(name);
    loaded(t.bytes.size());
    return order;
}

Weight Loader::computed(std::span<const float> values, std::uint64_t rows, std::uint64_t cols) {
    return prepared({DType::F32, rows, cols, std::as_bytes(values)});
}

Vector Loader::uploaded(std::span<const std::vector<float>> of_cards) {
    const Vector v = uploaded(std::as_bytes(std::span(of_cards.front())));
    for (std::uint32_t card = 1; card < of_cards.size(); ++card) {
        device_.upload_part(v, card, std::as_bytes(std::span(of_cards[card])));
    }
    return v;
}

Vector Loader::uploaded(std::span<const std::byte> bytes) {
    owned_.emplace_back(device_, std::max<std::uint64_t>(bytes.size(), 64), MemoryKind::kDevice);
    owned_bytes_ += bytes.size();
    const Vector v = owned_.back().at();
    device_.upload(v, bytes);
    return v;
}

}  // namespace akunu
