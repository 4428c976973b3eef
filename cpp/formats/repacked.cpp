#include "formats/repacked.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "core/dequantize.h"
#include "core/error.h"
#include "core/half.h"
#include "formats/quote.h"

namespace akunu {

namespace {

using ByteVector = std::vector<std::byte>;
using Layout = PackedMatrix::Layout;

constexpr std::array<std::uint64_t, 8> kAwqOrder{0, 2, 4, 6, 1, 3, 5, 7};

// A tensor, and the file that keeps it.
struct StoredTensor {
    std::shared_ptr<const MappedFile> file;
    TensorEntry entry;
    std::span<const std::byte> bytes() const {
        file->check_size();
        return file->bytes().subspan(entry.offset, entry.bytes);
    }
    std::uint64_t elements() const {
        std::uint64_t n = 1;
        for (const std::uint64_t d : entry.shape) n *= d;
        return n;
    }
};

std::uint32_t word_at(std::span<const std::byte> words, std::uint64_t i) {
    std::uint32_t word;
    std::memcpy(&word, words.data() + 4 * i, sizeof word);
    return word;
}

// Element i of a stream whose words are `stride` words apart, from word `first` on, least significant bits first.
std::uint32_t stream_at(std::span<const std::byte> words, std::uint64_t first, std::uint64_t stride, unsigned bits,
                        std::uint64_t i) {
    const std::uint64_t bit = i * bits, at = bit / 32, shift = bit % 32;
    std::uint64_t window = word_at(words, first + at * stride);
    if (shift + bits > 32) window |= std::uint64_t{word_at(words, first + (at + 1) * stride)} << 32;
    return static_cast<std::uint32_t>(window >> shift) & ((1u << bits) - 1);
}

// A matrix whose parts have been found, and fit.
class Packed {
  public:
    Packed(const TensorFiles& from, PackedMatrix matrix) : m_(std::move(matrix)), codes_(part(from, m_.codes)) {
        const bool turned = m_.layout == Layout::Gptq || m_.layout == Layout::Awq;
        scales_ = part(from, m_.scales);
        if (m_.rows == 0 || m_.cols == 0 || m_.group == 0 || (m_.rows | m_.cols | m_.group) >> 31 != 0) {
            fail(codes_, "sizes from 1 to 2147483647");
        }
        const unsigned bits = m_.layout == Layout::Bytes                               ? 8
                              : m_.layout == Layout::Awq || m_.layout == Layout::Table ? 4
                                                                                       : m_.bits;
        if (m_.bits != bits) fail(codes_, "codes of " + std::to_string(bits) + " bits");
        if (m_.layout == Layout::Table) {
            take_table(from);
            return;
        }
        const std::uint64_t rows = m_.rows, cols = m_.cols;
        if (m_.bits == 0 || m_.bits > 8 || cols % 32 != 0 || (turned && rows * m_.bits % 32 != 0)) {
            throw UnsupportedError(called(codes_) + " holds " + std::to_string(rows) + " x " + std::to_string(cols) +
                                   " codes of " + std::to_string(m_.bits) +
                                   " bits; only multiples of 32 columns are supported");
        }
        const std::uint64_t groups = this->groups(), words = rows * (cols / 32) * m_.bits;
        const DType type = m_.layout == Layout::Bytes ? DType::I8 : DType::I32;
        expect(codes_, type, m_.layout == Layout::Bytes ? rows * cols : words);
        if (dtype_info(scales_.entry.dtype).block_elems != 1 || !dtype_info(scales_.entry.dtype).is_weight) {
            fail(scales_, "floats");
        }
        expect(scales_, scales_.entry.dtype, rows * groups);
        if (!m_.zeros.empty()) {
            zeros_ = part(from, m_.zeros);
            // A stream down a column ends with a whole word.
            expect(*zeros_, DType::I32, turned ? groups * (rows * m_.bits / 32) : (rows * m_.bits + 31) / 32 * groups);
        }
        if (!m_.index.empty()) {
            index_ = part(from, m_.index);
            expect(*index_, DType::I32, cols);
        }
    }

    // Elements that have one scale in the new tensors; 0: it becomes floats.
    std::uint64_t group() const {
        if (index_ || m_.layout == Layout::Table) return 0;
        for (const std::uint64_t group : {128, 64, 32}) {
            if (m_.group % group == 0 && m_.cols % group == 0) return group;
        }
        return 0;
    }
    // The type of scales and biases.
    DType scale_type() const {
        if (zeros_ && !m_.symmetric) return DType::F32;
        const auto zeros = this->zeros();
        const bool exact =
            m_.unit == 1 && std::ranges::all_of(zeros, [](std::uint32_t zero) { return std::has_single_bit(zero); });
        return exact ? scales_.entry.dtype : DType::F32;
    }
    const PackedMatrix& matrix() const { return m_; }
    const StoredTensor& stored() const { return codes_; }

