// The JSON header of a SafeTensors file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor_files.h"

namespace akunu {

// The tensors that `json` lists, in its order; offsets are relative to the data. It is read by its schema, strictly:
// {name: {"dtype": text, "shape": [integers], "data_offsets": [begin, end]}, "__metadata__": {text: text}}, and nothing
// else. ModelFileError, beginning with `path`, for anything else, for a shape that does not take end - begin bytes, and
// for more than the limits in safetensors.h; UnsupportedError for a type that we do not know.
std::vector<TensorEntry> parse_safetensors_header(std::string_view json, const std::string& path);

}  // namespace akunu
