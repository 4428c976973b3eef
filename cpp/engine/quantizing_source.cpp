#include "engine/quantizing_source.h"

#include <utility>

#include "core/error.h"
#include "core/quantize.h"

namespace akunu {

QuantizingSource::QuantizingSource(std::shared_ptr<WeightSource> source, std::map<std::string, DType> types,
                                   int threads)
    : source_(std::move(source)), types_(std::move(types)), threads_(threads) {}

HostTensor QuantizingSource::get(const std::string& name) {
    const HostTensor from = source_->get(name);
    const auto type = types_.find(name);
    if (type == types_.end() || type->second == from.dtype) return from;
    if (!from.factors.empty()) {
        throw UnsupportedError("tensor '" + name +
                               "' is NVFP4 with a scale of its own, which is not converted; convert from " +
                               "the model's F16 or BF16 weights");
    }
    auto& made = made_[name];
    made.resize(from.rows * row_bytes(type->second, from.cols));
    quantize_rows({.tensor = name,
                   .from = from.dtype,
                   .source = from.bytes,
                   .scales = from.scales,
                   .biases = from.biases,
                   .first_row = 0,
                   .rows = from.rows,
                   .columns = from.cols,
                   .to = type->second,
                   .out = made,
                   .importance = {}},
                  threads_);
    return {type->second, from.rows, from.cols, made};
}

void QuantizingSource::done(const std::string& name) {
    made_.erase(name);
    source_->done(name);
}

}  // namespace akunu
