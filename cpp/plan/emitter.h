// Emitter: appends commands to a table. Everything that follows from an op's row in kOps is done here: patches, costs,
// barriers.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/model.h"
#include "plan/activations.h"
#include "plan/adapters.h"
#include "plan/step.h"

namespace akunu {

// kAligned is a prefill that also gives weights of cross-attention; kEncoded one with rows that an encoder made.
enum class Phase : std::uint8_t { kDecode, kBatch, kPrefill, kAligned, kEncoded };

// What blocks are planned for.
struct PlanContext {
    const Device& device;
    const ModelConfig& config;
    const Activations& activations;
    const StepBuffers& step;
    const char* stream = "hidden";          // the activation that is the residual stream
    const AdapterPlan* adapters = nullptr;  // of tables for sequences with adapters

    const Binding& hidden() const { return activations.f32(stream); }
    std::uint32_t input_format(const Weight& w) const { return input_format(device, w); }
    // What is brought within bounds is read as f32.
    static std::uint32_t input_format(const Device& device, const Weight& w) {
        return w.bounded() ? std::uint32_t{kActF32} : device.matmul_input(w.dtype);
    }
    // Whether the products with the weight are added to.
    bool adapts(const Weight& w) const { return adapters && adapters->max_rank(w) != 0; }
    // Whether what adapters add is part of the matmul, so that it stands right behind it.
    bool joins_addition(const Weight& w, std::uint32_t rows) const {
        const DeviceTraits& traits = device.traits();
        return rows <= traits.max_batch_rows && adapts(w) &&
               std::ranges::find(traits.adapted_matmuls, w.dtype) != traits.adapted_matmuls.end();
    }
    // What an adapter's product reads: F16 where the weight's does.
    std::uint32_t adapter_format(const Weight& w) const { return input_format(w) == kActF16 ? kActF16 : kActF32; }
    std::uint32_t input_formats(const Weight& w) const { return input_format(w) | adapter_formats({&w, 1}); }
    std::uint32_t adapter_formats(std::span<const Weight> weights) const {
        std::uint32_t formats = 0;
        for (const Weight& w : weights) {
            if (adapts(w)) formats |= adapter_format(w);
        }
        return formats;
    }
    // Whether kNormQkv and kNormGateUp do what a norm and matmuls do: they have RMS norms.
    bool fuses_norms() const { return device.traits().fused_norms && !config.layer_norm; }
};

class Emitter : public PlanContext {
  public:
    // Rows of its commands follow `rows`: all of a step's, or those with logits.
    Emitter(const PlanContext& context, std::string phase, std::uint32_t max_rows, PatchSource rows);

    // One command under construction: buffers in the order of the op's row.
    class Command {
      public:
        Command(Emitter& emitter, std::size_t index) : emitter_(emitter), index_(index) {}
        Command& buffer(const Binding& b);
        Command& weight(const Weight& w);
        Command& planes(const Weight& w);  // the others of a planar type; other weights have none to bind
        Command& input(const Act& x, std::uint32_t format);
        Command& act(const Act& out) { return buffer(out.f32).buffer(out.compact); }
        Command& kv(const KvTypes& types);
        Command& shape(std::string text);
        // It writes, or reads, the partial results of a split, of Device::attention_partial_bytes.
        Command& partials(std::uint32_t n_heads, std::uint32_t head_dim);
        // Its rows are always so many.
        Command& fixed_rows(std::uint32_t n);
        // Each row of the step is so many of its rows.
        Command& times(std::uint32_t n);
        // Sets the parameters and their patches; the last call.
        template <typename P>
        void params(const P& p) {
            cmd().set_params(p);
            finish();
        }

      private:
        DispatchCmd& cmd() { return emitter_.table_.commands[index_]; }
        CommandLabel& label() { return emitter_.table_.labels[index_]; }
        void finish();
        Emitter& emitter_;
        std::size_t index_;
        std::size_t left_out_ = 0;  // of the row's buffers
        std::uint32_t partial_heads_ = 0, partial_head_dim_ = 0, fixed_rows_ = 0;
        std::uint16_t times_ = 1;
    };
    Command emit(Op op, std::string name, int layer = -1);
    // What the rows of the commands that follow are, and how many at most, where they are others than the table's.
    void follow(PatchSource rows, std::uint32_t max_rows) {
        rows_ = rows;
        max_rows_ = max_rows;
    }

