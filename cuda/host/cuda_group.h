// CudaGroup: several GPUs of a host that share a model. Each has its part of the matrices that are split, and all of
// the others; the same tables, pages and states; and runs the same commands at the same time. Where a command needs
// what all have made, GPUs store it in one another's memory (cuda/kernels/cards.cuh).
//
// A buffer is one on each GPU, of the same size. The host shares the memory of the first one's, which all copy in.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cuda/host/cuda_device.h"

namespace akunu::cuda {

class CudaGroup final : public CudaFormats {
  public:
    // Two GPUs or more, by their numbers. Throws DeviceError where one is not there, is there twice, is of another kind
    // than the first, or does not reach another one's memory.
    explicit CudaGroup(std::span<const int> numbers);
    ~CudaGroup() override;

    std::string name() const override;
    std::string isa() const override { return cards_.front()->isa(); }
    // Of each GPU.
    std::uint64_t memory() const override { return cards_.front()->memory(); }
    std::optional<std::uint64_t> memory_left() const override;
    Buffer allocate(std::uint64_t bytes, MemoryKind kind) override;
    void release(Buffer& buffer) override;
    void upload(const Binding& to, std::span<const std::byte> bytes) override;
    void upload_part(const Binding& to, std::uint32_t card, std::span<const std::byte> bytes) override;
    void download(const Binding& from, std::span<std::byte> bytes) override;
    Weight prepare_weight(const HostTensor& tensor) override;
    Weight prepare_experts(std::span<const HostTensor> experts) override;
    Weight map_weight(const HostTensor& tensor) override { return prepare_weight(tensor); }
    std::unique_ptr<Program> compile(DispatchTable table) override;
    void prepare_kernels(const Report& report) override;
    std::uint32_t replay(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile) override;
    // The first GPU's times.
    void profile(Segments segments, std::span<double> seconds) override;

  private:
    Buffer joined(std::vector<Buffer> parts);
    Weight joined(std::span<const Weight> parts);
    void make_words(std::uint64_t words);
    std::uint32_t run(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile);

    std::vector<std::unique_ptr<CudaDevice>> cards_;
    std::uint64_t words_ = 0;  // of a GPU, for a sum
};

}  // namespace akunu::cuda
