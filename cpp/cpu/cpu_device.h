// CpuDevice: replays tables on the pool. The workers are woken once per chain; between two commands they meet at a
// barrier.
#pragma once

#include <memory>

#include "core/device.h"
#include "cpu/kernel.h"
#include "cpu/thread_pool.h"

namespace akunu::cpu {

// Zero-filled memory of its own, lazily committed, in huge pages where the system has them.
struct Unmap {
    std::byte* begin = nullptr;
    std::uint64_t bytes = 0;
    void operator()(std::byte*) const;
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

class CpuDevice final : public Device {
  public:
    // `threads` 0: one per usable physical core.
    explicit CpuDevice(int threads, const KernelSet& kernels = select_kernels());

    std::string name() const override;
    std::string isa() const override { return std::string(kernels_.isa); }
    int threads() const override { return pool_.threads(); }
    const DeviceTraits& traits() const override { return traits_; }
    std::uint32_t matmul_input(DType weight) const override;
    std::uint64_t activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const override;
    std::uint64_t kv_bytes(DType dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim,
                           std::uint32_t context) const override;
    std::uint64_t attention_partial_bytes(std::uint32_t n_heads, std::uint32_t head_dim,
                                          std::uint32_t context) const override;
    bool supports_kv(DType dtype) const override;
    Buffer allocate(std::uint64_t bytes) override;
    void release(Buffer& buffer) override;
    Weight prepare_weight(const HostTensor& tensor) override;
    Weight map_weight(const HostTensor& tensor) override;
    void resolve(DispatchCmd& cmd) const override;
    std::uint32_t replay(const DispatchTable& table, const ReplayArgs& args, Control& control,
                         const std::function<bool()>& poll) override;
    void profile(const DispatchTable& table, const ReplayArgs& args, std::span<double> seconds) override;

  private:
    struct Job;
    void work(Job& job, int index);
    // Weights lie side by side, so that those smaller than a huge page are in huge pages too.
    std::shared_ptr<std::byte> weight_memory(std::uint64_t bytes);

    const KernelSet& kernels_;
    ThreadPool pool_;
    SpinBarrier barrier_;
    DeviceTraits traits_;
    Mapping scratch_;                  // kWorkerScratch bytes for each worker
    std::shared_ptr<std::byte> slab_;  // where the next weight lies, and the bytes in use there
    std::uint64_t slab_used_ = 0;
};

// What `threads` threads reach now: bytes/s read from memory, FLOP/s and int8 operations/s.
struct Peaks {
    double read_bytes_per_second = 0, f32_flops = 0, int8_ops = 0;
};
Peaks measure_peaks(int threads, double seconds);

}  // namespace akunu::cpu
