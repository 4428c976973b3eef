// What the fuzz drivers share: spoiled variants of a file, the same for the same arguments.
//
//   DRIVER [--mutations N] [--seed S] [FILE...]
//
// Uses everything of each FILE, or of a small built-in one when none is given, then N spoiled
// variants of it. A file may be accepted or refused with an akunu::Error; anything else ends the
// program with a status other than 0 (as a sanitizer does), and leaves the offending variant in the
// file that is named.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

using Bytes = std::vector<char>;

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

inline Bytes read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error(path + ": cannot be read");
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& path, const Bytes& bytes) {
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

inline Options parse_options(std::span<char*> arguments) {
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

// Uses each file, or `sample` when there is none, and spoiled variants of it. `accepted(path)` uses everything of a
// file; false when it was refused with an akunu::Error.
inline void run(const Options& options, const std::string& name, const Bytes& sample,
                bool (*accepted)(const std::string&)) {
    const std::string scratch =
        (std::filesystem::temp_directory_path() / (name + "-" + std::to_string(std::random_device{}()))).string();
    std::printf("the current variant is in %s\n", scratch.c_str());
    std::fflush(stdout);
    std::vector<Bytes> bases;
    for (const std::string& path : options.files) {
        std::printf("%s: %s\n", path.c_str(), accepted(path) ? "accepted" : "refused");
        bases.push_back(read_file(path));
    }
    if (options.files.empty()) {
        bases.push_back(sample);
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

inline int main(int argc, char** argv, const std::string& name, const Bytes& sample,
                bool (*accepted)(const std::string&)) {
    try {
        run(parse_options({argv, static_cast<std::size_t>(argc)}), name, sample, accepted);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
        return 1;
    }
}

}  // namespace fuzz
