#include "cpu/memory.h"

#include <sys/mman.h>

#include <limits>
#include <string>

#include "core/error.h"

namespace akunu::cpu {

namespace {

constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

}  // namespace

void Unmap::operator()(std::byte*) const { munmap(begin, bytes); }

Mapping map_memory(std::uint64_t bytes, const char* remedy) {
    // Memory that can have huge pages starts on one.
    const std::uint64_t spare = bytes >= kHugePage ? kHugePage : 0;
    void* p = bytes <= std::numeric_limits<std::uint64_t>::max() / 2
                  ? mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                  : MAP_FAILED;
    if (p == MAP_FAILED) {
        throw DeviceError("out of memory: could not allocate " + std::to_string(bytes) + " bytes; " + remedy);
    }
    auto* memory = static_cast<std::byte*>(p);
    const std::uint64_t before = spare ? -reinterpret_cast<std::uintptr_t>(memory) % kHugePage : 0;
#ifdef MADV_HUGEPAGE
    if (spare) madvise(memory + before, bytes, MADV_HUGEPAGE);
#endif
    return Mapping(memory + before, {memory, bytes + spare});
}

}  // namespace akunu::cpu
