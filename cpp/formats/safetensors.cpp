#include "formats/safetensors.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "formats/foreign_file.h"
#include "formats/quote.h"
#include "formats/safetensors_header.h"

namespace akunu {

namespace {

constexpr std::uint64_t kLengthBytes = sizeof(std::uint64_t);

// The JSON of a file. A file that begins with another length than that of a JSON object is no SafeTensors file.
std::string_view header_text(const MappedFile& file) {
    const auto bytes = file.bytes();
    const auto* chars = reinterpret_cast<const char*>(bytes.data());
    std::uint64_t length = 0;
    if (bytes.size() >= kLengthBytes) std::memcpy(&length, chars, sizeof length);
    const std::uint64_t room = bytes.size() < kLengthBytes ? 0 : bytes.size() - kLengthBytes;
    if (room == 0 || chars[kLengthBytes] != '{') {
        throw ModelFileError(file.path() +
                             ": is not a SafeTensors file: " + describe_foreign_file(bytes, "a header length"));
    }
    if (length > kMaxSafetensorsHeaderBytes) {
        throw ModelFileError(file.path() + ": announces a header of " + std::to_string(length) + " bytes; at most " +
                             std::to_string(kMaxSafetensorsHeaderBytes) + " are accepted");
    }
    if (length > room) {
        throw ModelFileError(file.path() + ": announces a header of " + std::to_string(length) + " bytes, but " +
                             std::to_string(room) + " follow; the file is incomplete, fetch it again");
    }
    return {chars + kLengthBytes, length};
}

// Makes offsets absolute, and checks that the tensors fill the data: no overlap, no hole, nothing beyond the end.
void place_tensors(std::vector<TensorEntry>& tensors, const MappedFile& file, std::uint64_t data) {
    std::vector<TensorEntry*> order;
    order.reserve(tensors.size());
    for (TensorEntry& tensor : tensors) order.push_back(&tensor);
    // An empty tensor comes before the one that begins where it lies.
    std::ranges::sort(order, {}, [](const TensorEntry* t) { return std::pair(t->offset, t->bytes); });
    const std::uint64_t room = file.bytes().size() - data;
    std::uint64_t filled = 0;
    for (TensorEntry* tensor : order) {
        if (tensor->offset != filled) {
            throw ModelFileError(file.path() + ": tensor " + quoted(tensor->name) + " begins at byte " +
                                 std::to_string(tensor->offset) + " of the data, where the tensors before it end at " +
                                 std::to_string(filled) + "; the file is damaged");
        }
        if (tensor->bytes > room - filled) {
            throw ModelFileError(file.path() + ": tensor " + quoted(tensor->name) + " has " +
                                 std::to_string(tensor->bytes) + " bytes at byte " + std::to_string(filled) +
                                 " of the " + std::to_string(room) +
                                 " bytes of data; the file is incomplete, fetch it again");
        }
        filled += tensor->bytes;
        tensor->offset += data;
    }
    if (filled != room) {
        throw ModelFileError(file.path() + ": has " + std::to_string(room) + " bytes of data, but its tensors end at " +
                             std::to_string(filled) + "; the file is damaged, fetch it again");
    }
}

}  // namespace

SafetensorsFiles SafetensorsFiles::open(const std::vector<std::string>& paths,
                                        const std::vector<std::string>& prefixes) {
    if (!prefixes.empty() && prefixes.size() != paths.size()) {
        throw InvalidArgumentError("there are " + std::to_string(prefixes.size()) + " prefixes for " +
                                   std::to_string(paths.size()) + " files");
    }
    if (paths.empty()) throw InvalidArgumentError("a SafeTensors model needs at least one file");
    SafetensorsFiles model;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        const std::string& path = paths[i];
        auto file = std::make_shared<const MappedFile>(path);
        const std::string_view header = header_text(*file);
        std::vector<TensorEntry> tensors = parse_safetensors_header(header, path);
        place_tensors(tensors, *file, kLengthBytes + header.size());
        if (tensors.size() > kMaxSafetensorsTensors - model.tensors().size()) {
            throw ModelFileError(path + ": with it the model has more than " + std::to_string(kMaxSafetensorsTensors) +
                                 " tensors");
        }
        if (!prefixes.empty()) {
            for (TensorEntry& tensor : tensors) tensor.name = prefixes[i] + tensor.name;
        }
        model.add_file(std::move(file), std::move(tensors));
    }
    model.index_tensors(paths.size() == 1 ? paths[0] : paths[0] + " and its shards");
    return model;
}

}  // namespace akunu
