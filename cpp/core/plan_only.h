// What devices have in common that only plan: memory in name, and nothing that runs.
#pragma once

#include <sys/mman.h>

#include <concepts>
#include <string>

#include "core/device.h"
#include "core/error.h"

namespace akunu {

template <std::derived_from<Device> Base>
class PlanOnly : public Base {
  public:
    // Nobody is asked for memory: what a plan is of need not fit.
    std::uint64_t memory() const override { return std::uint64_t{1} << 40; }
    // Pages of which nothing is written take no memory.
    Buffer allocate(std::uint64_t bytes, MemoryKind) override {
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            throw DeviceError("out of address space: could not map " + std::to_string(bytes) + " bytes");
        }
        auto* at = static_cast<std::byte*>(p);
        return {p, at, at, bytes};
    }
    void release(Buffer& buffer) override {
        if (buffer.handle) munmap(buffer.handle, buffer.size);
        buffer = {};
    }
    // Nothing is kept.
    void upload(const Binding&, std::span<const std::byte>) override {}
    void download(const Binding&, std::span<std::byte>) override {}
    // Both throw.
    std::uint32_t replay(const Chain&, Control&, const Poll&, const Meanwhile&) override {
        throw UnsupportedError("device '" + this->name() +
                               "' only plans; load the model on a device that is here to run it");
    }
    void profile(Segments, std::span<double>) override {
        throw UnsupportedError("device '" + this->name() + "' only plans; nothing can be measured on it");
    }
};

}  // namespace akunu
