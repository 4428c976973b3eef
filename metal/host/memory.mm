#import "metal/host/memory.h"

#include <unistd.h>

#include <algorithm>

#include "core/error.h"

namespace akunu::metal {

namespace {

// Metal's hazard tracking is off: the replay orders its commands by explicit barriers.
constexpr MTLResourceOptions kOptions = MTLResourceStorageModeShared | MTLResourceHazardTrackingModeUntracked;

constexpr std::uintptr_t kVectorBytes = 16;

std::string megabytes(std::uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MB"; }

const std::byte* page_floor(const std::byte* p, std::uintptr_t page) {
    return p - reinterpret_cast<std::uintptr_t>(p) % page;
}

}  // namespace

std::uint64_t Memory::left() const {
    const std::uint64_t limit = device_.recommendedMaxWorkingSetSize;
    return used_ < limit ? limit - used_ : 0;
}

void Memory::check_room(std::uint64_t bytes) const {
    if (bytes <= left()) return;
    throw DeviceError("out of GPU memory: " + megabytes(bytes) + " more are needed, " + megabytes(used_) + " of the " +
                      megabytes(device_.recommendedMaxWorkingSetSize) +
                      " that the system recommends are in use; a smaller context or a more quantised model needs less");
}

Buffer Memory::allocate(std::uint64_t bytes, MemoryKind kind) {
    check_room(bytes);
    return pooled([&] {
        id<MTLBuffer> b = [device_ newBufferWithLength:bytes options:kOptions];
        if (!b) {
            throw DeviceError("out of GPU memory: could not allocate " + std::to_string(bytes) +
                              " bytes; a smaller context or a more quantised model needs less");
        }
        void* handle = (__bridge void*)b;
        allocated_.emplace(handle, b);
        residency_.add(b);
        used_ += bytes;
        auto* host = kind == MemoryKind::kShared ? static_cast<std::byte*>(b.contents) : nullptr;
        return Buffer{handle, nullptr, host, bytes};
    });
}

void Memory::release(Buffer& buffer) {
    if (const auto found = allocated_.find(buffer.handle); found != allocated_.end()) {
        residency_.remove(found->second);
        allocated_.erase(found);
        used_ -= buffer.size;
    }
    buffer = {};
}

Memory::Window* Memory::open_window(const std::byte* begin, const std::byte* end) {
    const auto bytes = static_cast<std::uint64_t>(end - begin);
    check_room(bytes);
    id<MTLBuffer> b = pooled([&] {
        return [device_ newBufferWithBytesNoCopy:const_cast<std::byte*>(begin)
                                          length:bytes
                                         options:kOptions
                                     deallocator:nil];
    });
    if (!b) return nullptr;
    residency_.add(b);
    used_ += bytes;
    windows_.push_back({begin, end, b});
    return &windows_.back();
}

bool Memory::map(std::span<const std::byte> bytes, std::span<const std::byte> mapping, Binding& to) {
    const std::byte *begin = bytes.data(), *end = begin + bytes.size();
    // Kernels read vectors of four elements, whose address is a multiple of their size.
    if (reinterpret_cast<std::uintptr_t>(begin) % kVectorBytes != 0) return false;
    const auto fits = [&](const Window& w) { return w.begin <= begin && end <= w.end; };
    auto at = std::find_if(windows_.begin(), windows_.end(), fits);
    Window* window = at == windows_.end() ? nullptr : &*at;
    if (!window) {
        const auto page = static_cast<std::uintptr_t>(getpagesize());
        // The mapping's last page is there as a whole, though the file may end within it.
        const std::byte* map_begin = mapping.data();
        const std::byte* map_end = page_floor(map_begin + mapping.size() + page - 1, page);
        if (reinterpret_cast<std::uintptr_t>(map_begin) % page != 0) return false;
        const std::uint64_t longest = device_.maxBufferLength / page * page;
        const auto total = static_cast<std::uint64_t>(map_end - map_begin);
        const std::byte *from = map_begin, *until = map_end;
        if (total > longest) {
            // Each window counts in full: they overlap by little, and a tensor that straddles more has its own pages.
            const std::uint64_t step = (longest - longest / 32) / page * page;
            if (step == 0) return false;
            from = map_begin + static_cast<std::uint64_t>(begin - map_begin) / step * step;
            until = std::min(map_end, from + longest);
            if (end > until) {
                from = page_floor(begin, page);
                until = std::min(map_end, page_floor(end + page - 1, page));
                if (static_cast<std::uint64_t>(until - from) > longest) return false;  // larger than a buffer can be
            }
        }
        window = open_window(from, until);
        if (!window) return false;
    }
    auto* base = const_cast<std::byte*>(window->begin);
    const Buffer buffer{(__bridge void*)window->buffer, nullptr, base,
                        static_cast<std::uint64_t>(window->end - window->begin)};
    to = {buffer, static_cast<std::uint64_t>(begin - window->begin)};
    return true;
}

}  // namespace akunu::metal