    // U32 [rows, cols * bits / 32], a stream along a row.
    ByteVector codes() const {
        const auto from = codes_.bytes();
        ByteVector out(m_.rows * m_.cols * m_.bits / 8);
        if (m_.layout == Layout::Bytes) {
            std::ranges::transform(from, out.begin(), [](std::byte b) { return b ^ std::byte{0x80}; });
            return out;
        }
        if (m_.layout == Layout::Rows) {
            std::ranges::copy(from, out.begin());
            return out;
        }
        const std::uint64_t words = m_.cols * m_.bits / 32, rows = m_.rows;
        if (m_.layout == Layout::Gptq) {
            constexpr std::uint64_t kTile = 16;  // rows and words at a time, so that both sides stay in the cache
            for (std::uint64_t r0 = 0; r0 < rows; r0 += kTile) {
                for (std::uint64_t w = 0; w < words; ++w) {
                    for (std::uint64_t r = r0; r < std::min(r0 + kTile, rows); ++r) {
                        std::memcpy(out.data() + 4 * (r * words + w), from.data() + 4 * (w * rows + r), 4);
                    }
                }
            }
            return out;
        }
        for (std::uint64_t r0 = 0; r0 < rows; r0 += 8) {
            for (std::uint64_t w = 0; w < words; ++w) {
                std::array<std::uint32_t, 8> to{};
                for (unsigned i = 0; i < 8; ++i) {
                    const std::uint32_t word = word_at(from, ((8 * w + i) * rows + r0) / 8);
                    for (unsigned j = 0; j < 8; ++j) to[kAwqOrder[j]] |= (word >> 4 * j & 15) << 4 * i;
                }
                for (std::uint64_t r = 0; r < 8; ++r) {
                    std::memcpy(out.data() + 4 * ((r0 + r) * words + w), &to[r], 4);
                }
            }
        }
        return out;
    }

    // Of each row and new group, as `scale_type`.
    ByteVector scales(bool times_zero) const {
        std::vector<float> all = stored_scales();
        if (times_zero) {
            const auto zeros = this->zeros();
            for (std::size_t i = 0; i < all.size(); ++i) all[i] *= -static_cast<float>(zeros[i % zeros.size()]);
        }
        const std::uint64_t groups = this->groups(), n = m_.cols / group(), each = m_.group / group();
        std::vector<float> spread(m_.rows * n);
        for (std::uint64_t r = 0; r < m_.rows; ++r) {
            for (std::uint64_t g = 0; g < n; ++g) spread[r * n + g] = all[r * groups + g / each];
        }
        const DType type = scale_type();
        ByteVector out(spread.size() * dtype_info(type).block_bytes);
        put(type, spread, out.data());
        return out;
    }

    ByteVector floats() const {
        const std::uint64_t size = dtype_info(m_.floats).block_bytes;
        ByteVector out(m_.rows * m_.cols * size);
        const auto make = m_.layout == Layout::Table ? values_of_table() : values_of_groups();
        std::vector<float> row(m_.cols);
        for (std::uint64_t r = 0; r < m_.rows; ++r) {
            make(r, row);
            put(m_.floats, row, out.data() + r * m_.cols * size);
        }
        return out;
    }

  private:
    static std::string called(const StoredTensor& part) {
        return part.file->path() + ": tensor " + quoted(part.entry.name);
    }
    [[noreturn]] void fail(const StoredTensor& part, const std::string& expected) const {
        throw ModelFileError(called(part) + " does not fit to the matrix " + quoted(m_.name + "weight") + " of " +
                             std::to_string(m_.rows) + " x " + std::to_string(m_.cols) + " weights of " +
                             std::to_string(m_.bits) + " bits in groups of " + std::to_string(m_.group) +
                             "; expected " + expected);
    }
    void expect(const StoredTensor& part, DType type, std::uint64_t elements) const {
        if (part.entry.dtype == type && part.elements() == elements) return;
        fail(part, std::to_string(elements) + " elements of type '" + std::string(dtype_info(type).name) + "'");
    }
    static StoredTensor part(const TensorFiles& from, const std::string& name) {
        const TensorEntry* found = from.find_tensor(name);
        if (!found) throw ModelFileError("tensor " + quoted(name) + " is missing");
        if (found->made) throw UnsupportedError("tensor " + quoted(name) + " has been repacked");
        return {from.files()[found->file], *found};
    }
    std::uint64_t groups() const { return (m_.cols + m_.group - 1) / m_.group; }

