// Zero-filled memory of its own, lazily committed, in huge pages where the system has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace akunu::cpu {

struct Unmap {
    std::byte* begin = nullptr;
    std::uint64_t bytes = 0;
    void operator()(std::byte*) const;
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

// Throws DeviceError when there is not so much; `remedy` ends the message.
Mapping map_memory(std::uint64_t bytes, const char* remedy);

}  // namespace akunu::cpu
