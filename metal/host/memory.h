// Buffers in shared storage: allocated ones, and windows onto a mapped file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/device.h"
#import "metal/host/objc.h"
#import "metal/host/residency.h"

namespace akunu::metal {

inline id<MTLBuffer> as_buffer(void* handle) { return (__bridge id<MTLBuffer>)handle; }

// What a buffer of either kind holds, for copies from and to the host.
inline std::byte* contents_of(const Binding& b) {
    return static_cast<std::byte*>(as_buffer(b.buffer.handle).contents) + b.offset;
}

class Memory {
  public:
    Memory(id<MTLDevice> device, Residency& residency) : device_(device), residency_(residency) {}

    // Zero-filled by Metal, page by page as it is touched. DeviceError when it would exceed what the system recommends,
    // or when there is no memory. Of what is the device's alone the host has no view.
    Buffer allocate(std::uint64_t bytes, MemoryKind kind);
    // Does nothing for a window: those live as long as this object.
    void release(Buffer& buffer);

    // A binding onto `bytes`, which lie in the page-aligned `mapping`; without a copy. False when Metal refuses.
    bool map(std::span<const std::byte> bytes, std::span<const std::byte> mapping, Binding& to);

    // What may still be allocated.
    std::uint64_t left() const;

  private:
    struct Window {
        const std::byte* begin;
        const std::byte* end;
        id<MTLBuffer> buffer;
    };
    void check_room(std::uint64_t bytes) const;
    Window* open_window(const std::byte* begin, const std::byte* end);

    id<MTLDevice> device_;
    Residency& residency_;
    std::map<void*, id<MTLBuffer>> allocated_;
    std::vector<Window> windows_;
    std::uint64_t used_ = 0;
};

}  // namespace akunu::metal