    static void put(DType type, std::span<const float> values, std::byte* out) {
        if (type == DType::F32) {
            std::memcpy(out, values.data(), values.size_bytes());
            return;
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::uint16_t half = type == DType::F16 ? float_to_half(values[i]) : float_to_bf16(values[i]);
            std::memcpy(out + 2 * i, &half, 2);
        }
    }
    static std::vector<float> floats_of(const StoredTensor& part) {
        std::vector<float> out(part.elements());
        dequantize_row(part.entry.dtype, part.bytes().data(), out.data(), out.size());
        return out;
    }
    // [rows, groups]
    std::vector<float> stored_scales() const {
        std::vector<float> found = floats_of(scales_);
        for (float& scale : found) scale *= m_.unit;
        if (m_.layout != Layout::Gptq && m_.layout != Layout::Awq) return found;
        const std::uint64_t groups = this->groups();
        std::vector<float> out(found.size());
        for (std::uint64_t g = 0; g < groups; ++g) {
            for (std::uint64_t r = 0; r < m_.rows; ++r) out[r * groups + g] = found[g * m_.rows + r];
        }
        return out;
    }
    // [rows, groups], or one for all.
    std::vector<std::uint32_t> zeros() const {
        if (!zeros_) return {m_.zero};
        const auto from = zeros_->bytes();
        const std::uint64_t groups = this->groups(), words = m_.rows * m_.bits / 32;
        std::vector<std::uint32_t> out(m_.rows * groups);
        for (std::uint64_t r = 0; r < m_.rows; ++r) {
            for (std::uint64_t g = 0; g < groups; ++g) {
                std::uint32_t& zero = out[r * groups + g];
                if (m_.layout == Layout::Rows) {
                    zero = stream_at(from, g, groups, m_.bits, r);
                } else if (m_.layout == Layout::Gptq) {
                    zero = gptq_zero(from.subspan(4 * g * words, 4 * words), r);
                } else {
                    const auto place = std::ranges::find(kAwqOrder, r % 8) - kAwqOrder.begin();
                    zero = word_at(from, g * words + r / 8) >> 4 * place & 15;
                }
            }
        }
        return out;
    }

    // In the first form of files `zero` was taken away from all zeros of a word in one subtraction, with its borrows.
    std::uint32_t gptq_zero(std::span<const std::byte> words, std::uint64_t row) const {
        const std::uint32_t mask = (1u << m_.bits) - 1;
        if (32 % m_.bits != 0) return (stream_at(words, 0, 1, m_.bits, row) + m_.zero) & mask;
        const std::uint32_t ones = ~std::uint32_t{0} / mask * m_.zero;
        const std::uint64_t bit = row * m_.bits;
        return (word_at(words, bit / 32) + ones) >> bit % 32 & mask;
    }

    void take_table(const TensorFiles& from) {
        const std::uint64_t n = m_.rows * m_.cols, blocks = (n + m_.group - 1) / m_.group;
        expect(codes_, DType::U8, (n + 1) / 2);
        table_ = part(from, m_.table);
        expect(*table_, DType::F32, 16);
        expect(scales_, m_.scale_table.empty() ? DType::F32 : DType::U8, blocks);
        if (m_.scale_table.empty()) return;
        scale_table_ = part(from, m_.scale_table);
        expect(*scale_table_, DType::F32, 256);
        scale_factors_ = part(from, m_.scale_factors);
        expect(*scale_factors_, DType::F32, (blocks + 255) / 256);
    }

    // Makes a row of values.
    using MakeRow = std::function<void(std::uint64_t row, std::span<float> out)>;

    MakeRow values_of_groups() const {
        std::vector<std::uint32_t> group(m_.cols);
        for (std::uint64_t c = 0; c < m_.cols; ++c) {
            group[c] = index_ ? word_at(index_->bytes(), c) : static_cast<std::uint32_t>(c / m_.group);
            if (group[c] >= groups()) fail(*index_, "groups below " + std::to_string(groups()));
        }
        return [this, group = std::move(group), codes = codes(), scales = stored_scales(), zeros = zeros()](
                   std::uint64_t r, std::span<float> out) {
            const std::uint64_t groups = this->groups(), words = m_.cols * m_.bits / 32;
            for (std::uint64_t c = 0; c < m_.cols; ++c) {
                const std::uint64_t at = r * groups + group[c];
                const auto code = static_cast<float>(stream_at(codes, r * words, 1, m_.bits, c));
                out[c] = scales[at] * (code - static_cast<float>(zeros[at % zeros.size()]));
            }
        };
    }

