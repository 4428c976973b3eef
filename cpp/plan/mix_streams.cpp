// What a layer makes of the residual streams (see plan/streams.h), before its other blocks and behind them, with
// t = tanh(R·norm(x)):
//   of the active one, x = S_a: S_j += Σ_i (P·t)_ji·S_i; h = S_a
//   or, of what the layer made of it, x = h: S_j += (1 + (C·t)_j)·(h - S_a); h = S_a, times a scale of each element
#include "core/error.h"
#include "plan/block.h"
#include "plan/streams.h"

namespace akunu {

namespace {

class MixStreamsBlock final : public Block {
  public:
    MixStreamsBlock(Loader& loader, const BlockPlace& place, const MixStreamsConfig& mix)
        : place_(place), correct_(mix.correct), streams_(place.config.streams.value()) {
        const std::uint64_t dim = place.config.dim, n = streams_.count;
        norm_ = loader.norm(place.name("streams_norm"), dim, 1.0f / static_cast<float>(dim));
        router_ = loader.wide(place.name("streams_router"), n, dim);
        if (correct_) {
            weights_ = loader.vector(place.name("streams_correct"), n * n);
            scales_ = loader.optional_vector(place.name("streams_scale"), dim);
        } else {
            weights_ = loader.vector(place.name("streams_predict"), n * n * n);
        }
    }

    void reserve(const Device& device, Activations& a, std::uint32_t /*context*/) const override {
        a.reserve("input", place_.config.dim, device.matmul_input(router_.dtype));
        a.reserve("streams_gates", streams_.count);
    }

    void emit(Emitter& e, Phase /*phase*/) const override {
        const Act& input = e.activations.act("input");
        const Binding& gates = e.activations.f32("streams_gates");
        const Binding x = correct_ ? e.hidden() : Streams::stream(e, streams_.active);
        e.norm("streams_norm", place_.layer, x, norm_, input, e.input_format(router_));
        e.matmul("streams_router", place_.layer, input, router_, gates);
        e.emit(Op::kMixStreams, correct_ ? "streams_correct" : "streams_predict", place_.layer)
            .buffer(Streams::all(e))
            .buffer(e.hidden())
            .buffer(gates)
            .buffer(weights_)
            .buffer(scales_)
            .shape(shape_of(streams_.count, place_.config.dim))
            .params(MixStreamsParams{.rows = 0,
                                     .dim = place_.config.dim,
                                     .streams = streams_.count,
                                     .stride = static_cast<u32>(Streams::stride(e)),
                                     .active = streams_.active,
                                     .correct = correct_,
                                     .scaled = bool(scales_)});
    }

  private:
    const BlockPlace place_;
    const bool correct_;
    const StreamsConfig streams_;
    Norm norm_;
    Weight router_;
    Vector weights_, scales_;
};

}  // namespace

std::unique_ptr<Block> load_block(Loader& loader, const BlockPlace& place, const MixStreamsConfig& mix) {
    return std::make_unique<MixStreamsBlock>(loader, place, mix);
}

}  // namespace akunu
