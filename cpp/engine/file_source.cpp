#include "engine/file_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
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

// How many rows a tensor has. A vector's are its elements; whisper.cpp's have a second axis of one, and those of
// experts are elements of a matrix. A matrix' rows are the last axes that have so many elements together: one of them,
// or those of a convolution, whose first may count rows and channels together, as Ollama's do; axes before them, such
// as that of experts, count its rows.
std::uint64_t height_of(const TensorRef& ref, const TensorEntry& tensor) {
    std::size_t axes = tensor.shape.size();
    std::uint64_t cols = 1, height = 1;
    while (ref.cols != 0 && axes > 0 && cols < ref.cols) {
        const std::uint64_t axis = tensor.shape[--axes], left = ref.cols / cols;
        const bool both = axes + 2 < tensor.shape.size() && axis > left && axis % left == 0;
        cols *= both ? left : axis;
        if (both) height = axis / left;
    }
    if (ref.cols != 0 && cols != ref.cols) fail_shape(ref);
    for (std::size_t i = 0; i < axes; ++i) height *= tensor.shape[i];
    // A matrix is no vector, but all of it may be those of experts.
    while (axes > 1 && tensor.shape[axes - 1] == 1) --axes;
    if (ref.cols == 0 && axes > 1 && !ref.group && ref.rows != height) fail_shape(ref);
    return height;
}

// The height of a tensor whose last axis counts rows, [..., cols, rows].
std::uint64_t turned_height(const TensorRef& ref, const TensorEntry& tensor) {
    const std::size_t axes = tensor.shape.size();
    if (axes < 2 || tensor.shape[axes - 2] != ref.cols || dtype_info(tensor.dtype).block_elems != 1 ||
        !ref.more.empty()) {
        fail_shape(ref);
    }
    std::uint64_t height = tensor.shape[axes - 1];
    for (std::size_t i = 0; i + 2 < axes; ++i) height *= tensor.shape[i];
    return height;
}

// Blocks of MXFP4 whose bytes are pairs of neighbours, in place: low nibbles come to be the first half of a block.
void split_pairs(std::span<std::byte> blocks) {
    const std::size_t block = dtype_info(DType::MXFP4).block_bytes;
    for (std::size_t at = 0; at + block <= blocks.size(); at += block) {
        std::array<std::byte, 16> split;
        for (std::size_t i = 0; i < 8; ++i) {
            const std::byte a = blocks[at + 1 + i], b = blocks[at + 9 + i];
            split[2 * i] = (a & std::byte{15}) | b << 4;
            split[2 * i + 1] = a >> 4 | (b & std::byte{0xF0});
        }
        std::ranges::copy(split, blocks.begin() + static_cast<std::ptrdiff_t>(at + 1));
    }
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

// Where the F16 scales of a block are, in bytes from its beginning, one behind the other.
struct BlockScales {
    DType dtype;
    std::size_t at, count;
};

constexpr std::array<BlockScales, 22> kBlockScales{{
    {DType::Q4_0, 0, 1},   {DType::Q4_1, 0, 2},    {DType::Q5_0, 0, 1},  {DType::Q5_1, 0, 2},    {DType::Q8_0, 0, 1},
    {DType::Q2_K, 80, 2},  {DType::Q3_K, 108, 1},  {DType::Q4_K, 0, 2},  {DType::Q5_K, 0, 2},    {DType::Q6_K, 208, 1},
    {DType::IQ4_NL, 0, 1}, {DType::IQ4_XS, 0, 1},  {DType::IQ1_S, 0, 1}, {DType::IQ2_XXS, 0, 1}, {DType::IQ2_XS, 0, 1},
    {DType::IQ2_S, 0, 1},  {DType::IQ3_XXS, 0, 1}, {DType::IQ3_S, 0, 1}, {DType::TQ1_0, 52, 1},  {DType::TQ2_0, 64, 1},
    {DType::Q1_0, 0, 1},   {DType::Q2_0, 0, 1},
}};

bool has_finite_scales(const BlockScales& scales, std::span<const std::byte> bytes) {
    const std::size_t block = dtype_info(scales.dtype).block_bytes;
    unsigned largest = 0;
    for (std::size_t i = scales.at; i + 2 * scales.count <= bytes.size(); i += block) {
        for (std::size_t k = 0; k < scales.count; ++k) {
            std::uint16_t bits;
            std::memcpy(&bits, bytes.data() + i + 2 * k, sizeof bits);
            largest = std::max(largest, bits & 0x7FFFu);
        }
    }
    return largest < 0x7C00u;
}

// Whether a weight has no NaN and no infinity: its floats, or the scales of its blocks.
bool is_finite(DType dtype, std::span<const std::byte> bytes) {
    for (const BlockScales& scales : kBlockScales) {
        if (scales.dtype == dtype) return has_finite_scales(scales, bytes);
    }
    switch (dtype) {
        case DType::MXFP4:
            for (std::size_t i = 0; i < bytes.size(); i += dtype_info(dtype).block_bytes) {
                if (bytes[i] == std::byte{0xFF}) return false;
            }
            return true;
        case DType::IQ1_M:  // the exponent's five bits are the last of four that scales have in front of them
            for (std::size_t i = 0; i < bytes.size(); i += dtype_info(dtype).block_bytes) {
                if ((bytes[i + 55] & std::byte{0x70}) == std::byte{0x70} &&
                    (bytes[i + 53] & std::byte{0xC0}) == std::byte{0xC0}) {
                    return false;
                }
            }
            return true;
        case DType::F32:
            return !reaches<std::uint32_t>(bytes, 0x7F800000u);
        case DType::F16:
            return !reaches<std::uint16_t>(bytes, 0x7C00u);
        case DType::BF16:
            return !reaches<std::uint16_t>(bytes, 0x7F80u);
        case DType::F8E4M3:
            return !reaches<std::uint8_t>(bytes, 0x7Fu);
        case DType::F8E8M0:
            return std::ranges::find(bytes, std::byte{0xFF}) == bytes.end();
        default:
            return true;
    }
}

}  // namespace

