#include "plan/pooling.h"

#include "core/error.h"

namespace akunu {

PoolingHead::PoolingHead(const ModelConfig& config, Loader& loader) : config_(config) {
    std::uint32_t dim = config.dim;
    for (const HeadLayer& layer : config.encoder->head) {
        const std::string name = "head." + std::to_string(layers_.size());
        const bool whole = loader.has(name);
        layers_.push_back({whole ? loader.matmul(name, layer.dim, dim) : loader.stacked(name, layer.dim, dim),
                           loader.optional_vector(name + "_bias", layer.dim),
                           loader.optional_norm(name + "_norm", layer.dim), layer.activation});
        if (layers_.back().norm && layer.dim != config.dim) {
            throw ModelFileError("tensor '" + name + "_norm' has " + std::to_string(layer.dim) +
                                 " elements; only a norm of the model's " + std::to_string(config.dim) +
                                 " is supported");
        }
        dim = layer.dim;
    }
    width_ = dim;
}

void PoolingHead::reserve(const Device& device, Activations& a) const {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        a.reserve(input(i), layers_[i].weight.cols, kActF32 | device.matmul_input(layers_[i].weight.dtype));
    }
}

void PoolingHead::emit(Emitter& e) const {
    const auto raw = [&](std::size_t i) { return i < layers_.size() ? e.activations.f32(input(i)) : e.step.vectors; };
    e.emit(Op::kPool, "pool")
        .buffer(e.activations.f32("hidden"))
        .buffer(e.step.rows)
        .buffer(e.step.logit_rows)
        .buffer(raw(0))
        .shape(std::to_string(config_.dim))
        .params(PoolParams{.rows = 0, .dim = config_.dim, .pooling = config_.encoder->pooling});
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        const Layer& layer = layers_[i];
        const std::string name = "head." + std::to_string(i);
        const Act& x = e.activations.act(input(i));
        if (const std::uint32_t compact = e.input_format(layer.weight) & ~kActF32) {
            const auto dim = static_cast<u32>(layer.weight.cols);
            e.emit(Op::kQuantize, name + "_input")
                .buffer(x.f32)
                .act({{}, x.compact})
                .shape(std::to_string(dim))
                .params(QuantizeParams{.rows = 0, .dim = dim, .formats = compact});
        }
        const Act y{raw(i + 1), {}};
        e.matmul(name, -1, x, layer.weight, y.f32, {.bias = layer.bias});
        const auto n = static_cast<u32>(layer.weight.rows);
        if (layer.activation) e.activate(name + "_act", -1, *layer.activation, rows_in(y.f32, n), {}, y, kActF32);
        if (layer.norm) e.norm(name + "_norm", -1, y.f32, layer.norm, y, kActF32);
    }
}

}  // namespace akunu
