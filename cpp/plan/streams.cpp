#include "plan/streams.h"

namespace akunu {

namespace {

constexpr float kLeastSquare = 1e-5f;  // as which the mean square of a stream counts

}  // namespace

Streams::Streams(const ModelConfig& config, Loader& loader) : config_(config) {
    const std::uint64_t dim = config.dim, more = config.streams->count - 1;
    for (std::uint64_t i = 0; i < more; ++i) {
        in_.push_back(loader.part_of_rows("streams_in", more * dim, dim, i * dim, dim));
        out_.push_back(loader.part_of_rows("streams_out", more * dim, dim, i * dim, dim));
    }
}

void Streams::reserve(const Device& device, Activations& a) const {
    a.reserve("streams", config_.dim, kActF32, config_.streams->count);
    a.reserve("branch", config_.dim);
    for (const auto* weights : {&in_, &out_}) {
        for (const Weight& w : *weights) a.reserve("input", config_.dim, device.matmul_input(w.dtype));
    }
}

void Streams::begin(Emitter& e) const {
    const Binding &hidden = e.hidden(), &branch = e.activations.f32("branch");
    e.add_rows("streams_first", -1, hidden, stream(e, 0), {});
    std::uint32_t formats = 0;
    for (const Weight& w : in_) formats |= e.input_format(w);
    if (in_.empty()) return;
    const Act input = e.block_input("streams_input", -1, {}, formats);
    for (std::uint32_t i = 0; i < in_.size(); ++i) {
        e.matmul("streams_in", -1, input, in_[i], branch);
        e.add_rows("streams_begin", -1, branch, stream(e, i + 1), {.like = hidden, .floor = kLeastSquare});
    }
}

void Streams::end(Emitter& e) const {
    const Binding &hidden = e.hidden(), &branch = e.activations.f32("branch");
    const float share = 1.0f / static_cast<float>(config_.streams->count);
    e.add_rows("streams_first", -1, stream(e, 0), hidden, {.scale = share});
    for (std::uint32_t i = 0; i < out_.size(); ++i) {
        const Act input{stream(e, i + 1), e.activations.act("input").compact};
        const std::uint32_t format = e.input_format(out_[i]);
        if (format != kActF32) e.quantize("streams_output", -1, input, config_.dim, format);
        e.matmul("streams_out", -1, input, out_[i], branch);
        e.add_rows("streams_end", -1, branch, hidden,
                   {.like = stream(e, 0), .accumulate = true, .scale = share, .floor = kLeastSquare});
    }
}

}  // namespace akunu
