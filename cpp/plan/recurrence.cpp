// A gated recurrence in attention's place, minGRU:
//   x, gate = norm(h)·Wᵀ
//   z = sigmoid(gate); s += z·(x - s), which is the sequence's state
//   h += s·Woᵀ
// No published model has it. It is the smallest block with a state that cannot be truncated, and a state of this size
// could be kept for every position in the pages instead; those of gated delta nets and Mamba-2 cannot.
#include "plan/block.h"

namespace akunu {

namespace {

class RecurrenceBlock final : public Block {
  public:
    RecurrenceBlock(Loader& loader, const BlockPlace& place, const RecurrenceConfig& recurrence)
        : place_(place), n_(recurrence.dim) {
        const u32 dim = place.config.dim;
        norm_ = loader.norm(place.name("recur_norm"), dim);
        x_ = loader.matmul(place.name("recur_x"), n_, dim);
        gate_ = loader.matmul(place.name("recur_gate"), n_, dim);
        output_ = loader.matmul(place.name("recur_output"), dim, n_);
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", place_.config.dim, input_formats(device));
        a.reserve("recur_x", n_);
        a.reserve("recur_gate", n_);
        a.reserve("recur", n_, device.matmul_input(output_.dtype));
    }

    Kept keeps(const Device& /*device*/, const KvTypes& /*types*/) const override {
        return {.bytes = (1 + 2 * kStashRows) * std::uint64_t{n_} * sizeof(float), .owner = Kept::Owner::kSequence};
    }

    void emit(Emitter& e, Phase /*phase*/) const override {
        const Binding &x = e.activations.f32("recur_x"), &gate = e.activations.f32("recur_gate");
        const Act& out = e.activations.act("recur");
        const Act input = e.block_input("recur_norm", place_.layer, norm_, input_formats(e.device) | added_formats(e));
        e.matmul("recur_x", place_.layer, input, x_, x);
        e.matmul("recur_gate", place_.layer, input, gate_, gate);
        e.emit(Op::kRecur, "recur", place_.layer)
            .buffer(x)
            .buffer(gate)
            .buffer(e.step.state.at(place_.index))
            .act(out)
            .buffer(e.step.rows)
            .buffer(e.step.state_spans)
            .buffer(e.step.slots)
            .shape(std::to_string(n_))
            .params(RecurParams{.rows = 0,
                                .step = 0,
                                .dim = n_,
                                .formats = e.input_formats(output_),
                                .state_words = e.step.state_words});
        e.add_to_residual("recur_output", place_.layer, out, output_, {}, {});
    }

  private:
    u32 added_formats(const Emitter& e) const {
        const Weight weights[] = {x_, gate_};
        return e.adapter_formats(weights);
    }
    u32 input_formats(const Device& device) const {
        return device.matmul_input(x_.dtype) | device.matmul_input(gate_.dtype);
    }

    const BlockPlace place_;
    const u32 n_;
    Norm norm_;
    Weight x_, gate_, output_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const RecurrenceConfig& recurrence) {
    return std::make_unique<RecurrenceBlock>(loader, place, recurrence);
}

}  // namespace akunu