    // The rows of the commands that follow are at the same positions in every step of a chain.
    void stand_still() { stands_still_ = true; }

    // out = norm(x), in `formats`, of rows of the residual stream's size. Where `gathered`, of the rows with logits.
    void norm(std::string name, int layer, const Binding& x, const Norm& norm, const Act& out, std::uint32_t formats,
              bool gathered = false);
    // A LayerNorm of rows of any size. Epsilon is the model's, where it is not given.
    void layer_norm(std::string name, int layer, const Binding& x, const Norm& norm, const Act& out, std::uint32_t dim,
                    std::uint32_t formats, bool gathered = false, std::optional<float> eps = {});
    // out = x / rms(x) * weight, of rows of any size and number, one behind the other.
    struct RmsNormOptions {
        float eps = 0;
        std::uint32_t formats = kActF32;
        bool gathered = false;
    };
    void rms_norm(std::string name, int layer, const Act& x, const Vector& weight, const Act& out,
                  const RmsNormOptions& options);
    // y = norm(x)·Wᵀ (+ bias) of one row, for up to three weights, none of them planar: where the results of the second
    // and the third go is said in floats from y on. The norm is not stored.
    struct NormedMatmuls {
        Binding x;
        Vector norm;
        float eps;
        const Weight *first, *key = nullptr, *value = nullptr;
        u32 key_offset = 0, value_offset = 0;
        Vector bias = {};
    };
    void norm_matmuls(std::string name, int layer, const NormedMatmuls& of, const Binding& y);
    // What a block's matmuls read, in `formats`: the norm of the residual stream, or, without one, the stream itself.
    Act block_input(std::string name, int layer, const Norm& norm, std::uint32_t formats);
    // Chooses `used` of so many experts by a row's logits, with the weights that the router gives them.
    struct Routed {
        Binding ids, weights;
        Vector choice_bias, expert_scale;
    };
    void route(std::string name, int layer, const Binding& logits, std::uint64_t experts, std::uint32_t used,
               const RouterConfig& router, const Routed& routed);
    // out = act(x)·up, or act(x) alone, in `formats`; rows of `up` may be parts of longer ones. `fixed_rows`: n > 0:
    // always so many.
    void activate(std::string name, int layer, Activation activation, const Act& x, const Act& up, const Act& out,
                  std::uint32_t formats, std::uint32_t fixed_rows = 0);
    // out = act(x·Wgᵀ + bg) * (x·Wuᵀ + bu), in `formats`.
    struct Gated {
        Weight gate, up;
        Vector gate_bias, up_bias;
        // Whether it is one command; else the products are in the activations "gate" and "up".
        bool fuses() const;
    };
    // The same of one row's norm, where it is one command.
    void norm_gated(const std::string& name, int layer, Activation activation, const Norm& norm, const Gated& weights,
                    const Act& out, std::uint32_t formats);
    // With `deviations` of the first product, which are kept of SparsifyParams.
    void gated(const std::string& name, int layer, Activation activation, const Act& x, const Gated& weights,
               const Act& out, std::uint32_t formats, std::optional<float> deviations = {});
    // out = scale·table[id] of each row's token, which `ids` has; added to what is there where `accumulate`. `rows`:
    // Row of each row, where it has another one than in the step.
    struct EmbedOptions {
        u32 dim = 0, vocab = 0;
        float scale = 1;
        bool accumulate = false;
        Binding rows = {};
    };
    void embed(std::string name, const Binding& ids, const Weight& table, const Binding& out, const std::string& shape,
               const EmbedOptions& options);
    // The compact format of an activation's f32.
    void quantize(std::string name, int layer, const Act& x, u32 dim, std::uint32_t format);
    // What attention reads.
    struct AttentionInputs {
        Binding q, kv, rows, pages;
        Vector sinks = {};
        Binding ends = {};
        std::uint32_t formats = 0;  // of attn, besides those of its parameters
    };
    // attn = softmax(scale·q·Kᵀ)·V, in `params.formats`.
    void attention(const std::string& name, int layer, Phase phase, const AttentionInputs& in,
                   const AttentionParams& params);
    // y = min(max(x·scale + bias, low), high), of each column.
    void affine(std::string name, int layer, const Binding& x, const Vector& scale, const Vector& bias,
                const Binding& y, u32 dim, const Bounds& bounds);
    // y = x·Wᵀ (+ bias) (+ y). With a weight that has bounds it is x·Wᵀ (+ bias) alone.
    struct MatmulOptions {
        Vector bias = {};
        bool accumulate = false;
        float softcap = 0;
        std::optional<Activation> activation = {};
        std::uint32_t format = kActF32;  // of y
        std::uint32_t fixed_rows = 0;    // n > 0: always so many
        std::uint32_t y_stride = 0;      // floats between two rows of y; 0: as many as it has
        bool gathered = false;           // its rows are those with logits
    };
    void matmul(std::string name, int layer, const Act& x, const Weight& w, const Binding& y,
                const MatmulOptions& options);
    void matmul(std::string name, int layer, const Act& x, const Weight& w, const Binding& y) {
        matmul(std::move(name), layer, x, w, y, MatmulOptions{});
    }
    // What such a product needs between its commands.
    static void reserve_bounded(const Device& device, Activations& activations,
                                std::initializer_list<const Weight*> weights);
    // Norms behind a block: of what it adds to the residual stream, and of the sum, which `scale` is a factor of.
    struct OutputNorms {
        Vector branch;
        Norm sum;
        float scale = 1;
    };
    // y = (y + norm(x))·scale, of rows of the residual stream's size.
    void add_normed(std::string name, int layer, const Binding& x, const Vector& weight, const Binding& y,
                    float scale = 1);
    // y (+)= scale·x, of rows of the residual stream's size, or scale·x·rms(like) / rms(x), of an rms² of at least
    // `floor`.
    struct AddRowsOptions {
        Binding like = {};
        bool accumulate = false;
        float scale = 1;
        float floor = 0;
    };
    void add_rows(std::string name, int layer, const Binding& x, const Binding& y, const AddRowsOptions& options);
    // Adds a block's output projection to the residual stream. `reduces`: each of several GPUs has made a part of it,
    // which is in the activation "partial_sums".
    void add_to_residual(const std::string& name, int layer, const Act& x, const Weight& w, const Vector& bias,
                         const OutputNorms& norms, bool reduces = false);
    // y (+)= the sum of what all GPUs have made of x, each of `dim` elements.
    void all_reduce(std::string name, int layer, const Binding& x, const Binding& y, u32 dim, bool accumulate);