FileSource::FileSource(std::shared_ptr<const TensorFiles> files, const std::map<std::string, TensorRef>& refs,
                       bool check)
    : files_(std::move(files)), check_(check) {
    for (const auto& [name, ref] : refs) {
        if (!ref.dtype.empty()) {
            weights_[name] = planar_weight(ref);
            weights_[name].factors = factors_of(ref);
            continue;
        }
        const TensorEntry& tensor = entry(ref.source);
        const bool vector = ref.cols == 0, order = tensor.dtype == DType::I64 || tensor.dtype == DType::I32;
        if (!dtype_info(tensor.dtype).is_weight && !(vector && order)) {
            throw UnsupportedError(called(tensor) + " has type '" + std::string(dtype_info(tensor.dtype).name) +
                                   "', which cannot be a weight; save it as F32, F16 or BF16");
        }
        const std::uint64_t stride = row_bytes(tensor.dtype, vector ? 1 : ref.cols);
        FileWeight weight{tensor.dtype, vector ? 1 : ref.rows, vector ? ref.rows : ref.cols, ref.add, {}};
        if (ref.turned) {
            weight.planes[0] = plane_of(ref, tensor, stride, turned_height(ref, tensor));
            weight.planes[0].turned = tensor.shape.back();
            weights_[name] = weight;
            continue;
        }
        weight.planes[0] = plane_of(ref, tensor, stride, height_of(ref, tensor));
        for (const std::string& more : ref.more) {
            const TensorEntry& other = entry(more);
            if (other.dtype != tensor.dtype) {
                throw UnsupportedError(called(other) + " has type '" + std::string(dtype_info(other.dtype).name) +
                                       "', and " + quoted(ref.source) + ", which it follows, '" +
                                       std::string(dtype_info(tensor.dtype).name) +
                                       "'; only equal types are supported");
            }
            if (height_of(ref, other) != height_of(ref, tensor)) fail_shape(ref);
            weight.planes[0].more.push_back(&other);
        }
        weight.factors = factors_of(ref);
        weights_[name] = weight;
    }
}

