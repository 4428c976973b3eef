// Model: a list of blocks between an embedding and a head, on a device. It makes the tables of every phase from them.
//
// A step runs two segments: the body, which is the forward pass of all rows up to the last block, and a tail, which
// makes logits of the rows that want them, draws tokens, and writes them into the texts.
#pragma once

#include <memory>
#include <vector>

#include "plan/block.h"

namespace akunu {

enum class Draw : std::uint8_t { kNone, kGreedy, kSampled };

// Which tail: everything that decides its commands.
struct TailKey {
    Draw draw = Draw::kGreedy;
    bool logprobs = false;
    bool one_row = true;
    auto operator<=>(const TailKey&) const = default;
};

class Model {
  public:
    // `config` must outlive it.
    Model(const ModelConfig& config, Loader& loader);

    void reserve(const Device& device, Activations& activations, std::uint32_t context) const;
    // Bytes of each layer's cache for kPagePositions positions.
    std::vector<std::uint64_t> kv_page_bytes(const Device& device, DType dtype) const;

    // The frequencies of each rope set, uploaded once.
    void upload_frequencies(Device& device);

    DispatchTable body(const PlanContext& context, Phase phase) const;
    DispatchTable tail(const PlanContext& context, const TailKey& key) const;
    // Copies pages.
    DispatchTable copies(const PlanContext& context) const;

  private:
    void embed(Emitter& e) const;
    void rope_tables(Emitter& e) const;

    const ModelConfig& config_;
    Weight embedding_, output_;
    Vector output_norm_;
    std::vector<std::unique_ptr<Block>> blocks_;
    std::vector<DeviceBuffer> inv_freq_;
};

}  // namespace akunu
