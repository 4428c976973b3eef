// CpuDevice: replays tables with the helpers that the pool has.
#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "core/device.h"
#include "cpu/expert_pages.h"
#include "cpu/kernel.h"
#include "cpu/replay.h"
#include "cpu/thread_pool.h"

namespace akunu::cpu {

class CpuDevice final : public Device {
  public:
    // `threads` 0: one per usable physical core.
    explicit CpuDevice(int threads, const KernelSet& kernels = select_kernels());
    // With the memory nodes that what all threads read is spread over.
    CpuDevice(int threads, const KernelSet& kernels, std::vector<int> nodes);

    std::string name() const override;
    std::string isa() const override { return std::string(kernels_.isa); }
    int threads() const override { return threads_; }
    const DeviceTraits& traits() const override { return traits_; }
    std::uint32_t matmul_input(DType weight) const override;
    std::uint64_t activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const override;
    std::uint64_t kv_bytes(DType dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim) const override;
    std::uint64_t attention_partial_bytes(std::uint32_t n_heads, std::uint32_t head_dim,
                                          std::uint32_t context) const override;
    bool supports_kv(const KvTypes& types) const override;
    std::uint64_t memory() const override;
    Buffer allocate(std::uint64_t bytes, MemoryKind kind) override;
    void release(Buffer& buffer) override;
    void discard(const Binding& range) override;
    void upload(const Binding& to, std::span<const std::byte> bytes) override;
    void download(const Binding& from, std::span<std::byte> bytes) override;
    Weight prepare_weight(const HostTensor& tensor) override;
    Weight prepare_experts(std::span<const HostTensor> experts) override;
    Weight page_experts(std::span<const HostTensor> experts) override;
    std::uint64_t hold_experts(std::uint64_t bytes) override { return paged_.hold(bytes); }
    PagedUse paged_use() const override { return paged_.use(); }
    Weight map_weight(const HostTensor& tensor) override;
    std::unique_ptr<Program> compile(DispatchTable table) override;
    std::uint32_t replay(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile) override;
    void profile(Segments segments, std::span<double> seconds) override;

  private:
    // Throws Error in a process that was forked after the device was opened.
    ThreadPool& pool() const;
    std::uint32_t run(const Chain& chain, const Control& control, const Poll& poll, const Meanwhile& meanwhile,
                      std::span<double> seconds);
    // Memory that all threads read: each of them has its own rows to begin with and takes those of others when it is
    // done, so that no node is the right one for a page.
    Mapping shared_memory(std::uint64_t bytes) const;
    // Weights lie side by side, so that those smaller than a huge page are in huge pages too.
    std::shared_ptr<std::byte> weight_memory(std::uint64_t bytes);

    // Whether the command's experts stay in their file; then it is added to such commands.
    bool add_paged(const DispatchCmd& cmd, std::size_t at, std::vector<PagedCommand>& to) const;
    // Null: packed as all other weights.
    const WholeFormat* format_of(Whole whole) const;

    const KernelSet& kernels_;
    const int threads_;
    const std::vector<int> nodes_;
    const pid_t process_;
    DeviceTraits traits_;
    std::vector<std::shared_ptr<Replay>> replays_;  // one, and those that late helpers have not left yet
    std::shared_ptr<std::byte> slab_;               // where the next weight lies, and the bytes in use there
    std::uint64_t slab_used_ = 0;
    ExpertStore paged_;
};

Peaks measure_peaks(int threads, double seconds);

}  // namespace akunu::cpu
