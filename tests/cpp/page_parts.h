// The parts of a page that an engine read, as another one takes them.
#pragma once

#include <vector>

#include "engine/engine.h"

namespace akunu::test {

inline std::vector<std::optional<std::span<const std::byte>>> views(const PageParts& parts) {
    return {parts.begin(), parts.end()};
}

}  // namespace akunu::test