std::vector<float> FileSource::factors_of(const TensorRef& ref) const {
    if (ref.factor.empty()) return {};
    std::vector<std::string> names{ref.factor};
    for (const auto& [scales, biases, factor] : ref.more_planes) names.push_back(factor);
    std::vector<float> factors;
    for (const std::string& name : names) {
        const TensorEntry& tensor = entry(name);
        std::uint64_t n = 1;
        for (const std::uint64_t d : tensor.shape) n *= d;
        if (tensor.dtype != DType::F32 || n == 0 || ref.rows % n != 0 || (names.size() > 1 && n != 1)) {
            throw ModelFileError(called(tensor) + " has " + std::to_string(n) + " numbers of type '" +
                                 std::string(dtype_info(tensor.dtype).name) +
                                 "', expected one of F32, or one of each expert");
        }
        const auto first = static_cast<std::ptrdiff_t>(factors.size());
        factors.resize(factors.size() + n);
        std::memcpy(factors.data() + first, files_->tensor_bytes(tensor).span.data(), n * sizeof(float));
        for (float& f : std::span(factors).subspan(static_cast<std::size_t>(first))) {
            if (ref.inverse) f = 1 / f;
            if (!(std::fabs(f) <= std::numeric_limits<float>::max())) {
                throw ModelFileError(called(tensor) +
                                     " makes NaN or an infinity of the weights; the file is damaged, fetch it again");
            }
        }
    }
    return factors;
}

FileSource::Plane FileSource::plane_of(const TensorRef& ref, const TensorEntry& tensor, std::uint64_t stride,
                                       std::uint64_t height) const {
    const std::uint64_t tensors = 1 + ref.more.size();
    if (ref.rows % tensors != 0) fail_shape(ref);
    const std::uint64_t rows = ref.rows / tensors;
    if (!ref.group) {
        if (ref.first_row > height || rows > height - ref.first_row) fail_shape(ref);
        Plane plane{&tensor, ref.first_row * stride, rows * stride};
        if (ref.swapped != 0) {
            if (ref.swapped % 4 != 0 || rows % ref.swapped != 0) fail_shape(ref);
            plane.swapped = ref.swapped * stride;
        }
        return plane;
    }
    const auto [n, period] = *ref.group;
    if (n == 0 || n > period || rows % n != 0 || rows == 0) fail_shape(ref);
    const std::uint64_t groups = rows / n;
    if (ref.first_row > height || groups - 1 > (height - ref.first_row) / period ||
        n > height - ref.first_row - (groups - 1) * period) {
        fail_shape(ref);
    }
    return {&tensor, ref.first_row * stride, rows * stride, n * stride, period * stride};
}

const TensorEntry& FileSource::entry(const std::string& name) const {
    const TensorEntry* found = files_->find_tensor(name);
    if (!found) throw ModelFileError("tensor " + quoted(name) + " is missing");
    return *found;
}

std::string FileSource::called(const TensorEntry& tensor) const {
    return files_->files()[tensor.file]->path() + ": tensor " + quoted(tensor.name);
}

