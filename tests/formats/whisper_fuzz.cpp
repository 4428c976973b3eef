// Fuzz driver of the reader of whisper.cpp's files, for sanitizer builds: see fuzz.h.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "formats/whisper_file.h"
#include "fuzz.h"

namespace {

using fuzz::Bytes;

void put(Bytes& out, std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

void put(Bytes& out, std::string_view text) { out.insert(out.end(), text.begin(), text.end()); }

void put_tensor(Bytes& out, std::string_view name, std::uint32_t type, std::uint32_t inner, std::size_t bytes) {
    put(out, 2);
    put(out, static_cast<std::uint32_t>(name.size()));
    put(out, type);
    put(out, inner);
    put(out, 2);
    put(out, name);
    out.resize(out.size() + bytes, 7);
}

// Two filters of three bins, three tokens, and tensors of three types.
Bytes sample_file() {
    Bytes out;
    put(out, "lmgg");
    for (std::uint32_t size : {51865, 1500, 384, 6, 4, 448, 384, 6, 4, 80, 1, 2, 3}) put(out, size);
    out.resize(out.size() + 24);
    put(out, 3);
    for (std::string_view token : {"a", "", "\xE2\x96\x81"}) {
        put(out, static_cast<std::uint32_t>(token.size()));
        put(out, token);
    }
    put_tensor(out, "f32", 0, 3, 24);
    put_tensor(out, "f16", 1, 3, 12);
    put_tensor(out, "q4_0", 2, 32, 36);
    return out;
}

bool accepted(const std::string& path) {
    static volatile std::uint64_t sink = 0;
    try {
        const auto file = akunu::WhisperFile::open(path);
        for (std::string_view token : file.tokens()) {
            for (const char c : token) sink = sink + static_cast<std::uint64_t>(c);
        }
        for (const akunu::TensorEntry& tensor : file.tensors()) {
            if (file.find_tensor(tensor.name) != &tensor) std::abort();
            for (const std::byte b : file.tensor_bytes(tensor).span) sink = sink + static_cast<std::uint64_t>(b);
        }
        return true;
    } catch (const akunu::Error&) {
        return false;
    }
}

}  // namespace

int main(int argc, char** argv) { return fuzz::main(argc, argv, "whisper_fuzz", sample_file(), accepted); }
