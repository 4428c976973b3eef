// CudaDevice: an NVIDIA GPU whose interpreter kernel walks the compiled tables.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/host/formats.h"

namespace akunu::cuda {

// A GPU, as the registry lists it.
struct Gpu {
    std::string name, isa;
    std::uint64_t memory = 0;
    int number = 0;
};
// Those that can be used, by their numbers; where the first one cannot there is none, and `why` says so.
std::vector<Gpu> find_gpus(std::string& why);

// The first GPU's context, or null where there is none, opened in a thread of its own: a device that is made while
// somebody has it is made at once.
std::future<std::shared_ptr<void>> open_ahead();

// The first segment of a chain's first step, which has a launch of its own where the host has something to tell the
// others, and these.
struct PartedChain {
    Chain first, rest;
};
PartedChain parted(const Chain& chain);

class CudaDevice final : public CudaFormats {
  public:
    explicit CudaDevice(int number = 0);
    ~CudaDevice() override;

    std::string name() const override;
    std::string isa() const override;
    std::uint64_t memory() const override;
    std::optional<std::uint64_t> memory_left() const override;
    Buffer allocate(std::uint64_t bytes, MemoryKind kind) override;
    void release(Buffer& buffer) override;
    void upload(const Binding& to, std::span<const std::byte> bytes) override;
    void download(const Binding& from, std::span<std::byte> bytes) override;
    Weight prepare_weight(const HostTensor& tensor) override;
    Weight prepare_experts(std::span<const HostTensor> experts) override;
    Weight map_weight(const HostTensor& tensor) override;
    std::unique_ptr<Program> compile(DispatchTable table) override;
    void prepare_kernels(const Report& report) override;
    std::uint32_t replay(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile) override;
    void profile(Segments segments, std::span<double> seconds) override;

    // For a model on several GPUs, see CudaGroup. The copy of a buffer that another one shares with the host.
    Buffer mirror(const Buffer& shared);
    // It uses the other one's memory. Throws DeviceError where it cannot, or where that is another kind of GPU.
    void reach(const CudaDevice& other);
    // Which of them it is, and so many words of each of them for each of two sums.
    void set_cards(u32 count, u32 mine);
    u64* make_card_words(std::uint64_t words);
    void set_card_words(std::span<u64* const> of_cards, std::uint64_t words);
    // A replay in three parts: the first may take long, or fail, and is false where `poll` ended it; all cards begin at
    // the same number.
    u32 number() const;
    bool prepare(const Chain& chain, Control* control, const Poll& poll, u32 number);
    void start();
    std::uint32_t finish(const Chain& chain, const Control* control, const Poll& poll);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace akunu::cuda
