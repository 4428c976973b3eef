#include "formats/gguf.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "core/error.h"
#include "formats/gguf_part.h"
#include "formats/quote.h"

namespace akunu {
namespace {

// Names of parts have five digits.
constexpr std::uint64_t kMaxParts = 99999;

struct SplitInfo {
    std::uint64_t number = 0;  // from 0
    std::uint64_t count = 1;
    std::optional<std::uint64_t> tensors;  // in all parts
};

std::optional<std::uint64_t> split_key(const GgufPart& part, std::string_view key) {
    const GgufValue* value = part.find(key);
    if (value == nullptr) return std::nullopt;
    const auto number = gguf_unsigned(*value);
    if (!number) {
        throw ModelFileError(part.file->path() + ": " + std::string(key) + " is not a non-negative integer");
    }
    return number;
}

SplitInfo split_info(const GgufPart& part) {
    SplitInfo info;
    info.count = split_key(part, "split.count").value_or(1);
    info.number = split_key(part, "split.no").value_or(0);
    info.tensors = split_key(part, "split.tensors.count");
    if (info.count == 0) info.count = 1;  // written so by tools that merged the parts again
    if (info.count > kMaxParts || info.number >= info.count) {
        throw ModelFileError(part.file->path() + ": split.no " + std::to_string(info.number) + " of split.count " +
                             std::to_string(info.count) + " makes no sense; the file is damaged");
    }
    return info;
}

std::string part_suffix(std::uint64_t number, std::uint64_t count) {
    char suffix[64];
    std::snprintf(suffix, sizeof suffix, "-%05llu-of-%05llu.gguf", static_cast<unsigned long long>(number + 1),
                  static_cast<unsigned long long>(count));
    return suffix;
}

// The part belongs to the model of `first`: same counts, and no key in both with another value.
void check_same_model(const GgufPart& first, const GgufPart& part, std::uint64_t number) {
    const std::string& path = part.file->path();
    const SplitInfo expected = split_info(first);
    const SplitInfo found = split_info(part);
    if (found.number != number || found.count != expected.count) {
        throw ModelFileError(path + ": is part " + std::to_string(found.number + 1) + " of " +
                             std::to_string(found.count) + " by its metadata, but part " + std::to_string(number + 1) +
                             " of " + std::to_string(expected.count) + " by its name; fetch the parts again");
    }
    if (found.tensors != expected.tensors) {
        throw ModelFileError(path + ": has another split.tensors.count than " + first.file->path() +
                             "; the parts are of different models");
    }
    for (const MetadataEntry& entry : part.metadata) {
        const GgufValue* other = first.find(entry.name);
        if (other == nullptr || entry.name.starts_with("split.")) continue;
        if (other->type != entry.value.type || other->item_type != entry.value.item_type ||
            !std::ranges::equal(other->payload, entry.value.payload)) {
            throw ModelFileError(path + ": metadata key " + quoted(entry.name) + " differs from that of " +
                                 first.file->path() + "; the parts are of different models");
        }
    }
}

// All parts in order, given the one that was opened.
std::vector<GgufPart> read_parts(GgufPart opened) {
    const SplitInfo split = split_info(opened);
    std::vector<GgufPart> parts;
    if (split.count == 1) {
        parts.push_back(std::move(opened));
        return parts;
    }
    const std::string path = opened.file->path();
    const std::string suffix = part_suffix(split.number, split.count);
    if (!path.ends_with(suffix)) {
        throw ModelFileError(path + ": is part " + std::to_string(split.number + 1) + " of " +
                             std::to_string(split.count) + " of a split model; its name must end " + "in " + suffix +
                             " for the other parts to be found");
    }
    const std::string stem = path.substr(0, path.size() - suffix.size());
    for (std::uint64_t i = 0; i < split.count; ++i) {
        if (i == split.number) {
            parts.push_back(std::move(opened));
            continue;
        }
        try {
            parts.push_back(parse_gguf_part(stem + part_suffix(i, split.count)));
        } catch (const ModelFileError& error) {
            throw ModelFileError(std::string(error.what()) + " (part " + std::to_string(i + 1) + " of " +
                                 std::to_string(split.count) + " of the split model)");
        }
    }
    for (std::uint64_t i = 0; i < split.count; ++i) check_same_model(parts[0], parts[i], i);
    return parts;
}

}  // namespace

GgufFile GgufFile::open(const std::string& path) {
    std::vector<GgufPart> parts = read_parts(parse_gguf_part(path));
    GgufFile model;
    model.version_ = parts[0].version;
    const auto announced = split_info(parts[0]).tensors;

    std::uint64_t tensor_count = 0;
    for (const GgufPart& part : parts) tensor_count += part.tensors.size();
    if (tensor_count > kMaxGgufTensors) {
        throw ModelFileError(path + ": the parts hold " + std::to_string(tensor_count) + " tensors; at most " +
                             std::to_string(kMaxGgufTensors) + " are accepted");
    }
    if (announced && *announced != tensor_count) {
        throw ModelFileError(path + ": split.tensors.count is " + std::to_string(*announced) + ", but the files hold " +
                             std::to_string(tensor_count) + "; fetch them again");
    }
    for (GgufPart& part : parts) model.add_file(std::move(part.file), std::move(part.tensors));
    model.index_tensors(path);
    model.metadata_ = std::move(parts[0].metadata);
    model.metadata_index_ = std::move(parts[0].metadata_index);
    return model;
}

const GgufValue* GgufFile::find(std::string_view key) const {
    const MetadataEntry* entry = metadata_index_.find(metadata_, key);
    return entry == nullptr ? nullptr : &entry->value;
}

}  // namespace akunu
