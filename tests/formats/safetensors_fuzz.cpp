// Fuzz driver of the SafeTensors reader, for sanitizer builds: see fuzz.h.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "core/error.h"
#include "formats/safetensors.h"
#include "fuzz.h"

namespace {

using fuzz::Bytes;

// Several types, an empty tensor, a scalar, escapes and metadata.
Bytes sample_file() {
    constexpr std::string_view header =
        R"({"__metadata__":{"format":"pt","\u00e9":"\ud83d\ude00"},"a.weight":{"dtype":"F32","shape":[2,3],)"
        R"("data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"none":{"dtype":"I64",)"
        R"("shape":[0,5],"data_offsets":[32,32]},"scalar":{"dtype":"F64","shape":[],"data_offsets":[32,40]},)"
        R"("u\tf\"8":{"dtype":"U8","shape":[1,1,1,3],"data_offsets":[40,43]}}   )";
    Bytes out(8);
    const std::uint64_t length = header.size();
    std::memcpy(out.data(), &length, sizeof length);
    out.insert(out.end(), header.begin(), header.end());
    for (int i = 0; i < 43; ++i) out.push_back(static_cast<char>(i * 37 >> 3));
    return out;
}

bool accepted(const std::string& path) {
    static volatile std::uint64_t sink = 0;
    try {
        const auto file = akunu::SafetensorsFiles::open({path});
        for (const akunu::TensorEntry& tensor : file.tensors()) {
            if (file.find_tensor(tensor.name) != &tensor) std::abort();
            for (const std::byte b : file.tensor_bytes(tensor).span) sink = sink + static_cast<std::uint64_t>(b);
            file.files()[tensor.file]->drop(tensor.offset, tensor.bytes);
        }
        return true;
    } catch (const akunu::Error&) {
        return false;
    }
}

}  // namespace

int main(int argc, char** argv) { return fuzz::main(argc, argv, "safetensors_fuzz", sample_file(), accepted); }
