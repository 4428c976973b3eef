// Fuzz driver of the GGUF reader and the reference dequantisers, for sanitizer builds.
//
//   gguf_fuzz [--mutations N] [--seed S] [FILE...]
//
// Uses everything of each FILE, or of a small built-in one when none is given, then N spoiled
// variants of it. Same arguments, same variants. A file may be accepted or refused with an
// akunu::Error; anything else ends the program with a status other than 0 (as a sanitizer does),
// and leaves the offending variant in the file that is named.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/dequantize.h"
#include "core/error.h"
#include "formats/gguf.h"

namespace {

using Bytes = std::vector<char>;

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
    Bytes out{'G', 'G', 'U', 'F'};
    put<std::uint32_t>(out, 3);
    put<std::uint64_t>(out, akunu::kDTypes.size());
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
    for (const akunu::DTypeInfo& info : akunu::kDTypes) {
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
        const auto bytes = file.tensor_bytes(tensor);
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

// ---- mutations -----------------------------------------------------------------------------

class Mutator {
  public:
    explicit Mutator(std::uint64_t seed) : random_(seed) {}

    Bytes spoil(Bytes data) {
        // Headers are where the lies are: most edits go to the first 4 KiB.
        const std::uint64_t edits = 1 + random_() % 5;
        for (std::uint64_t i = 0; i < edits && !data.empty(); ++i) {
            const std::size_t reach = random_() % 8 == 0 ? data.size() : std::min<std::size_t>(data.size(), 4096);
            edit(data, random_() % reach);
        }
        if (random_() % 16 == 0) data.resize(random_() % (data.size() + 1));
        return data;
    }

  private:
    void edit(Bytes& data, std::size_t at) {
        const std::size_t room = data.size() - at;
        switch (random_() % 5) {
            case 0:
                data[at] = static_cast<char>(random_());
                break;
            case 1:
                data[at] = static_cast<char>(data[at] ^ 1 << random_() % 8);
                break;
            case 2:
                overwrite(data, at, kLies[random_() % std::size(kLies)]);
                break;
            case 3: {
                const std::size_t count = std::min<std::size_t>(room, 1 + random_() % 24);
                const auto first = data.begin() + static_cast<std::ptrdiff_t>(at);
                data.erase(first, first + static_cast<std::ptrdiff_t>(count));
                break;
            }
            default: {
                const std::size_t count = std::min<std::size_t>(room, 1 + random_() % 24);
                const auto first = data.begin() + static_cast<std::ptrdiff_t>(at);
                const Bytes copy(first, first + static_cast<std::ptrdiff_t>(count));
                data.insert(first, copy.begin(), copy.end());
            }
        }
    }

    // A little-endian field of 4 or 8 bytes.
    void overwrite(Bytes& data, std::size_t at, std::uint64_t value) {
        const std::size_t width = random_() % 2 == 0 ? 4 : 8;
        std::memcpy(data.data() + at, &value, std::min(width, data.size() - at));
    }

    static constexpr std::uint64_t kLies[] = {0,          1,          9,          0x7FFFFFFF, 1u << 31, ~0u,
                                              1ull << 32, 1ull << 40, 1ull << 61, 1ull << 63, ~0ull,    ~0ull - 31};
    std::mt19937_64 random_;
};

Bytes read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error(path + ": cannot be read");
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, const Bytes& bytes) {
    // In place: ext4 flushes a file to disk when it was truncated to nothing first.
    if (!std::filesystem::exists(path)) std::ofstream(path, std::ios::binary).flush();
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) throw std::runtime_error(path + ": cannot be written");
    std::filesystem::resize_file(path, bytes.size());
}

struct Options {
    std::uint64_t mutations = 0;
    std::uint64_t seed = 1;
    std::vector<std::string> files;
};

Options parse_options(std::span<char*> arguments) {
    Options options;
    for (std::size_t i = 1; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        const bool number = argument == "--mutations" || argument == "--seed";
        if (!number) {
            options.files.emplace_back(argument);
        } else if (i + 1 == arguments.size()) {
            throw std::runtime_error(std::string(argument) + " needs a number");
        } else {
            (argument == "--seed" ? options.seed : options.mutations) = std::stoull(arguments[++i]);
        }
    }
    return options;
}

void run(const Options& options) {
    const std::string scratch =
        (std::filesystem::temp_directory_path() / ("gguf_fuzz-" + std::to_string(std::random_device{}()) + ".gguf"))
            .string();
    std::printf("the current variant is in %s\n", scratch.c_str());
    std::fflush(stdout);
    std::vector<Bytes> bases;
    for (const std::string& path : options.files) {
        std::printf("%s: %s\n", path.c_str(), accepted(path) ? "accepted" : "refused");
        bases.push_back(read_file(path));
    }
    if (options.files.empty()) {
        bases.push_back(sample_file());
        write_file(scratch, bases.back());
        if (!accepted(scratch)) throw std::runtime_error("the built-in file was refused");
    }
    std::uint64_t accepted_count = 0;
    for (const Bytes& base : bases) {
        Mutator mutator(options.seed);
        for (std::uint64_t i = 0; i < options.mutations; ++i) {
            write_file(scratch, mutator.spoil(base));
            accepted_count += accepted(scratch) ? 1 : 0;
        }
    }
    std::printf("%llu variants, %llu accepted\n", static_cast<unsigned long long>(options.mutations * bases.size()),
                static_cast<unsigned long long>(accepted_count));
    std::filesystem::remove(scratch);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(parse_options({argv, static_cast<std::size_t>(argc)}));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "gguf_fuzz: %s\n", error.what());
        return 1;
    }
}
