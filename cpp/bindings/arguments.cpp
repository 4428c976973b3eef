#include "bindings/arguments.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace akunu {

namespace {

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

namespace {

template <typename T>
struct Named {
    const char* name;
    T value;
};
constexpr Named<Activation> kActivations[] = {
    {"silu", kActSilu}, {"gelu_tanh", kActGeluTanh}, {"gelu", kActGelu}, {"tanh", kActTanh}, {"relu", kActRelu}};
constexpr Named<RopeStyle> kRopeStyles[] = {{"interleaved", kRopeInterleaved}, {"half", kRopeHalf}};
constexpr Named<Pooling> kPoolings[] = {{"mean", kPoolMean}, {"cls", kPoolFirst}, {"last", kPoolLast}};

template <typename T, std::size_t N>
T named(const Named<T> (&table)[N], const char* what, const std::string& name) {
    std::string known;
    for (const auto& row : table) {
        if (name == row.name) return row.value;
        known += (known.empty() ? "" : ", ") + std::string(row.name);
    }
    throw InvalidArgumentError(std::string(what) + " is '" + name + "', expected one of " + known);
}

Activation to_activation(const std::string& name) { return named(kActivations, "activation", name); }

// The field of that name, or None: plain decoders need not have what only encoders do.
py::object optional_field(const py::object& c, const char* name) {
    if (py::isinstance<py::dict>(c)) return py::dict(c).contains(name) ? field(c, name) : py::none();
    return py::getattr(c, name, py::none());
}

std::optional<EncoderConfig> to_encoder(const py::object& c) {
    if (c.is_none()) return std::nullopt;
    EncoderConfig e;
    e.pooling = named(kPoolings, "pooling", py::cast<std::string>(field(c, "pooling")));
    for (const py::handle item : field(c, "head")) {
        const auto [dim, activation] = py::cast<std::pair<std::uint32_t, std::string>>(item);
        HeadLayer layer{dim, {}};
        if (!activation.empty()) layer.activation = to_activation(activation);
        e.head.push_back(layer);
    }
    return e;
}

std::optional<AudioConfig> to_audio(const py::object& c) {
    if (c.is_none()) return std::nullopt;
    return AudioConfig{py::cast<std::uint32_t>(field(c, "mels")), py::cast<bool>(field(c, "taps_last"))};
}

std::optional<CrossConfig> to_cross(const py::object& c) {
    if (c.is_none()) return std::nullopt;
    return CrossConfig{py::cast<std::uint32_t>(field(c, "positions")),
                       py::cast<std::vector<std::vector<std::uint32_t>>>(field(c, "aligned"))};
}

}  // namespace

ModelConfig to_config(const py::object& c) {
    ModelConfig m;
    const auto check = [](bool ok, const std::string& name, std::uint64_t value, const std::string& expected) {
        if (!ok) throw InvalidArgumentError(name + " is " + std::to_string(value) + ", expected " + expected);
    };
    const auto get = [&]<typename T>(const char* name, T, const char* expected) {
        const py::object value = field(c, name);
        try {
            return py::cast<T>(value);
        } catch (const py::cast_error&) {
            throw InvalidArgumentError(std::string(name) + " is " + quote(value) + ", expected " + expected);
        }
    };
    const auto u = [&](const char* name) { return get(name, std::uint32_t{}, "an integer of 0..4294967295"); };
    const auto f = [&](const char* name) { return get(name, float{}, "a number"); };
    const auto list = [&](const char* name) { return get(name, std::vector<std::uint32_t>{}, "integers"); };
    const auto text = [&](const char* name) { return get(name, std::string{}, "a string"); };
    m.dim = u("dim");
    m.vocab_size = u("vocab_size");
    m.context_length = u("context_length");
    m.norm_eps = f("norm_eps");
    m.rope_dim = u("rope_dim");
    m.rope_style = named(kRopeStyles, "rope_style", text("rope_style"));
    m.activation = to_activation(text("activation"));
    m.attn_softcap = f("attn_softcap");
    m.final_softcap = f("final_softcap");
    m.attn_scale = f("attn_scale");
    m.embedding_scale = f("embedding_scale");
    const auto flag = [&](const char* name) {
        const py::object value = optional_field(c, name);
        return !value.is_none() && py::cast<bool>(value);
    };
    m.layer_norm = flag("layer_norm");
    m.bidirectional = flag("bidirectional");
    const auto size = [&](const char* name) {
        const py::object value = optional_field(c, name);
        return value.is_none() ? 0u : py::cast<std::uint32_t>(value);
    };
    m.positions = size("positions");
    m.kinds = size("kinds");
    m.encoder = to_encoder(optional_field(c, "encoder"));
    m.audio = to_audio(optional_field(c, "audio"));
    m.cross = to_cross(optional_field(c, "cross"));
    // What all layers share is a number, what differs a list.
    m.layers.resize(u("n_layers"));
    const auto of_layers = [&](const char* name, std::uint32_t LayerConfig::* member) {
        const py::object value = field(c, name);
        if (py::isinstance<py::int_>(value)) {
            for (LayerConfig& l : m.layers) l.*member = u(name);
            return;
        }
        const auto values = list(name);
        check(values.size() == m.layers.size(), std::string("the length of ") + name, values.size(),
              "n_layers, " + std::to_string(m.layers.size()));
        for (std::size_t i = 0; i < values.size(); ++i) m.layers[i].*member = values[i];
    };
    of_layers("n_heads", &LayerConfig::n_heads);
    of_layers("n_kv_heads", &LayerConfig::n_kv_heads);
    of_layers("head_dim", &LayerConfig::head_dim);
    of_layers("ffn_dim", &LayerConfig::ffn_dim);
    of_layers("layer_window", &LayerConfig::window);
    of_layers("layer_rope", &LayerConfig::rope);
    if (!optional_field(c, "recurrent_dim").is_none()) of_layers("recurrent_dim", &LayerConfig::recurrent_dim);
    check(m.dim > 0, "dim", m.dim, "at least 1");
    check(m.vocab_size > 0, "vocab_size", m.vocab_size, "at least 1");
    for (const LayerConfig& l : m.layers) {
        check(l.n_kv_heads > 0, "n_kv_heads", l.n_kv_heads, "at least 1");
        check(l.n_heads % l.n_kv_heads == 0, "n_heads", l.n_heads,
              "a multiple of n_kv_heads, " + std::to_string(l.n_kv_heads));
        check(m.rope_dim <= l.head_dim, "rope_dim", m.rope_dim, "at most head_dim, " + std::to_string(l.head_dim));
    }
    const auto inv_freq = py::cast<py::array_t<float, py::array::forcecast | py::array::c_style>>(field(c, "inv_freq"));
    if (inv_freq.ndim() != 2 || inv_freq.shape(1) != m.rope_dim / 2) {
        throw InvalidArgumentError("inv_freq has the shape " + quote(inv_freq.attr("shape")) +
                                   ", expected [sets, rope_dim / 2], with rope_dim " + std::to_string(m.rope_dim));
    }
    const auto scales = get("rope_scale", std::vector<float>{}, "numbers");
    check(scales.size() == static_cast<std::size_t>(inv_freq.shape(0)), "the length of rope_scale", scales.size(),
          "the sets of inv_freq, " + std::to_string(inv_freq.shape(0)));
    for (py::ssize_t i = 0; i < inv_freq.shape(0); ++i) {
        const float* row = inv_freq.data() + i * inv_freq.shape(1);
        m.rope_sets.push_back({{row, row + inv_freq.shape(1)}, scales[static_cast<std::size_t>(i)]});
    }
    for (const LayerConfig& l : m.layers) {
        check(l.rope < m.rope_sets.size(), "layer_rope", l.rope,
              "less than the sets of inv_freq, " + std::to_string(m.rope_sets.size()));
    }
    return m;
}

DType to_kv_dtype(const std::string& name) {
    const DTypeInfo* kv = find_dtype(name);
    if (!kv) throw UnsupportedError("unknown KV cache type '" + name + "'");
    return kv->id;
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
