// Where an engine's weights come from, as Python describes it.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "engine/weight_source.h"
#include "formats/tensor_files.h"

namespace akunu {

// `tensors` maps canonical names to akunu.config.TensorRef. Without files, `synthetic` maps them to dtypes and the
// weights are random, or, `planned`, zeros that take no memory. `check`: as of FileSource.
std::shared_ptr<WeightSource> to_source(std::shared_ptr<const TensorFiles> files, const pybind11::object& tensors,
                                        const pybind11::object& synthetic, bool planned, bool check);

// A source whose weights that `types` names (canonical name to type) are quantised when they are loaded.
std::shared_ptr<WeightSource> quantized(std::shared_ptr<WeightSource> source, const pybind11::object& types,
                                        int threads);

}  // namespace akunu