FileSource::FileWeight FileSource::planar_weight(const TensorRef& ref) const {
    const DTypeInfo* info = find_dtype(ref.dtype);
    if (!info || !info->planar()) throw UnsupportedError("'" + ref.dtype + "' is no type whose weights have scales");
    FileWeight weight{info->id, ref.rows, ref.cols, ref.add, {}};
    const std::uint64_t blocks = row_bytes(info->id, ref.cols) / info->block_bytes;
    // MLX keeps codes in U32, and scales that are floats of a byte in U8; gpt-oss keeps both in U8, and the codes of a
    // row's blocks apart.
    const auto plane = [&](const std::string& name, DType value, DType word, std::uint64_t block) {
        const TensorEntry& tensor = entry(name);
        const std::uint64_t stride = blocks * block;
        // The last axes are those of a row. Axes before them count rows: that of experts stands first.
        std::size_t axes = tensor.shape.size();
        std::uint64_t width = 1, height = 1;
        while (axes > 0 && row_bytes(tensor.dtype, width) < stride) width *= tensor.shape[--axes];
        for (std::size_t i = 0; i < axes; ++i) height *= tensor.shape[i];
        const bool fits = axes >= 1 && (tensor.dtype == value || tensor.dtype == word || tensor.dtype == DType::U8) &&
                          row_bytes(tensor.dtype, width) == stride;
        if (!fits) {
            throw ModelFileError(called(tensor) + " has type '" + std::string(dtype_info(tensor.dtype).name) +
                                 "' or a shape that is not that of " + ref.dtype + " weights: rows of " +
                                 std::to_string(stride) + " bytes of '" + std::string(dtype_info(value).name) + "'");
        }
        return plane_of(ref, tensor, stride, height);
    };
    if (ref.more_planes.size() != ref.more.size()) throw ModelFileError("some experts have no scales: " + ref.source);
    // The same plane of the tensors that follow; `which` of `more_planes`.
    const auto with_more = [&](Plane first, std::optional<std::size_t> which, const auto& place) {
        for (std::size_t i = 0; i < ref.more.size(); ++i) {
            const std::string& name = which ? ref.more_planes[i][*which] : ref.more[i];
            const Plane next = place(name);
            if (next.entry->dtype != first.entry->dtype || next.bytes != first.bytes) {
                throw ModelFileError(called(*next.entry) + " differs in type or shape from " +
                                     quoted(first.entry->name) + ", which it follows");
            }
            first.more.push_back(next.entry);
        }
        return first;
    };
    const auto codes = [&](const std::string& name) {
        return plane(name, info->code_type, DType::U32, info->planes.codes);
    };
    weight.planes[0] = with_more(codes(ref.source), {}, codes);
    if (ref.scale_tile) {
        weight.tiles = scale_tiles(ref, *info, weight.planes[1]);
        weight.planes[1] = with_more(
            weight.planes[1], 0, [&](const std::string& name) { return Plane{&entry(name), 0, entry(name).bytes}; });
        return weight;
    }
    const DType scale = info->scale_type;
    const DType word = dtype_info(scale).block_bytes == 1 ? DType::U8 : scale;
    const auto scales = [&](const std::string& name) { return plane(name, scale, word, info->planes.scales); };
    const auto biases = [&](const std::string& name) { return plane(name, scale, word, info->planes.biases); };
    weight.planes[1] = with_more(scales(ref.scales), 0, scales);
    if (info->planes.biases != 0) weight.planes[2] = with_more(biases(ref.biases), 1, biases);
    return weight;
}

FileSource::ScaleTiles FileSource::scale_tiles(const TensorRef& ref, const DTypeInfo& info, Plane& plane) const {
    const TensorEntry& tensor = entry(ref.scales);
    const std::uint64_t height = entry(ref.source).shape[0];
    const auto [rows, cols] = *ref.scale_tile;
    if ((rows | cols) >> 31 != 0) {
        throw ModelFileError("tensor " + quoted(ref.scales) + " has a scale for each " + std::to_string(rows) + "x" +
                             std::to_string(cols) + " elements; at most 2147483647 are supported on a side");
    }
    std::uint64_t n = 1;
    for (const std::uint64_t d : tensor.shape) n *= d;
    const ScaleTiles tiles{.rows = rows ? rows : height,
                           .cols = cols ? cols : ref.cols,
                           .first_row = ref.first_row,
                           .per_row = cols ? (ref.cols + cols - 1) / cols : 1,
                           .rows_each = ref.rows / (1 + ref.more.size()),
                           .scales_each = n};
    const DTypeInfo& type = dtype_info(tensor.dtype);
    const bool numbers = type.block_elems == 1 && (type.is_weight || tensor.dtype == DType::F8E8M0);
    if (n != (height + tiles.rows - 1) / tiles.rows * tiles.per_row || tiles.cols % info.block_elems != 0 || !numbers) {
        throw ModelFileError("tensor " + quoted(ref.scales) + " has " + std::to_string(n) + " scales of type '" +
                             std::string(type.name) + "', expected floats, one for each " + std::to_string(tiles.rows) +
                             "x" + std::to_string(tiles.cols) + " elements of " + quoted(ref.source));
    }
    plane = {&tensor, 0, tensor.bytes};
    return tiles;
}

