#include "bindings/arguments.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace akunu {

// A Python object as an error message quotes it.
std::string quote(const py::handle& object) {
    constexpr std::size_t kMost = 80;
    const auto text = py::reinterpret_steal<py::object>(PyObject_ASCII(object.ptr()));
    if (!text) {  // an integer of too many digits, for example
        PyErr_Clear();
        return std::string("an object of type ") + Py_TYPE(object.ptr())->tp_name;
    }
    std::string s = py::cast<std::string>(text);
    if (s.size() > kMost) s.replace(kMost, std::string::npos, "...");
    return s;
}

namespace {

// A token id from any integer. A negative or fractional one is refused, not wrapped. `what()` begins the message.
template <typename What>
std::uint32_t to_id(const py::handle& item, std::uint32_t vocab, What&& what) {
    const auto integer = py::reinterpret_steal<py::int_>(PyNumber_Index(item.ptr()));
    if (!integer) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
        PyErr_Clear();
        throw InvalidArgumentError(what() + " must be an integer, not " + quote(item));
    }
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
    if (overflow || v < 0 || v > 0xFFFFFFFF) {
        throw InvalidArgumentError(what() + " is " + quote(integer) + ", outside the vocabulary of " +
                                   std::to_string(vocab));
    }
    return static_cast<std::uint32_t>(v);
}

}  // namespace

std::vector<std::uint32_t> to_ids(const py::object& object, std::uint32_t vocab) {
    std::vector<std::uint32_t> ids;
    const auto what = [&] { return "the token id at index " + std::to_string(ids.size()); };
    if (py::isinstance<py::array>(object)) {
        const auto array = py::cast<py::array>(object);
        if (array.ndim() != 1 || (array.dtype().kind() != 'i' && array.dtype().kind() != 'u')) {
            throw InvalidArgumentError("token ids must be a one-dimensional array of integers");
        }
        const auto wide = py::array_t<std::int64_t, py::array::forcecast | py::array::c_style>(array);
        for (py::ssize_t i = 0; i < wide.size(); ++i) {
            const std::int64_t v = wide.data()[i];
            const bool fits = v >= 0 && v <= 0xFFFFFFFF;
            ids.push_back(fits ? static_cast<std::uint32_t>(v) : to_id(array[py::int_(i)], vocab, what));
        }
        return ids;
    }
    for (const py::handle item : object) ids.push_back(to_id(item, vocab, what));
    return ids;
}

py::object field(const py::handle& object, const char* name) {
    return py::isinstance<py::dict>(object) ? py::object(object[name]) : py::object(object.attr(name));
}

KvTypes to_kv_types(const std::string& names) {
    return kv_named(names, [](const std::string& name) {
        const DTypeInfo* kv = find_dtype(name);
        if (!kv) throw UnsupportedError("unknown KV cache type '" + name + "'");
        return kv->id;
    });
}

void set_cuts(SamplerState& s, float top_n_sigma, float xtc_probability, float xtc_threshold, std::int64_t min_keep) {
    s.top_n_sigma =
        checked("top_n_sigma", top_n_sigma, std::isfinite(top_n_sigma) && top_n_sigma >= 0, "a number >= 0");
    s.xtc_probability =
        checked("xtc_probability", xtc_probability, xtc_probability >= 0 && xtc_probability <= 1, "a number in [0, 1]");
    s.xtc_threshold =
        checked("xtc_threshold", xtc_threshold, xtc_threshold >= 0 && xtc_threshold <= 1, "a number in [0, 1]");
    if (s.xtc_threshold > 0.5f) s.xtc_probability = 0;  // no two tokens reach it
    s.min_keep = static_cast<std::uint32_t>(std::min<std::int64_t>(
        checked<std::int64_t>("min_keep", min_keep, min_keep >= 0, "a number >= 0"), 0xFFFFFFFF));
}

void set_dry(SamplerSettings& settings, float multiplier, float base, std::int64_t allowed_length,
             std::int64_t penalty_last_n, const py::object& breakers, std::uint32_t vocab) {
    SamplerState& s = settings.state;
    s.dry_multiplier = checked("dry_multiplier", multiplier, std::isfinite(multiplier), "a finite number");
    s.dry_base = checked("dry_base", base, std::isfinite(base) && base >= 0, "a number >= 0");
    checked<std::int64_t>("dry_allowed_length", allowed_length, allowed_length >= 0 && allowed_length <= 0xFFFFFFFF,
                          "a number >= 0");
    s.dry_allowed = static_cast<std::uint32_t>(allowed_length);
    checked<std::int64_t>("dry_penalty_last_n", penalty_last_n, penalty_last_n >= -1, "-1 (the whole context) or more");
    s.dry_window = penalty_last_n < 0 ? 0xFFFFFFFFu
                                      : static_cast<std::uint32_t>(std::min<std::int64_t>(penalty_last_n, 0xFFFFFFFF));
    if (base < 1) s.dry_multiplier = 0;
    // Beyond it a power overflows; where the base is 1 all powers are equal.
    constexpr double kLogOfLargest = 88.7228391, kSmallestBase = 1.000001;
    const double longest = base > static_cast<float>(kSmallestBase)
                               ? std::floor(kLogOfLargest / std::log(static_cast<double>(base)))
                               : (base == 1 ? 0.0 : 4294967295.0);
    s.dry_longest = static_cast<std::uint32_t>(std::min(static_cast<double>(allowed_length) + longest, 4294967295.0));
    if (breakers.is_none() || s.dry_multiplier == 0) return;
    const auto words = py::cast<py::array_t<std::uint32_t, py::array::c_style>>(breakers);
    const auto n = static_cast<std::uint64_t>(words.size());
    if (n < kBreakerBytesAt || n > breaker_words(vocab)) {
        throw InvalidArgumentError("dry_breakers have " + std::to_string(n) + " words, expected at most " +
                                   std::to_string(breaker_words(vocab)));
    }
    s.has_dry_breakers = 1;
    settings.breakers.assign(words.data(), words.data() + n);
    settings.breakers.resize(breaker_words(vocab));
}

