// Fuzz driver of the matrices that are repacked, for sanitizer builds: see fuzz.h.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "formats/repacked.h"
#include "formats/safetensors.h"
#include "fuzz.h"

namespace {

using akunu::DType;
using akunu::PackedMatrix;
using fuzz::Bytes;
using Layout = PackedMatrix::Layout;
using Numbers = std::array<std::uint64_t, 5>;  // bits, rows, columns, group, zero

// One of each layout. The numbers of all of them, which configurations say, lie in the file too, to be spoiled with it.
struct Kind {
    Layout layout;
    Numbers numbers;
    bool zeros = false, index = false, nested = false, symmetric = false;
};
constexpr std::array<Kind, 10> kKinds{{
    {Layout::Gptq, {4, 8, 64, 32, 1}, true},
    {Layout::Gptq, {4, 8, 64, 32, 0}, true, false, false, true},
    {Layout::Gptq, {3, 32, 64, 32, 1}, true, true},
    {Layout::Gptq, {8, 8, 64, 16, 1}, true, true},
    {Layout::Awq, {4, 8, 64, 64, 0}, true},
    {Layout::Rows, {4, 9, 64, 32, 0}, true},
    {Layout::Rows, {8, 9, 64, 32, 128}, false, true},
    {Layout::Bytes, {8, 3, 64, 64, 128}},
    {Layout::Table, {4, 3, 64, 64, 0}},
    {Layout::Table, {4, 3, 64, 16, 0}, false, false, true},
}};

struct Writer {
    std::string header;
    Bytes data;

    void add(const std::string& name, std::string_view type, std::size_t bytes, std::size_t each, char fill) {
        const std::size_t begin = data.size();
        data.resize(begin + bytes, fill);
        header += (header.empty() ? "{\"" : ",\"") + name + R"(":{"dtype":")" + std::string(type) + R"(","shape":[)" +
                  std::to_string(bytes / each) + R"(],"data_offsets":[)" + std::to_string(begin) + "," +
                  std::to_string(data.size()) + "]}";
    }
};

void add_parts(Writer& out, const std::string& name, const Kind& kind) {
    const auto [bits, rows, cols, group, zero] = kind.numbers;
    const std::uint64_t groups = (cols + group - 1) / group;
    if (kind.layout == Layout::Table) {
        out.add(name + "c", "U8", rows * cols / 2, 1, '\x5A');
        out.add(name + "t", "F32", 64, 4, '\x3C');
        out.add(name + "s", kind.nested ? "U8" : "F32", rows * groups * (kind.nested ? 1 : 4), kind.nested ? 1 : 4, 7);
        if (!kind.nested) return;
        out.add(name + "u", "F32", 1024, 4, '\x3C');
        out.add(name + "f", "F32", 4, 4, '\x3C');
        return;
    }
    const bool bytes = kind.layout == Layout::Bytes;
    out.add(name + "c", bytes ? "I8" : "I32", rows * cols * bits / 8, bytes ? 1 : 4, '\x5A');
    out.add(name + "s", "F16", rows * groups * 2, 2, '\x3C');
    if (kind.zeros) out.add(name + "z", "I32", (rows * bits + 31) / 32 * groups * 4, 4, '\x77');
    if (kind.index) out.add(name + "i", "I32", cols * 4, 4, 0);
}

Bytes sample_file() {
    Writer out;
    out.add("n", "I64", sizeof(Numbers) * kKinds.size(), 8, 0);
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
        std::memcpy(out.data.data() + i * sizeof(Numbers), kKinds[i].numbers.data(), sizeof(Numbers));
        add_parts(out, std::to_string(i), kKinds[i]);
    }
    out.header += "}";
    Bytes file(8);
    const std::uint64_t length = out.header.size();
    std::memcpy(file.data(), &length, sizeof length);
    file.insert(file.end(), out.header.begin(), out.header.end());
    file.insert(file.end(), out.data.begin(), out.data.end());
    return file;
}

PackedMatrix matrix_of(const Kind& kind, const Numbers& numbers, const std::string& name) {
    const auto [bits, rows, cols, group, zero] = numbers;
    PackedMatrix m{.name = name + ".",
                   .layout = kind.layout,
                   .bits = static_cast<unsigned>(bits),
                   .rows = rows,
                   .cols = cols,
                   .group = group,
                   .codes = name + "c",
                   .scales = name + "s",
                   .zeros = kind.zeros ? name + "z" : "",
                   .zero = static_cast<unsigned>(zero),
                   .symmetric = kind.symmetric,
                   .index = kind.index ? name + "i" : ""};
    if (kind.layout == Layout::Table) m.table = name + "t";
    if (kind.nested) {
        m.scale_table = name + "u";
        m.scale_factors = name + "f";
    }
    return m;
}

// Whether one of the matrices can be repacked. No tensor may have much more than the file has.
bool used(const akunu::SafetensorsFiles& files, const PackedMatrix& matrix) {
    static volatile std::uint64_t sink = 0;
    try {
        const akunu::RepackedFiles made(files, {matrix}, {});
        for (const akunu::TensorEntry& tensor : made.tensors()) {
            const akunu::TensorBytes bytes = made.tensor_bytes(tensor);
            if (bytes.span.size() != tensor.bytes) std::abort();
            if (tensor.bytes > 64 * files.files()[0]->bytes().size()) std::abort();
            for (const std::byte b : bytes.span) sink = sink + static_cast<std::uint64_t>(b);
        }
        return true;
    } catch (const akunu::Error&) {
        return false;
    }
}

bool accepted(const std::string& path) {
    try {
        const auto files = akunu::SafetensorsFiles::open({path});
        const akunu::TensorEntry* said = files.find_tensor("n");
        std::array<Numbers, kKinds.size()> numbers{};
        if (said) {
            const auto bytes = files.tensor_bytes(*said).span;
            std::memcpy(numbers.data(), bytes.data(), std::min(bytes.size(), sizeof numbers));
        }
        std::size_t n = 0;
        for (std::size_t i = 0; i < kKinds.size(); ++i) {
            n += used(files, matrix_of(kKinds[i], numbers[i], std::to_string(i))) ? 1 : 0;
        }
        return n == kKinds.size();
    } catch (const akunu::Error&) {
        return false;
    }
}

}  // namespace

int main(int argc, char** argv) { return fuzz::main(argc, argv, "packed_fuzz", sample_file(), accepted); }