std::span<const std::byte> FileSource::spread_scales(const std::string& name, const FileWeight& weight) {
    const ScaleTiles& tiles = *weight.tiles;
    const DType stored = weight.planes[1].entry->dtype;
    const auto bytes = read(name, weight.planes[1], stored);
    std::vector<float> all(bytes.size() / dtype_info(stored).block_bytes);
    dequantize_row(stored, bytes.data(), all.data(), all.size());
    const std::uint64_t group = dtype_info(weight.dtype).block_elems, groups = weight.cols / group;
    auto& out = copies_[name];
    out.resize(weight.rows * groups);
    for (std::uint64_t r = 0; r < weight.rows; ++r) {
        const std::uint64_t tensor = r / tiles.rows_each, own = tiles.first_row + r % tiles.rows_each;
        const float* row = all.data() + tensor * tiles.scales_each + own / tiles.rows * tiles.per_row;
        for (std::uint64_t g = 0; g < groups; ++g) out[r * groups + g] = row[g * group / tiles.cols];
    }
    return std::as_bytes(std::span(out));
}

const FileSource::FileWeight& FileSource::weight(const std::string& name) const {
    const auto it = weights_.find(name);
    if (it == weights_.end()) throw ModelFileError("tensor " + quoted(name) + " is missing");
    return it->second;
}

std::span<const std::byte> FileSource::checked(const TensorEntry& entry, std::span<const std::byte> bytes,
                                               DType dtype) const {
    if (check_ && !is_finite(dtype, bytes)) {
        throw ModelFileError(called(entry) + " holds NaN or an infinity; the file is damaged, fetch it again");
    }
    return bytes;
}

std::span<const std::byte> FileSource::read(const std::string& name, const Plane& plane, DType dtype) {
    if (!plane.entry) return {};
    if (plane.whole()) {
        const TensorBytes bytes = files_->tensor_bytes(*plane.entry);
        if (bytes.owner) held_[name].push_back(bytes.owner);
        return checked(*plane.entry, bytes.span.subspan(plane.offset, plane.bytes), dtype);
    }
    std::vector<std::byte>& out = gathered_[name].emplace_back();
    out.reserve(plane.total());
    std::vector<const TensorEntry*> entries{plane.entry};
    entries.insert(entries.end(), plane.more.begin(), plane.more.end());
    for (const TensorEntry* entry : entries) {
        const TensorBytes whole = files_->tensor_bytes(*entry);
        const std::span<const std::byte> bytes = whole.span;
        if (plane.turned) {
            const std::uint64_t width = weight(name).cols;
            turn(out, plane, checked(*entry, bytes, dtype), dtype_info(dtype).block_bytes, row_bytes(dtype, width));
            continue;
        }
        if (plane.swapped) {
            const auto rows = checked(*entry, bytes.subspan(plane.offset, plane.bytes), dtype);
            const std::uint64_t quarter = plane.swapped / 4;
            for (std::uint64_t at = 0; at < rows.size(); at += plane.swapped) {
                for (const std::uint64_t place : {0, 2, 1, 3}) {
                    const auto weight = rows.subspan(at + place * quarter, quarter);
                    out.insert(out.end(), weight.begin(), weight.end());
                }
            }
            continue;
        }
        const std::uint64_t run = plane.run ? plane.run : plane.bytes;
        for (std::uint64_t done = 0, at = plane.offset; done < plane.bytes; done += run, at += plane.period) {
            const auto rows = checked(*entry, bytes.subspan(at, run), dtype);
            out.insert(out.end(), rows.begin(), rows.end());
        }
    }
    if (plane.entry->paired) split_pairs(out);
    return out;
}

void FileSource::turn(std::vector<std::byte>& out, const Plane& plane, std::span<const std::byte> bytes,
                      std::size_t size, std::uint64_t row_bytes) {
    const std::uint64_t cols = row_bytes / size, run = plane.run ? plane.run / row_bytes : plane.bytes / row_bytes;
    const std::uint64_t period = plane.run ? plane.period / row_bytes : run;
    const std::uint64_t first = plane.offset / row_bytes, rows = plane.bytes / row_bytes;
    const std::size_t begin = out.size();
    out.resize(begin + plane.bytes);
    constexpr std::uint64_t kTile = 32;  // rows and columns at a time, so that both sides stay in the cache
    for (std::uint64_t r0 = 0; r0 < rows; r0 += kTile) {
        for (std::uint64_t c0 = 0; c0 < cols; c0 += kTile) {
            for (std::uint64_t r = r0; r < std::min(r0 + kTile, rows); ++r) {
                const std::uint64_t row = first + r / run * period + r % run;
                const std::uint64_t matrix = row / plane.turned, place = row % plane.turned;
                for (std::uint64_t c = c0; c < std::min(c0 + kTile, cols); ++c) {
                    const std::uint64_t from = ((matrix * cols + c) * plane.turned + place) * size;
                    std::memcpy(out.data() + begin + (r * cols + c) * size, bytes.data() + from, size);
                }
            }
        }
    }
}

