// Engine: everything of one loaded model. It compiles the tables, owns the buffers, and keeps the KV cache true: the
// cache holds exactly the tokens `history[0, position)`.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/model.h"
#include "core/sampling.h"
#include "engine/weight_source.h"
#include "plan/table_builder.h"

namespace akunu {

struct EngineOptions {
    std::uint32_t context = 0;  // 0: the model's, at most kDefaultContext
    std::uint32_t chunk = 512;  // rows of a prefill replay
    DType kv_dtype = DType::F16;
};

constexpr std::uint32_t kDefaultContext = 4096;

// Called with (done, total) bytes while loading; throws to abandon.
using Progress = std::function<void(std::uint64_t, std::uint64_t)>;
// Called now and then during long calls; true stops them.
using Poll = std::function<bool()>;

// New tokens of one call.
struct Chunk {
    std::vector<std::uint32_t> ids;
    std::vector<LogprobRecord> logprobs;
    bool ended = false;
};

struct MemoryUse {
    std::uint64_t weights = 0, weights_mapped = 0, kv_cache = 0, scratch = 0;
};

class Engine {
  public:
    Engine(std::unique_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
           const EngineOptions& options, const Progress& progress);

    // Starts a generation; returns how many prompt tokens the cache already holds.
    std::uint32_t begin(std::span<const std::uint32_t> ids, const SamplerState& sampler, bool reuse);
    // Runs one chunk of the prompt; returns the prompt tokens still to run.
    std::uint32_t prefill(bool sample, Chunk& out, const Poll& poll);
    // Runs a chain of up to `n` tokens.
    Chunk decode(std::uint32_t n, const Poll& poll);
    void cancel() { cancelled_ = true; }
    void truncate(std::uint32_t n);
    // Throws unless `ids` are a prompt that this model and its context can take.
    void check_ids(std::span<const std::uint32_t> ids) const;

    // Fresh run over `ids`: `row(i, logits)` is called for each position in order. The cache then holds `ids`.
    void for_each_logits(std::span<const std::uint32_t> ids, const Poll& poll,
                         const std::function<void(std::size_t, std::span<const float>)>& row);

    const DispatchTable& table(const TableKey& key);
    // Seconds of each command of a table, one replay, at `args`. Leaves the cache empty.
    std::vector<double> profile(const TableKey& key, const ReplayArgs& args);

    const ModelConfig& config() const { return config_; }
    const Device& device() const { return *device_; }
    std::uint32_t context() const { return ws_.context; }
    std::uint32_t chunk() const { return ws_.chunk; }
    DType kv_dtype() const { return ws_.kv_dtype; }
    std::uint32_t position() const { return position_; }
    std::span<const std::uint32_t> history() const { return {ws_.history.as<std::uint32_t>(), position_}; }
    MemoryUse memory() const { return memory_; }
    const SamplerState& sampler() const { return *ws_.sampler.as<SamplerState>(); }

  private:
    void load_weights(const Progress& progress);
    void allocate_workspace(const EngineOptions& options);
    Weight load_matmul(const std::string& name, std::uint64_t rows, std::uint64_t cols);
    Vector load_vector(const std::string& name, std::uint64_t n, bool required);
    // The three biases in one buffer, as kNormQkv reads them.
    void load_qkv_bias(const std::string& prefix, LayerWeights& layer);
    void read_vector(const std::string& name, std::uint64_t n, const Binding& to);
    Binding own(std::uint64_t bytes, std::uint64_t MemoryUse::* purpose);
    std::uint32_t run(const TableKey& key, const ReplayArgs& args, const Poll& poll);
    void collect(std::uint32_t first, std::uint32_t n, Chunk& out) const;
    Phase phase_for(std::uint32_t rows) const;

    std::shared_ptr<WeightSource> source_;  // kept while weights are used from the mapping, longer than the device
    std::unique_ptr<Device> device_;
    ModelConfig config_;
    std::vector<DeviceBuffer> owned_;
    ModelWeights weights_;
    Workspace ws_;
    std::map<TableKey, DispatchTable> tables_;
    MemoryUse memory_;
    std::function<void(std::uint64_t)> loaded_;

    std::uint32_t position_ = 0;    // tokens in the cache
    std::uint32_t prompt_end_ = 0;  // history[position_, prompt_end_) is still to be run
    bool pending_ = false;          // history[position_] is a sampled token that may be continued
    Tail tail_ = Tail::kGreedy;
    bool logprobs_ = false;
    std::atomic<bool> cancelled_{false};
};

}  // namespace akunu
