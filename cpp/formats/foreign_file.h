// Recognises the files that people mistake for a GGUF or SafeTensors file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace akunu {

// What a file seems to be that does not begin with what was `expected`, and the remedy: one clause.
std::string describe_foreign_file(std::span<const std::byte> bytes, std::string_view expected);

}  // namespace akunu