SamplerSettings to_sampler(float temperature, std::int64_t top_k, float top_p, float min_p, float typical_p,
                           float repeat_penalty, float presence_penalty, float frequency_penalty,
                           std::int64_t penalty_window, const py::object& logit_bias, std::uint64_t seed, int logprobs,
                           const py::object& end_ids, std::uint32_t vocab) {
    const auto finite = [](float v) { return std::isfinite(v); };
    SamplerSettings settings;
    SamplerState& s = settings.state;
    s.temperature = checked("temperature", temperature, finite(temperature) && temperature >= 0, "a number >= 0");
    s.top_k = static_cast<std::uint32_t>(std::min<std::int64_t>(
        checked<std::int64_t>("top_k", top_k, top_k >= 0, "a number >= 0 (0: off)"), 0xFFFFFFFF));
    s.top_p = checked("top_p", top_p, top_p > 0 && top_p <= 1, "a number in (0, 1]");
    s.min_p = checked("min_p", min_p, min_p >= 0 && min_p <= 1, "a number in [0, 1]");
    s.typical_p = checked("typical_p", typical_p, typical_p > 0 && typical_p <= 1, "a number in (0, 1]");
    s.repeat_penalty =
        checked("repeat_penalty", repeat_penalty, finite(repeat_penalty) && repeat_penalty > 0, "a number > 0");
    s.presence_penalty = checked("presence_penalty", presence_penalty, finite(presence_penalty), "a finite number");
    s.frequency_penalty = checked("frequency_penalty", frequency_penalty, finite(frequency_penalty), "a finite number");
    checked<std::int64_t>("penalty_window", penalty_window, penalty_window >= -1, "-1 (the whole context) or more");
    s.penalty_window = penalty_window < 0
                           ? 0xFFFFFFFFu
                           : static_cast<std::uint32_t>(std::min<std::int64_t>(penalty_window, 0xFFFFFFFF));
    s.seed_lo = static_cast<std::uint32_t>(seed);
    s.seed_hi = static_cast<std::uint32_t>(seed >> 32);
    const std::string counts = "-1.." + std::to_string(kMaxLogprobs);
    checked("logprobs", logprobs, logprobs >= -1 && logprobs <= static_cast<int>(kMaxLogprobs), counts.c_str());
    s.want_logprobs = logprobs >= 0;
    s.n_logprobs = static_cast<std::uint32_t>(std::max(logprobs, 0));
    for (const py::handle item : end_ids) {
        if (s.n_end_ids == kMaxEndIds) {
            throw InvalidArgumentError("more than " + std::to_string(kMaxEndIds) + " end-of-generation ids");
        }
        s.end_ids[s.n_end_ids++] = to_id(item, vocab, [] { return std::string("an id of end_ids"); });
    }
    if (logit_bias.is_none()) return settings;
    for (const auto& [key, value] : py::dict(logit_bias)) {
        const std::uint32_t id = to_id(key, vocab, [] { return std::string("a token id of logit_bias"); });
        if (id >= vocab) {
            throw InvalidArgumentError("a token id of logit_bias is " + std::to_string(id) +
                                       ", outside the vocabulary of " + std::to_string(vocab));
        }
        const auto bias = static_cast<float>(PyFloat_AsDouble(value.ptr()));
        if (PyErr_Occurred()) {
            PyErr_Clear();
            throw InvalidArgumentError("logit_bias of token " + std::to_string(id) + " is " + quote(value) +
                                       ", expected a number or -inf");
        }
        if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity()) {
            throw InvalidArgumentError("logit_bias of token " + std::to_string(id) + " must be a number or -inf");
        }
        if (settings.bias.size() == kMaxLogitBias) {
            throw InvalidArgumentError("logit_bias has more than " + std::to_string(kMaxLogitBias) + " entries");
        }
        settings.bias.push_back({id, bias});
    }
    return settings;
}

}  // namespace akunu
