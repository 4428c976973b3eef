#include "engine/file_source.h"

#include <cstring>
#include <span>
#include <utility>

#include "core/dequantize.h"
#include "core/error.h"
#include "formats/quote.h"

namespace akunu {

namespace {

[[noreturn]] void fail_shape(const TensorRef& ref) {
    const std::uint64_t end = ref.first_row + ref.rows;
    throw ModelFileError("tensor " + quoted(ref.source) + " does not hold " + (ref.cols ? "rows " : "elements ") +
                         std::to_string(ref.first_row) + ".." + std::to_string(end) +
                         (ref.cols ? " of " + std::to_string(ref.cols) + " columns" : ""));
}

// Whether the bit patterns of any element, without its sign, reach those of infinity and NaN.
template <typename Bits>
bool reaches(std::span<const std::byte> bytes, Bits infinity) {
    const auto magnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
    Bits largest = 0;
    for (std::size_t i = 0; i + sizeof(Bits) <= bytes.size(); i += sizeof(Bits)) {
        Bits bits;
        std::memcpy(&bits, bytes.data() + i, sizeof bits);
        bits = static_cast<Bits>(bits & magnitude);
        largest = bits > largest ? bits : largest;
    }
    return largest >= infinity;
}

bool is_finite(DType dtype, std::span<const std::byte> bytes) {
    switch (dtype) {
        case DType::F32:
            return !reaches<std::uint32_t>(bytes, 0x7F800000u);
        case DType::F16:
            return !reaches<std::uint16_t>(bytes, 0x7C00u);
        case DType::BF16:
            return !reaches<std::uint16_t>(bytes, 0x7F80u);
        default:
            return true;
    }
}

}  // namespace

FileSource::FileSource(std::shared_ptr<const TensorFiles> files, const std::map<std::string, TensorRef>& refs,
                       bool check)
    : files_(std::move(files)), check_(check) {
    for (const auto& [name, ref] : refs) {
        const TensorEntry* entry = files_->find_tensor(ref.source);
        if (!entry) throw ModelFileError("tensor " + quoted(ref.source) + " is missing");
        if (!dtype_info(entry->dtype).is_weight) {
            throw UnsupportedError("tensor " + quoted(ref.source) + " has type '" +
                                   std::string(dtype_info(entry->dtype).name) + "', which cannot be a weight");
        }
        // A vector's rows are its elements.
        const bool vector = ref.cols == 0;
        if (entry->shape.empty() || (vector && entry->shape.size() != 1)) fail_shape(ref);
        std::uint64_t height = 1;
        for (std::size_t i = 0; i + (vector ? 0 : 1) < entry->shape.size(); ++i) height *= entry->shape[i];
        if (!vector && entry->shape.back() != ref.cols) fail_shape(ref);
        if (ref.first_row > height || ref.rows > height - ref.first_row) fail_shape(ref);
        if (vector) {
            parts_[name] = {
                entry, 1, ref.rows, row_bytes(entry->dtype, ref.first_row), row_bytes(entry->dtype, ref.rows), ref.add};
        } else {
            const std::uint64_t stride = row_bytes(entry->dtype, ref.cols);
            parts_[name] = {entry, ref.rows, ref.cols, ref.first_row * stride, ref.rows * stride, ref.add};
        }
    }
}

const FileSource::Part& FileSource::part(const std::string& name) const {
    const auto it = parts_.find(name);
    if (it == parts_.end()) throw ModelFileError("tensor " + quoted(name) + " is missing");
    return it->second;
}

HostTensor FileSource::get(const std::string& name) {
    const Part& p = part(name);
    const MappedFile& file = *files_->files()[p.entry->file];
    const auto bytes = files_->tensor_bytes(*p.entry).subspan(p.offset, p.bytes);
    if (check_ && !is_finite(p.entry->dtype, bytes)) {
        throw ModelFileError(file.path() + ": tensor " + quoted(p.entry->name) +
                             " holds NaN or an infinity; the file is damaged, fetch it again");
    }
    // A GPU reads floats by fours where they lie; what is aligned to one element only can still be copied there.
    const DTypeInfo& info = dtype_info(p.entry->dtype);
    const std::uint64_t at = p.entry->offset + p.offset;
    const bool blocks = info.block_elems > 1;
    if (p.add == 0 && (blocks || at % (4 * info.block_bytes) == 0)) {
        return {p.entry->dtype, p.rows, p.cols, bytes, file.bytes()};
    }
    if (p.add == 0 && at % info.block_bytes == 0) return {p.entry->dtype, p.rows, p.cols, bytes};
    const std::uint64_t n = p.rows * p.cols;
    auto& copy = copies_[name];
    if (p.add == 0) {
        copy.resize((bytes.size() + sizeof(float) - 1) / sizeof(float));
        std::memcpy(copy.data(), bytes.data(), bytes.size());
        return {p.entry->dtype, p.rows, p.cols, std::as_bytes(std::span(copy)).first(bytes.size())};
    }
    copy.resize(n);
    dequantize_row(p.entry->dtype, bytes.data(), copy.data(), n);
    for (float& value : copy) value += p.add;
    return {DType::F32, p.rows, p.cols, std::as_bytes(std::span(copy))};
}

void FileSource::done(const std::string& name) {
    const Part& p = part(name);
    copies_.erase(name);
    files_->files()[p.entry->file]->drop(p.entry->offset + p.offset, p.bytes);
}

std::uint64_t FileSource::total_bytes() const {
    std::uint64_t n = 0;
    for (const auto& [name, p] : parts_) n += p.bytes;
    return n;
}

}  // namespace akunu
