// What a layer makes of its part p of the layer inputs (see LayerInputsConfig):
//   h += norm((act(h·Wgᵀ) * p)·Wpᵀ)
// Where there are several residual streams, it is added to all but the first.
#include "core/error.h"
#include "plan/block.h"
#include "plan/streams.h"

namespace akunu {

namespace {

class LayerInputBlock final : public Block {
  public:
    LayerInputBlock(Loader& loader, const BlockPlace& place, const LayerInputConfig& config)
        : place_(place),
          config_(config),
          inputs_(place.config.layer_inputs.value()),
          gate_(loader.matmul(place.name("layer_input_gate"), inputs_.dim, place.config.dim)),
          output_(loader.matmul(place.name("layer_input_output"), place.config.dim, inputs_.dim)),
          norms_(place.output_norms(loader, "post_layer_input_norm", "layer_input_output_norm")) {
        if (place.config.streams && (!norms_.branch || norms_.sum || norms_.scale != 1)) {
            throw InvalidArgumentError("layer " + std::to_string(place.layer) +
                                       ": what is added to several residual streams needs a norm of its own alone");
        }
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", place_.config.dim, device.matmul_input(gate_.dtype));
        a.reserve("layer_input_gate", inputs_.dim);
        a.reserve("layer_input", inputs_.dim, device.matmul_input(output_.dtype));
        if (norms_.branch) a.reserve("branch", place_.config.dim);
    }

    void emit(Emitter& e, Phase /*phase*/) const override {
        const Act input = e.block_input("layer_input", place_.layer, {}, e.input_format(gate_));
        const Binding &gate = e.activations.f32("layer_input_gate"), &all = e.activations.f32("layer_inputs");
        e.matmul("layer_input_gate", place_.layer, input, gate_, gate);
        const Act part = rows_in(all, inputs_.count * inputs_.dim).columns(config_.index * inputs_.dim, inputs_.dim);
        const Act& out = e.activations.act("layer_input");
        e.activate("layer_input_act", place_.layer, config_.activation, rows_in(gate, inputs_.dim), part, out,
                   e.input_formats(output_));
        const auto& streams = place_.config.streams;
        if (!streams) return e.add_to_residual("layer_input_output", place_.layer, out, output_, {}, norms_);
        const Binding& branch = e.activations.f32("branch");
        e.matmul("layer_input_output", place_.layer, out, output_, branch);
        for (std::uint32_t i = 1; i < streams->count; ++i) {
            e.add_normed("layer_input_post_norm", place_.layer, branch, norms_.branch, Streams::stream(e, i));
        }
    }

  private:
    const BlockPlace place_;
    const LayerInputConfig config_;
    const LayerInputsConfig inputs_;
    Weight gate_, output_;
    Emitter::OutputNorms norms_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const LayerInputConfig& input) {
    return std::make_unique<LayerInputBlock>(loader, place, input);
}

}  // namespace akunu
