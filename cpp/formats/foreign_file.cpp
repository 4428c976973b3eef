#include "formats/foreign_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "formats/quote.h"

namespace akunu {
namespace {

using std::string_view_literals::operator""sv;

struct Signature {
    std::string_view start;
    std::string_view what;
};

constexpr std::array kSignatures{
    Signature{"GGUF"sv, "this is a GGUF file; load it by its own name"},
    Signature{"version https://git-lfs"sv, "this is a git-lfs pointer, not the model itself; run `git lfs pull`"},
    Signature{"FUGG"sv, "this is a byte-swapped GGUF file; convert it to little-endian"},
    Signature{"lmgg"sv, "this is a GGML file, as of whisper.cpp; a language model has to be converted to GGUF"},
    Signature{"tjgg"sv, "this is a legacy GGJT file; convert the model to GGUF"},
    Signature{"fmgg"sv, "this is a legacy GGMF file; convert the model to GGUF"},
    Signature{"algg"sv, "this is a GGLA adapter, not a model"},
    Signature{"PK\x03\x04"sv, "this is a zip archive, perhaps a PyTorch checkpoint; convert the model to GGUF"},
    Signature{"\x80\x02"sv, "this is a Python pickle, which is not safe to load; use a GGUF or SafeTensors file"},
    Signature{"\x80\x03"sv, "this is a Python pickle, which is not safe to load; use a GGUF or SafeTensors file"},
    Signature{"\x80\x04"sv, "this is a Python pickle, which is not safe to load; use a GGUF or SafeTensors file"},
    Signature{"\x80\x05"sv, "this is a Python pickle, which is not safe to load; use a GGUF or SafeTensors file"},
    Signature{"\x1f\x8b"sv, "this is a gzip archive; unpack it first"},
    Signature{"\x28\xb5\x2f\xfd"sv, "this is a zstd archive; unpack it first"},
    Signature{"\xfd\x37zXZ"sv, "this is an xz archive; unpack it first"},
    Signature{"7z\xbc\xaf"sv, "this is a 7z archive; unpack it first"},
    Signature{"\x89HDF"sv, "this is an HDF5 file; convert the model to GGUF"},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// `text` begins with `start` (lower case), in any case, after white space.
bool begins_with_word(std::string_view text, std::string_view start) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    return std::ranges::equal(text.substr(0, start.size()), start, {}, lower);
}

// A u64 header length that fits, then a JSON object.
bool is_safetensors(std::span<const std::byte> bytes) {
    if (bytes.size() < 10 || bytes[8] != std::byte{'{'}) return false;
    std::uint64_t header;
    std::memcpy(&header, bytes.data(), sizeof header);
    return header >= 2 && header <= bytes.size() - 8;
}

}  // namespace

std::string describe_foreign_file(std::span<const std::byte> bytes, std::string_view expected) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 256));
    for (const Signature& signature : kSignatures) {
        if (text.starts_with(signature.start)) return std::string(signature.what);
    }
    if (is_safetensors(bytes)) return "this is a SafeTensors file; load the folder that it lies in";
    if (begins_with_word(text, "<!doctype html") || begins_with_word(text, "<html") ||
        begins_with_word(text, "<?xml")) {
        return "this is a web page; the download link led to a page instead of the file";
    }
    if (begins_with_word(text, "{")) return "this is a JSON text; the download may have failed";
    if (std::ranges::all_of(text, [](char c) { return c == '\0'; })) {
        return "it begins with zeros; the download did not finish";
    }
    return "it begins with " + quoted(text.substr(0, 8)) + " where " + std::string(expected) + " was expected";
}

}  // namespace akunu