HostTensor FileSource::get(const std::string& name) {
    const FileWeight& p = weight(name);
    for (const Plane& plane : p.planes) {
        if (plane.entry) ++used_[plane.entry->file];
    }
    const TensorEntry& tensor = *p.planes[0].entry;
    const DTypeInfo& info = dtype_info(p.dtype);
    const DType codes = info.planar() ? info.code_type : tensor.dtype;
    HostTensor t{.dtype = p.dtype, .rows = p.rows, .cols = p.cols, .bytes = read(name, p.planes[0], codes)};
    t.scales = p.tiles ? spread_scales(name, p) : read(name, p.planes[1], info.scale_type);
    t.biases = read(name, p.planes[2], info.scale_type);
    t.factors = p.factors;
    const MappedFile& file = *files_->files()[tensor.file];
    if (info.planar() || (p.add == 0 && (!p.planes[0].whole() || tensor.made))) return t;
    // A GPU reads floats by fours where they lie; what is aligned to one element only can still be copied there.
    const std::uint64_t at = tensor.offset + p.planes[0].offset;
    const bool blocks = info.block_elems > 1;
    if (p.add == 0 && (blocks || at % (4 * info.block_bytes) == 0)) {
        t.mapping = file.bytes();
        return t;
    }
    if (p.add == 0 && at % info.block_bytes == 0) return t;
    const std::uint64_t n = p.rows * p.cols;
    auto& copy = copies_[name];
    if (p.add == 0) {
        copy.resize((t.bytes.size() + sizeof(float) - 1) / sizeof(float));
        std::memcpy(copy.data(), t.bytes.data(), t.bytes.size());
        t.bytes = std::as_bytes(std::span(copy)).first(t.bytes.size());
        return t;
    }
    copy.resize(n);
    dequantize_row(p.dtype, t.bytes.data(), copy.data(), n);
    for (float& value : copy) value += p.add;
    return {.dtype = DType::F32, .rows = p.rows, .cols = p.cols, .bytes = std::as_bytes(std::span(copy))};
}

bool FileSource::in_place(const std::string& name) const {
    const FileWeight& p = weight(name);
    const DTypeInfo& info = dtype_info(p.dtype);
    const Plane& first = p.planes[0];
    const auto lies = [](const Plane& plane) { return plane.whole() && !(plane.entry && plane.entry->made); };
    return p.add == 0 && !p.tiles && std::ranges::all_of(p.planes, lies) &&
           (info.planar() || info.block_elems > 1 || (first.entry->offset + first.offset) % info.block_bytes == 0);
}

void FileSource::done(const std::string& name) {
    copies_.erase(name);
    gathered_.erase(name);
    held_.erase(name);
    for (const Plane& plane : weight(name).planes) {
        if (!plane.entry) continue;
        --used_[plane.entry->file];
        if (plane.run != 0 || plane.turned) continue;  // other parts may still need the rows between
        if (plane.entry->made) continue;
        files_->files()[plane.entry->file]->drop(plane.entry->offset + plane.offset, plane.bytes);
        for (const TensorEntry* more : plane.more) {
            files_->files()[more->file]->drop(more->offset + plane.offset, plane.bytes);
        }
    }
}

void FileSource::check_files() const {
    for (const auto& [file, planes] : used_) {
        if (planes > 0) files_->files()[file]->check_size();
    }
}

std::uint64_t FileSource::total_bytes() const {
    std::uint64_t n = 0;
    for (const auto& [name, p] : weights_) n += p.bytes();
    return n;
}

}  // namespace akunu
