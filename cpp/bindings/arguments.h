// Python arguments as the engine takes them. What only Python can get wrong is refused here, with the value quoted.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/model.h"
#include "engine/engine.h"

namespace akunu {

namespace py = pybind11;

// Token ids from a list or an array of integers. Those that are too large for the vocabulary are left to
// Engine::check_ids, where they fit 32 bits.
std::vector<std::uint32_t> to_ids(const py::object& object, std::uint32_t vocab);

// A field of a dataclass or of a mapping.
py::object field(const py::handle& object, const char* name);

// A Python object as an error message quotes it.
std::string quote(const py::handle& object);

// The configuration of a model from `akunu.config.ModelConfig`, or from a mapping with its names. What plain decoders
// do not have may be left out. Throws InvalidArgumentError, which names the field.
ModelConfig to_config(const py::object& config);

// The types of the KV cache: one name, or that of keys and that of values, with a comma between. Throws
// UnsupportedError for a name that is none of a type.
KvTypes to_kv_types(const std::string& names);

template <typename T>
T checked(const char* name, T value, bool ok, const char* expected) {
    if (!ok) {
        throw InvalidArgumentError(std::string(name) + " is " + std::to_string(value) + ", expected " + expected);
    }
    return value;
}

SamplerSettings to_sampler(float temperature, std::int64_t top_k, float top_p, float min_p, float typical_p,
                           float repeat_penalty, float presence_penalty, float frequency_penalty,
                           std::int64_t penalty_window, const py::object& logit_bias, std::uint64_t seed, int logprobs,
                           const py::object& end_ids, std::uint32_t vocab);
void set_cuts(SamplerState& s, float top_n_sigma, float xtc_probability, float xtc_threshold, std::int64_t min_keep);
// DRY; `breakers` are None or the words of a slot's sequence breakers, of the first tokens at least.
void set_dry(SamplerSettings& settings, float multiplier, float base, std::int64_t allowed_length,
             std::int64_t penalty_last_n, const py::object& breakers, std::uint32_t vocab);

}  // namespace akunu
