#include "core/cache_folder.h"

#include <cstdint>
#include <cstdlib>

namespace akunu {

// Empty where it is unset.
static std::string folder_in(const char* variable) {
    const char* set = std::getenv(variable);
    return set ? set : "";
}

std::string cache_folder() {
    if (const std::string set = folder_in("AKUNU_CACHE"); !set.empty()) return set;
    const std::string home = folder_in("HOME");
#ifdef __APPLE__
    const std::string caches = home.empty() ? home : home + "/Library/Caches";
#else
    const std::string set = folder_in("XDG_CACHE_HOME");
    const std::string caches = !set.empty() || home.empty() ? set : home + "/.cache";
#endif
    return caches.empty() ? caches : caches + "/akunu";
}

std::string name_of_contents(std::span<const std::string_view> parts) {
    std::uint64_t hash = 0xCBF29CE484222325;
    for (const std::string_view part : parts) {
        for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
    }
    std::string name(16, '0');
    for (std::size_t i = name.size(); i-- > 0; hash >>= 4) name[i] = "0123456789abcdef"[hash & 15];
    return name;
}

}  // namespace akunu
