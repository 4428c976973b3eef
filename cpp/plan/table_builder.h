// TableBuilder: the only place that knows what a transformer layer is. It emits every phase from one description.
#pragma once

#include "core/device.h"
#include "core/model.h"

namespace akunu {

enum class Phase : std::uint8_t { kDecode, kBatch, kPrefill };
enum class Head : std::uint8_t { kNone, kLastRow, kAllRows };
enum class Tail : std::uint8_t { kNone, kGreedy, kSampled };

// Which table: everything that decides its commands.
struct TableKey {
    Phase phase = Phase::kDecode;
    Head head = Head::kLastRow;
    Tail tail = Tail::kGreedy;
    bool logprobs = false;
    auto operator<=>(const TableKey&) const = default;
};

// Where an activation lives: as f32, and in the compact format that the device's matmuls read (q8 or f16). Kernels
// write those that their `formats` name.
struct Act {
    Binding f32, compact;
    const Binding& in(std::uint32_t format) const { return format == kActF32 ? f32 : compact; }
};

// Every buffer that a table refers to besides weights. One set serves all layers and phases.
struct Workspace {
    Binding hidden;                         // [rows, dim] f32, the residual stream
    Binding branch;                         // [rows, dim] f32, a block's output before its post norm
    Act input;                              // [rows, dim], normed input of a block
    Binding q, k, v;                        // [rows, q_dim] and [rows, kv_dim] f32, in one buffer
    Binding attn_f32;                       // [rows, q_dim] f32
    Act attn;                               // [rows, q_dim], input of the output projection
    Binding gate, up;                       // [rows, ffn_dim] f32, only where gate and up are not fused
    Act ffn;                                // [rows, ffn_dim], input of the down projection
    Binding partials;                       // split attention
    std::vector<Binding> rope;              // per set: [rows, rope_dim / 2, 2] f32 (cos, sin)
    std::vector<Binding> inv_freq;          // per set
    std::vector<Binding> k_cache, v_cache;  // per layer
    Binding logits;                         // [1, vocab] f32 for Head::kLastRow, [all_rows, vocab] for Head::kAllRows
    Binding scaled;                         // [vocab] f32 and sampling scratch
    Binding history;                        // [context + 1] u32: token at every position
    Binding sampler;                        // SamplerState
    Binding control;                        // Control
    Binding logprobs;                       // LogprobRecord per chain step
    DType kv_dtype = DType::F16;
    std::uint32_t context = 0;
    std::uint32_t chunk = 0;     // rows of a prefill table
    std::uint32_t all_rows = 0;  // rows of a Head::kAllRows table
};

class TableBuilder {
  public:
    TableBuilder(const Device& device, const ModelConfig& config, const ModelWeights& weights,
                 const Workspace& workspace)
        : device_(device), config_(config), weights_(weights), ws_(workspace) {}

    DispatchTable build(const TableKey& key);

    // True when gate and up run as one command, so that `Workspace::gate` and `up` are not needed.
    static bool fuses_gate_up(const LayerWeights& layer);

  private:
    struct Emit;  // one command under construction
    Emit emit(Op op, std::string name, int layer);

    void embed();
    void rope_tables();
    void layer(int index);
    void qkv(int index);
    void norm_qkv(const char* name, int index, const Weight& first, const Binding& y, const Vector& bias, bool barrier,
                  const Weight& key, const Weight& value);
    void attention(int index);
    void feed_forward(int index);
    void head(Head head);
    void tail(Tail tail, bool logprobs);
    void norm(const char* name, int layer, const Binding& x, const Vector& weight, const Act& out,
              std::uint32_t formats, bool last_row);
    void matmul(const char* name, int layer, const Act& x, const Weight& w, const Binding& y, const Vector& bias,
                bool accumulate, bool barrier, float softcap, bool one_row);
    // Adds a block's output projection to the residual stream, through the post norm where there is one.
    void add_to_residual(const char* name, int layer, const Act& x, const Weight& w, const Vector& bias,
                         const Vector& post_norm);
    bool fuses_norms() const;
    std::uint32_t input_format(const Weight& w) const { return device_.matmul_input(w.dtype); }

    const Device& device_;
    const ModelConfig& config_;
    const ModelWeights& weights_;
    const Workspace& ws_;
    DispatchTable table_;
    Phase phase_ = Phase::kDecode;
};

}  // namespace akunu