    MakeRow values_of_table() const {
        std::vector<float> scales;
        if (scale_table_) {
            const auto steps = floats_of(*scale_table_), factors = floats_of(*scale_factors_);
            const auto places = scales_.bytes();
            for (std::size_t i = 0; i < places.size(); ++i) {
                const float product = steps[std::to_integer<std::size_t>(places[i])] * factors[i / 256];
                scales.push_back(product + m_.scale_offset);
            }
        } else {
            scales = floats_of(scales_);
        }
        return [this, scales = std::move(scales), table = floats_of(*table_), codes = codes_.bytes()](
                   std::uint64_t r, std::span<float> out) {
            for (std::uint64_t c = 0; c < m_.cols; ++c) {
                const std::uint64_t i = r * m_.cols + c;
                const auto pair = std::to_integer<unsigned>(codes[i / 2]);
                out[c] = table[i % 2 == 0 ? pair >> 4 : pair & 15] * scales[i / m_.group];
            }
        };
    }

    PackedMatrix m_;
    StoredTensor codes_, scales_;
    std::optional<StoredTensor> zeros_, index_, table_, scale_table_, scale_factors_;
};

class RepackedTensor final : public MadeTensor {
  public:
    enum class Plane : std::uint8_t { Codes, Scales, Biases, Floats };
    RepackedTensor(std::shared_ptr<const Packed> matrix, Plane plane) : matrix_(std::move(matrix)), plane_(plane) {}
    std::shared_ptr<const ByteVector> bytes() override {
        const std::lock_guard lock(mutex_);
        auto held = held_.lock();
        if (!held) held_ = held = std::make_shared<const ByteVector>(make());
        return held;
    }

  private:
    ByteVector make() const {
        switch (plane_) {
            case Plane::Codes:
                return matrix_->codes();
            case Plane::Floats:
                return matrix_->floats();
            default:
                return matrix_->scales(plane_ == Plane::Biases);
        }
    }
    std::shared_ptr<const Packed> matrix_;
    Plane plane_;
    std::mutex mutex_;
    std::weak_ptr<const ByteVector> held_;
};

// The new tensors of a matrix.
std::vector<TensorEntry> made_of(const std::shared_ptr<const Packed>& packed) {
    using enum RepackedTensor::Plane;
    const PackedMatrix& m = packed->matrix();
    std::vector<TensorEntry> out;
    const auto add = [&](std::string_view part, DType type, std::uint64_t cols, RepackedTensor::Plane plane) {
        TensorEntry& entry = out.emplace_back();
        entry.name = m.name + std::string(part);
        entry.dtype = type;
        entry.shape = {m.rows, cols};
        entry.bytes = m.rows * cols * dtype_info(type).block_bytes;
        entry.made = std::make_shared<RepackedTensor>(packed, plane);
    };
    const std::uint64_t group = packed->group();
    if (group == 0) {
        add("weight", m.floats, m.cols, Floats);
        return out;
    }
    add("weight", DType::U32, m.cols * m.bits / 32, Codes);
    if (m.layout == Layout::Rows) {  // which lie in the file as they are
        TensorEntry& codes = out.back();
        codes.made = nullptr;
        codes.offset = packed->stored().entry.offset;
    }
    const DType scale = packed->scale_type();
    add("scales", scale, m.cols / group, Scales);
    add("biases", scale, m.cols / group, Biases);
    return out;
}

}  // namespace

RepackedFiles::RepackedFiles(const TensorFiles& from, const std::vector<PackedMatrix>& matrices,
                             const std::vector<std::string>& left_out) {
    std::set<std::string_view> hidden(left_out.begin(), left_out.end());
    std::vector<std::vector<TensorEntry>> tensors(from.files().size());
    for (const PackedMatrix& m : matrices) {
        for (const std::string* name :
             {&m.codes, &m.scales, &m.zeros, &m.index, &m.table, &m.scale_table, &m.scale_factors}) {
            hidden.insert(*name);
        }
        const auto packed = std::make_shared<const Packed>(from, m);
        for (TensorEntry& entry : made_of(packed)) {
            tensors[packed->stored().entry.file].push_back(std::move(entry));
        }
    }
    for (const TensorEntry& tensor : from.tensors()) {
        if (!hidden.contains(tensor.name)) tensors[tensor.file].push_back(tensor);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) add_file(from.files()[i], std::move(tensors[i]));
    index_tensors(from.files()[0]->path());
}

}  // namespace akunu
