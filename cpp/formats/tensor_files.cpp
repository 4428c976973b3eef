#include "formats/tensor_files.h"

#include <utility>

#include "core/error.h"
#include "formats/quote.h"

namespace akunu {

void TensorFiles::add_file(std::shared_ptr<const MappedFile> file, std::vector<TensorEntry> tensors) {
    tensors_.reserve(tensors_.size() + tensors.size());
    for (TensorEntry& tensor : tensors) {
        tensor.file = static_cast<std::uint32_t>(files_.size());
        tensors_.push_back(std::move(tensor));
    }
    files_.push_back(std::move(file));
}

void TensorFiles::index_tensors(const std::string& path) {
    if (const std::string* twin = tensor_index_.build(tensors_)) {
        throw ModelFileError(path + ": tensor " + quoted(*twin) + " occurs twice");
    }
}

const TensorEntry* TensorFiles::find_tensor(std::string_view name) const { return tensor_index_.find(tensors_, name); }

TensorBytes TensorFiles::tensor_bytes(const TensorEntry& tensor) const {
    const MappedFile& file = *files_[tensor.file];
    file.check_size();
    if (!tensor.made) return {file.bytes().subspan(tensor.offset, tensor.bytes)};
    const auto bytes = tensor.made->bytes();
    return {*bytes, bytes};
}

JoinedFiles::JoinedFiles(const TensorFiles& first, const TensorFiles& second, std::string_view prefix,
                         const std::string& added) {
    const auto add = [&](const TensorFiles& from, std::string_view begin, const std::string& before) {
        for (std::uint32_t i = 0; i < from.files().size(); ++i) {
            std::vector<TensorEntry> tensors;
            for (const TensorEntry& tensor : from.tensors()) {
                if (tensor.file != i || !tensor.name.starts_with(begin)) continue;
                tensors.push_back(tensor);
                tensors.back().name.insert(0, before);
            }
            add_file(from.files()[i], std::move(tensors));
        }
    };
    add(first, "", "");
    add(second, prefix, added);
    index_tensors("both files");
}

}  // namespace akunu
