// The GPU's memory, and host memory that it mirrors.
//
// What host and device share is two buffers: page-locked host memory, which the host reads and writes, and the
// device's copy, which commands work on. A launch copies what its commands use in, and what they wrote back.
#pragma once

#include <map>
#include <mutex>
#include <span>

#include "core/device.h"
#include "cuda/host/driver.h"

namespace akunu::cuda {

struct Allocation {
    CUdeviceptr device = 0;
    CUdeviceptr host_seen = 0;  // page-locked host memory as the device sees it; 0: the device's alone
    std::byte* host = nullptr;
    std::uint64_t bytes = 0;
    bool borrowed = false;  // the host memory is another GPU's, which gives back what commands wrote
};

class Memory {
  public:
    explicit Memory(const Driver& driver) : driver_(driver) {}
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // Zero-filled. Throws DeviceError.
    Buffer allocate(std::uint64_t bytes, MemoryKind kind);
    // The device's copy of host memory that is part of another GPU's shared buffer.
    Buffer mirror(const Buffer& shared);
    void release(Buffer& buffer);
    void upload(const Binding& to, std::span<const std::byte> bytes) const;
    void download(const Binding& from, std::span<std::byte> bytes) const;

    static const Allocation& allocation(const Buffer& buffer) { return *static_cast<Allocation*>(buffer.handle); }
    // Page-locked memory of the host, for weights on their way: copies from it are several times as fast as others,
    // and no page of it is touched for the first time. Valid until it is asked for again.
    std::span<std::byte> staging(std::uint64_t bytes);
    // The device's copy of host memory that is part of a shared buffer, or 0.
    CUdeviceptr device_copy(const void* host) const;

  private:
    Buffer allocate(std::uint64_t bytes, MemoryKind kind, std::byte* host);

    const Driver& driver_;
    std::span<std::byte> staging_;
    mutable std::mutex mutex_;
    std::map<const std::byte*, const Allocation*> shared_;  // by where their host memory begins
};

}  // namespace akunu::cuda