    std::uint32_t max_rows() const { return max_rows_; }
    // The table, with its barriers.
    DispatchTable take();

  private:
    void bounded_matmul(const std::string& name, int layer, const Act& x, const Weight& w, const Binding& y,
                        const MatmulOptions& options);

    // What adapters add to a matmul's rows. It is emitted behind the matmuls that follow, so that they need not wait,
    // or right behind that matmul where the device makes one command of both.
    struct Addition {
        std::string name;
        int layer;
        Binding t, y;
        LoraParams params;
        AdapterPlan::Layer part;
    };
    void begin_addition(const std::string& name, int layer, const Act& x, const Weight& w, const Binding& y,
                        const MatmulOptions& options);
    void emit_addition(Op op, const std::string& name, int layer, const Binding& from, const Binding& to,
                       const LoraParams& params, const AdapterPlan::Layer& part);
    void emit_additions();

    std::vector<Addition> additions_;
    std::size_t scratch_ = 0;  // of AdapterPlan, that the next one has: neighbours do not wait for each other
    DispatchTable table_;
    PatchSource rows_;
    std::uint32_t max_rows_;
    bool stands_still_ = false;
};

// The activation that holds the cosines and sines of a rope set, for the positions of a step's rows.
std::string rope_table_name(std::size_t set);

std::string shape_of(std::uint64_t rows, std::uint64_t cols);

}  // namespace akunu
