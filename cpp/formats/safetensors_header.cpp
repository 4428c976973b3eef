#include "formats/safetensors_header.h"

#include <array>
#include <limits>
#include <utility>

#include "core/error.h"
#include "formats/json_reader.h"
#include "formats/quote.h"
#include "formats/safetensors.h"

namespace akunu {

namespace {

constexpr std::size_t kMaxText = 1u << 20;  // a value of __metadata__

constexpr std::array<std::pair<std::string_view, DType>, 16> kTypes{{
    {"F64", DType::F64},
    {"F32", DType::F32},
    {"F16", DType::F16},
    {"BF16", DType::BF16},
    {"F8_E4M3", DType::F8E4M3},
    {"F8_E5M2", DType::F8E5M2},
    {"F8_E8M0", DType::F8E8M0},
    {"I64", DType::I64},
    {"I32", DType::I32},
    {"I16", DType::I16},
    {"I8", DType::I8},
    {"U64", DType::U64},
    {"U32", DType::U32},
    {"U16", DType::U16},
    {"U8", DType::U8},
    {"BOOL", DType::Bool},
}};

DType find_type(const std::string& name, const std::string& tensor, const std::string& path) {
    for (const auto& [text, dtype] : kTypes) {
        if (text == name) return dtype;
    }
    throw UnsupportedError(path + ": tensor " + quoted(tensor) + " has type " + quoted(name) +
                           ", which is not supported; use a checkpoint of F32, F16 or BF16");
}

// Bytes of a tensor of this shape.
std::uint64_t tensor_size(const JsonReader& json, const TensorEntry& tensor) {
    std::uint64_t elems = 1;
    for (const std::uint64_t dim : tensor.shape) {
        // A later dimension of 0 does not excuse a product that overflows.
        if (dim != 0 && elems > std::numeric_limits<std::int64_t>::max() / dim) {
            json.fail("gives tensor " + quoted(tensor.name) + " more elements than 64 bits can count");
        }
        elems *= dim == 0 ? 1 : dim;
    }
    for (const std::uint64_t dim : tensor.shape) {
        if (dim == 0) return 0;
    }
    const std::uint32_t size = dtype_info(tensor.dtype).block_bytes;
    if (elems > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / size) {
        json.fail("gives tensor " + quoted(tensor.name) + " more bytes than 64 bits can count");
    }
    return elems * size;
}

TensorEntry read_tensor(JsonReader& json, std::string name, const std::string& path) {
    TensorEntry tensor;
    tensor.name = std::move(name);
    std::uint64_t end = 0;
    bool dtype = false, shape = false, offsets = false;
    const auto once = [&](bool& seen, std::string_view key) {
        if (std::exchange(seen, true)) {
            json.fail("gives tensor " + quoted(tensor.name) + " two of " + quoted(key));
        }
    };
    json.object(64, [&](const std::string& key) {
        if (key == "dtype") {
            once(dtype, key);
            tensor.dtype = find_type(json.string(64), tensor.name, path);
        } else if (key == "shape") {
            once(shape, key);
            json.array([&] {
                if (tensor.shape.size() == kMaxSafetensorsDims) {
                    json.fail("gives tensor " + quoted(tensor.name) + " more than " +
                              std::to_string(kMaxSafetensorsDims) + " dimensions");
                }
                tensor.shape.push_back(json.integer());
            });
        } else if (key == "data_offsets") {
            once(offsets, key);
            json.expect('[');
            tensor.offset = json.integer();
            json.expect(',');
            end = json.integer();
            json.expect(']');
        } else {
            json.fail("gives tensor " + quoted(tensor.name) + " the key " + quoted(key) +
                      "; dtype, shape and data_offsets are known");
        }
    });
    if (!dtype || !shape || !offsets) {
        json.fail("gives tensor " + quoted(tensor.name) + " no " +
                  (!dtype   ? "dtype"
                   : !shape ? "shape"
                            : "data_offsets"));
    }
    tensor.bytes = tensor_size(json, tensor);
    if (end < tensor.offset || end - tensor.offset != tensor.bytes) {
        json.fail("places tensor " + quoted(tensor.name) + " at bytes " + std::to_string(tensor.offset) + ".." +
                  std::to_string(end) + ", but its type and shape take " + std::to_string(tensor.bytes));
    }
    return tensor;
}

}  // namespace

std::vector<TensorEntry> parse_safetensors_header(std::string_view text, const std::string& path) {
    JsonReader json(text, path);
    std::vector<TensorEntry> tensors;
    bool metadata = false;
    json.object(kMaxSafetensorsNameLength, [&](std::string name) {
        if (name == "__metadata__") {
            if (std::exchange(metadata, true)) json.fail("has two of '__metadata__'");
            if (json.accept_null()) return;  // as MLX writes it where there is none
            json.object(kMaxText, [&](const std::string&) { json.string(kMaxText); });
            return;
        }
        if (name.empty()) json.fail("has a tensor without a name");
        if (tensors.size() == kMaxSafetensorsTensors) {
            json.fail("lists more than " + std::to_string(kMaxSafetensorsTensors) + " tensors");
        }
        tensors.push_back(read_tensor(json, std::move(name), path));
    });
    json.end();
    return tensors;
}

}  // namespace akunu
