// Block: one mixer of a model, between two states of the residual stream. A block's file is the only place that knows
// what it is: it loads its tensors, reserves its activations, and emits its commands.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/emitter.h"
#include "plan/loader.h"

namespace akunu {

// What a block keeps from one step to the next: its part of a record, and whose records these are. Blocks whose records
// have one owner and one window share them.
struct Kept {
    enum class Owner : std::uint8_t {
        kPage,      // kPagePositions positions of a sequence
        kSequence,  // all of it: a state that advances with every row and cannot be truncated, and what its stashed
                    // rows would add to it (see StateSpan)
        kSoundPage  // kPagePositions positions of a sound, whichever sequences are decoded from it
    };
    std::uint64_t bytes = 0;  // 0: nothing
    Owner owner = Owner::kPage;
    // How many of a sequence's last positions a row sees, its own with them; pages before them are of no more use. 0:
    // all.
    std::uint32_t window = 0;

    bool belongs_to(Owner to, std::uint32_t with_window = 0) const {
        return bytes != 0 && owner == to && window == with_window;
    }
};

class Block {
  public:
    virtual ~Block() = default;
    // Names what it needs between its commands, for sequences of up to `context` tokens.
    virtual void reserve(const Device& device, Activations& activations, std::uint32_t context) const = 0;
    virtual void emit(Emitter& e, Phase phase) const = 0;
    // The keys and values of rows whose output nobody reads.
    virtual void emit_keys(Emitter&) const {}
    // What it needs of a sound, an encoder's output, whose normed states are in `states`: computed once for each sound.
    virtual void emit_sound(Emitter&, const Act& /*states*/) const {}
    virtual void reserve_sound(const Device&, Activations&) const {}
    // The formats of `states` that it reads; 0 where it needs nothing.
    virtual std::uint32_t sound_formats(const Device&) const { return 0; }
    // What it makes once, when the model is loaded, of the model's embeddings of distances, which are in `distances`.
    virtual void emit_distances(Emitter&, const Act& /*distances*/) const {}
    // The formats of `distances` that it reads; 0 where it needs none.
    virtual std::uint32_t distance_formats(const Device&) const { return 0; }
    // Where keys and values are of this type.
    virtual Kept keeps(const Device&, const KvTypes&) const { return {}; }
    // The formats in which what its attention makes is read; 0 where it has none.
    virtual std::uint32_t attention_formats(const Device&) const { return 0; }
};

// What a block is built from besides its own configuration.
struct BlockPlace {
    const ModelConfig& config;  // outlives the block
    std::size_t index;          // among the model's blocks
    std::string prefix;         // of its tensors' names
    int layer;                  // on labels
    const BlockConfig* next;    // the block behind it; null behind the last one

    std::string name(const char* tensor) const { return prefix + tensor; }
    // Its norms behind a block, by their names. The last block of a layer has the layer's factor as well.
    Emitter::OutputNorms output_norms(Loader& loader, const char* branch, const char* sum) const {
        const bool last = !next || next->layer != layer;
        const std::string scale = name("layer_scale");
        return {loader.optional_vector(name(branch), config.dim), loader.optional_norm(name(sum), config.dim),
                last && loader.has(scale) ? loader.values(scale, 1).front() : 1.0f};
    }
};

// The blocks of a list, the first of which is `first` among all that keep something.
std::vector<std::unique_ptr<Block>> load_blocks(Loader& loader, const ModelConfig& config,
                                                std::span<const BlockConfig> blocks, std::size_t first = 0);

// One for each kind of mixer, in a file of its name.
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const AttentionConfig& attention);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const CrossAttentionConfig& attention);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const FeedForwardConfig& feed_forward);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const ExpertsConfig& experts);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const LayerInputConfig& input);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const LaurelConfig& laurel);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const MixStreamsConfig& mix);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const RecurrenceConfig& recurrence);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const DeltaNetConfig& net);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const ShortConvolutionConfig& convolution);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const Mamba2Config& mamba);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const MergeConfig& merge);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const LatentAttentionConfig& attention);
std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const RelativeAttentionConfig& attention);

}  // namespace akunu
