// A model on several GPUs of a host.
#pragma once

#include "core/model.h"

namespace akunu {

// What each of so many GPUs has of a model, as a model of its own. Attention is split by heads of keys, feed-forwards
// by their inner elements; the GPUs' results are added up (kAllReduce). All else is whole on each of them, and each
// computes it: heads and elements that do not come out even, too. Throws UnsupportedError where nothing can be split,
// or where the model is no decoder of text.
ModelConfig spread(ModelConfig config, std::uint32_t cards);

}  // namespace akunu
