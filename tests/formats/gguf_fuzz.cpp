// Fuzz driver of the GGUF reader and the reference dequantisers, for sanitizer builds: see fuzz.h.
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/dequantize.h"
#include "core/error.h"
#include "formats/gguf.h"
#include "fuzz.h"

namespace {

using fuzz::Bytes;

// ---- a small valid file --------------------------------------------------------------------

template <typename T>
void put(Bytes& out, T value) {
    const auto* raw = reinterpret_cast<const char*>(&value);
    out.insert(out.end(), raw, raw + sizeof value);
}

void put_string(Bytes& out, std::string_view text) {
    put<std::uint64_t>(out, text.size());
    out.insert(out.end(), text.begin(), text.end());
}

void put_key(Bytes& out, std::string_view key, akunu::GgufType type) {
    put_string(out, key);
    put(out, static_cast<std::uint32_t>(type));
}

// One tensor of each type, an array of strings and a nested array among the metadata.
Bytes sample_file() {
    using akunu::GgufType;
    std::vector<akunu::DTypeInfo> types;
    for (const akunu::DTypeInfo& info : akunu::kDTypes) {
        if (static_cast<std::uint32_t>(info.id) < akunu::kFirstInternalDType) types.push_back(info);
    }
    Bytes out{'G', 'G', 'U', 'F'};
    put<std::uint32_t>(out, 3);
    put<std::uint64_t>(out, types.size());
    put<std::uint64_t>(out, 5);
    put_key(out, "general.architecture", GgufType::String);
    put_string(out, "llama");
    put_key(out, "general.alignment", GgufType::U32);
    put<std::uint32_t>(out, 32);
    put_key(out, "flag", GgufType::Bool);
    put<std::uint8_t>(out, 1);
    put_key(out, "tokens", GgufType::Array);
    put(out, static_cast<std::uint32_t>(GgufType::String));
    put<std::uint64_t>(out, 3);
    for (const char* token : {"a", "", "\xE2\x96\x81"}) put_string(out, token);
    put_key(out, "nested", GgufType::Array);
    put(out, static_cast<std::uint32_t>(GgufType::Array));
    put<std::uint64_t>(out, 1);
    put(out, static_cast<std::uint32_t>(GgufType::F32));
    put<std::uint64_t>(out, 2);
    put(out, 1.0f);
    put(out, 2.0f);

    std::uint64_t offset = 0;
    for (const akunu::DTypeInfo& info : types) {
        put_string(out, info.name);
        put<std::uint32_t>(out, 2);
        put<std::uint64_t>(out, 2ull * info.block_elems);
        put<std::uint64_t>(out, 3);
        put(out, static_cast<std::uint32_t>(info.id));
        put(out, offset);
        offset = (offset + 6ull * info.block_bytes + 31) / 32 * 32;
    }
    out.resize((out.size() + 31) / 32 * 32);
    const std::size_t data = out.size();
    out.resize(data + offset);
    for (std::size_t i = data; i < out.size(); ++i) out[i] = static_cast<char>(i * 37 >> 3);
    return out;
}

// ---- use -----------------------------------------------------------------------------------

// Walks a value as a consumer does; returns something that depends on every byte of it.
std::uint64_t use_value(const akunu::GgufValue& value) {
    std::uint64_t sum = 0;
    for (const std::byte b : value.payload) sum = sum * 31 + static_cast<std::uint64_t>(b);
    if (value.type != akunu::GgufType::Array) return sum;
    akunu::ByteReader reader(value.payload, "array");
    for (std::uint64_t i = 0; i < value.count; ++i) {
        const akunu::GgufValue item = akunu::read_gguf_value(reader, value.item_type, 1);
        sum += item.type == akunu::GgufType::Array ? use_value(item) : item.payload.size();
    }
    return sum;
}

std::uint64_t use_file(const std::string& path) {
    const akunu::GgufFile file = akunu::GgufFile::open(path);
    std::uint64_t sum = 0;
    for (const akunu::MetadataEntry& entry : file.metadata()) {
        if (file.find(entry.name) == nullptr) std::abort();
        sum += use_value(entry.value);
    }
    std::vector<float> row;
    for (const akunu::TensorEntry& tensor : file.tensors()) {
        if (file.find_tensor(tensor.name) != &tensor) std::abort();
        const auto bytes = file.tensor_bytes(tensor).span;
        sum += static_cast<std::uint64_t>(bytes.front()) + static_cast<std::uint64_t>(bytes.back());
        if (akunu::dtype_info(tensor.dtype).is_weight) {
            row.resize(tensor.shape.back());  // fits: the file holds it
            akunu::dequantize_row(tensor.dtype, bytes.data(), row.data(), row.size());
        }
        file.files()[tensor.file]->drop(tensor.offset, tensor.bytes);
    }
    return sum;
}

// True when the file was accepted.
bool accepted(const std::string& path) {
    static volatile std::uint64_t sink = 0;
    try {
        sink = sink + use_file(path);
        return true;
    } catch (const akunu::Error&) {
        return false;
    }
}

}  // namespace

int main(int argc, char** argv) { return fuzz::main(argc, argv, "gguf_fuzz", sample_file(), accepted); }
