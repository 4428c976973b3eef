#include "cuda/host/memory.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "core/error.h"

namespace akunu::cuda {

namespace {

// Copies move 16 bytes at a time.
constexpr std::uint64_t kGranule = 16;

std::string megabytes(std::uint64_t bytes) { return std::to_string((bytes + 999'999) / 1'000'000) + " MB"; }

}  // namespace

Memory::~Memory() {
    if (staging_.data()) driver_.cuMemFreeHost(staging_.data());
}

std::span<std::byte> Memory::staging(std::uint64_t bytes) {
    if (staging_.size() < bytes) {
        if (staging_.data()) driver_.cuMemFreeHost(std::exchange(staging_, {}).data());
        void* host = nullptr;
        driver_.check(driver_.cuMemHostAlloc(&host, bytes, kHostPortable),
                      "allocating " + megabytes(bytes) + " of page-locked memory");
        staging_ = {static_cast<std::byte*>(host), bytes};
    }
    return staging_.first(bytes);
}

Buffer Memory::allocate(std::uint64_t bytes, MemoryKind kind) { return allocate(bytes, kind, nullptr); }

Buffer Memory::mirror(const Buffer& shared) { return allocate(shared.size, MemoryKind::kShared, shared.host); }

Buffer Memory::allocate(std::uint64_t bytes, MemoryKind kind, std::byte* lent) {
    auto a = std::make_unique<Allocation>();
    a->bytes = (bytes + kGranule - 1) / kGranule * kGranule;
    const CUresult result = driver_.cuMemAlloc(&a->device, a->bytes);
    if (result == kOutOfMemory) {
        std::size_t free = 0, total = 0;
        driver_.cuMemGetInfo(&free, &total);
        throw DeviceError("out of GPU memory: " + megabytes(a->bytes) + " wanted, " + megabytes(free) + " of " +
                          megabytes(total) + " are free, " +
                          megabytes(a->bytes - std::min<std::uint64_t>(free, a->bytes)) +
                          " are missing; a smaller context or a more quantised model needs less");
    }
    driver_.check(result, "allocating " + megabytes(a->bytes) + " of GPU memory");
    try {
        driver_.check(driver_.cuMemsetD8(a->device, 0, a->bytes), "clearing GPU memory");
        // Launches are in a stream that does not wait for this one.
        driver_.check(driver_.cuStreamSynchronize(nullptr), "clearing GPU memory");
        if (kind == MemoryKind::kShared) {
            void* host = lent;
            a->borrowed = lent != nullptr;
            if (!lent) {
                driver_.check(driver_.cuMemHostAlloc(&host, a->bytes, kHostPortable | kHostDeviceMap),
                              "allocating " + megabytes(a->bytes) + " of page-locked memory");
                std::memset(host, 0, a->bytes);
            }
            a->host = static_cast<std::byte*>(host);
            driver_.check(driver_.cuMemHostGetDevicePointer(&a->host_seen, host, 0), "mapping page-locked memory");
            const std::lock_guard lock(mutex_);
            shared_[a->host] = a.get();
        }
    } catch (...) {
        driver_.cuMemFree(a->device);
        if (a->host && !a->borrowed) driver_.cuMemFreeHost(a->host);
        throw;
    }
    Buffer b{a.get(), reinterpret_cast<std::byte*>(a->device), a->host, bytes};
    a.release();
    return b;
}

void Memory::release(Buffer& buffer) {
    if (!buffer.handle) return;
    const std::unique_ptr<Allocation> a(static_cast<Allocation*>(buffer.handle));
    driver_.cuMemFree(a->device);
    if (a->host) {
        const std::lock_guard lock(mutex_);
        shared_.erase(a->host);
        if (!a->borrowed) driver_.cuMemFreeHost(a->host);
    }
    buffer = {};
}

void Memory::upload(const Binding& to, std::span<const std::byte> bytes) const {
    const Allocation& a = allocation(to.buffer);
    if (a.host) {  // the next launch brings it over
        std::memcpy(a.host + to.offset, bytes.data(), bytes.size());
    } else {
        driver_.check(driver_.cuMemcpyHtoD(a.device + to.offset, bytes.data(), bytes.size()), "copying to the GPU");
    }
}

void Memory::download(const Binding& from, std::span<std::byte> bytes) const {
    const Allocation& a = allocation(from.buffer);
    if (a.host) {
        std::memcpy(bytes.data(), a.host + from.offset, bytes.size());
    } else {
        driver_.check(driver_.cuMemcpyDtoH(bytes.data(), a.device + from.offset, bytes.size()), "copying from the GPU");
    }
}

CUdeviceptr Memory::device_copy(const void* host) const {
    const auto* at = static_cast<const std::byte*>(host);
    const std::lock_guard lock(mutex_);
    auto found = shared_.upper_bound(at);
    if (found == shared_.begin()) return 0;
    const Allocation& a = *(--found)->second;
    return at < a.host + a.bytes ? a.device + static_cast<CUdeviceptr>(at - a.host) : 0;
}

}  // namespace akunu::cuda
