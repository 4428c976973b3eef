// A CPU device whose calls a driver can change.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cpu/cpu_device.h"

namespace akunu::test {

class ForwardingDevice : public Device {
  public:
    std::string name() const override { return cpu_.name(); }
    std::string isa() const override { return cpu_.isa(); }
    int threads() const override { return cpu_.threads(); }
    const DeviceTraits& traits() const override { return cpu_.traits(); }
    std::uint32_t matmul_input(DType w) const override { return cpu_.matmul_input(w); }
    std::uint64_t activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const override {
        return cpu_.activation_bytes(format, rows, dim);
    }
    std::uint64_t kv_bytes(DType t, std::uint32_t heads, std::uint32_t head_dim) const override {
        return cpu_.kv_bytes(t, heads, head_dim);
    }
    std::uint64_t attention_partial_bytes(std::uint32_t heads, std::uint32_t dim, std::uint32_t n) const override {
        return cpu_.attention_partial_bytes(heads, dim, n);
    }
    bool supports_kv(const KvTypes& t) const override { return cpu_.supports_kv(t); }
    std::uint64_t memory() const override { return cpu_.memory(); }
    Buffer allocate(std::uint64_t bytes, MemoryKind kind) override { return cpu_.allocate(bytes, kind); }
    void release(Buffer& b) override { cpu_.release(b); }
    void upload(const Binding& to, std::span<const std::byte> bytes) override { cpu_.upload(to, bytes); }
    void download(const Binding& from, std::span<std::byte> bytes) override { cpu_.download(from, bytes); }
    Weight prepare_weight(const HostTensor& t) override { return cpu_.prepare_weight(t); }
    Weight map_weight(const HostTensor& t) override { return cpu_.map_weight(t); }
    std::unique_ptr<Program> compile(DispatchTable t) override { return cpu_.compile(std::move(t)); }
    void profile(Segments s, std::span<double> seconds) override { cpu_.profile(s, seconds); }
    std::uint32_t replay(const Chain& chain, Control& control, const Poll& poll,
                         const akunu::Meanwhile& meanwhile) override {
        return cpu_.replay(chain, control, poll, meanwhile);
    }

  private:
    cpu::CpuDevice cpu_{2};
};

}  // namespace akunu::test
