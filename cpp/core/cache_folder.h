// Where what was compiled is kept from one process to the next.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace akunu {

// AKUNU_CACHE, or the user's folder for such files, whether it is there or not; empty where neither is known.
std::string cache_folder();

// A file's name after what it is made of: the FNV-1a hash of all parts, 16 hexadecimal digits.
std::string name_of_contents(std::span<const std::string_view> parts);

}  // namespace akunu
