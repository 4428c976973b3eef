// A model's configuration, from Python's dataclasses or mappings to the engine's structs. Numbers are checked here as
// far as they must agree with one another; tensors are checked against them where they are loaded.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "bindings/arguments.h"
#include "core/error.h"

namespace akunu {

namespace {

template <typename T>
struct Named {
    const char* name;
    T value;
};
constexpr Named<Activation> kActivations[] = {{"silu", kActSilu}, {"gelu_tanh", kActGeluTanh}, {"gelu", kActGelu},
                                              {"tanh", kActTanh}, {"relu", kActRelu},          {"relu2", kActRelu2}};
constexpr Named<RopeStyle> kRopeStyles[] = {{"interleaved", kRopeInterleaved}, {"half", kRopeHalf}};
constexpr Named<Pooling> kPoolings[] = {{"mean", kPoolMean}, {"cls", kPoolFirst}, {"last", kPoolLast}};

constexpr Named<Gating> kGatings[] = {{"softmax", kGateSoftmax},
                                      {"sigmoid", kGateSigmoid},
                                      {"softmax_chosen", kGateSoftmaxChosen},
                                      {"sqrt_softplus", kGateSqrtSoftplus}};

// Reads the fields of one object: a dataclass or a mapping.
class Fields {
  public:
    // `path` begins the names in messages: "blocks[3]."
    Fields(py::object object, std::string path) : object_(std::move(object)), path_(std::move(path)) {}

    bool has(const char* name) const { return !optional(name).is_none(); }
    // The field of that name, or None where it is absent.
    py::object optional(const char* name) const {
        if (py::isinstance<py::dict>(object_)) {
            return py::dict(object_).contains(name) ? field(object_, name) : py::none();
        }
        return py::getattr(object_, name, py::none());
    }
    std::uint32_t integer(const char* name) const {
        return get<std::uint32_t>(field(object_, name), name, "an integer of 0..4294967295");
    }
    std::uint32_t integer(const char* name, std::uint32_t absent) const { return has(name) ? integer(name) : absent; }
    std::optional<std::uint32_t> optional_integer(const char* name) const {
        return has(name) ? std::optional(integer(name)) : std::nullopt;
    }
    float number(const char* name) const { return get<float>(field(object_, name), name, "a number"); }
    float number(const char* name, float absent) const { return has(name) ? number(name) : absent; }
    bool flag(const char* name) const { return has(name) && get<bool>(optional(name), name, "true or false"); }
    std::string text(const char* name) const { return get<std::string>(field(object_, name), name, "a string"); }
    std::vector<std::uint32_t> integers(const char* name) const {
        return get<std::vector<std::uint32_t>>(field(object_, name), name, "integers");
    }
    template <typename T, std::size_t N>
    T one_of(const Named<T> (&table)[N], const char* name) const {
        return named(table, name, text(name));
    }
    // The row of that name; `name` is the field that has it.
    template <typename T, std::size_t N>
    T named(const Named<T> (&table)[N], const char* name, const std::string& found) const {
        std::string known;
        for (const auto& row : table) {
            if (found == row.name) return row.value;
            known += (known.empty() ? "" : ", ") + std::string(row.name);
        }
        throw InvalidArgumentError(path_ + name + " is '" + found + "', expected one of " + known);
    }
    // Calls `take` with each object of a list.
    void each(const char* name, const std::function<void(const Fields&)>& take) const {
        std::size_t i = 0;
        for (const py::handle item : field(object_, name)) {
            take({py::reinterpret_borrow<py::object>(item), path_ + name + "[" + std::to_string(i++) + "]."});
        }
    }
    void check(bool ok, const char* name, std::uint64_t value, const std::string& expected) const {
        if (!ok) throw InvalidArgumentError(path_ + name + " is " + std::to_string(value) + ", expected " + expected);
    }
    const std::string& path() const { return path_; }

  private:
    template <typename T>
    T get(const py::object& value, const char* name, const char* expected) const {
        try {
            return py::cast<T>(value);
        } catch (const py::cast_error&) {
            throw InvalidArgumentError(path_ + name + " is " + quote(value) + ", expected " + expected);
        }
    }

    py::object object_;
    std::string path_;
};

RopeSet to_rope_set(const Fields& f) {
    const py::object values = f.optional("inv_freq");
    const auto inv_freq = py::array_t<float, py::array::forcecast | py::array::c_style>::ensure(values);
    if (!inv_freq || inv_freq.ndim() != 1) {
        PyErr_Clear();
        throw InvalidArgumentError(f.path() + "inv_freq is " + quote(values) + ", expected a row of numbers");
    }
    std::vector<std::uint32_t> axes;
    if (f.has("axes")) axes = f.integers("axes");
    const auto n = static_cast<std::size_t>(inv_freq.size());
    f.check(axes.empty() || axes.size() == n, "axes", axes.size(), "one for each of the " + std::to_string(n));
    for (const std::uint32_t axis : axes) {
        f.check(axis < kPositionAxes, "axes", axis, "less than " + std::to_string(kPositionAxes));
    }
    return {.inv_freq = {inv_freq.data(), inv_freq.data() + inv_freq.size()},
            .scale = f.number("scale"),
            .style = f.one_of(kRopeStyles, "style"),
            .axes = std::move(axes),
            .temperature = f.number("temperature", 0),
            .temperature_length = f.integer("temperature_length", 0)};
}

// Heads of q, and those of keys that they share.
template <typename Config>
void read_heads(const Fields& f, Config& config) {
    config.n_heads = f.integer("n_heads");
    config.n_kv_heads = f.integer("n_kv_heads");
    config.head_dim = f.integer("head_dim");
    config.scale = f.number("scale");
    f.check(config.n_kv_heads > 0, "n_kv_heads", config.n_kv_heads, "at least 1");
    f.check(config.n_heads > 0 && config.n_heads % config.n_kv_heads == 0, "n_heads", config.n_heads,
            "a multiple of n_kv_heads, " + std::to_string(config.n_kv_heads));
    f.check(config.head_dim > 0, "head_dim", config.head_dim, "at least 1");
}

AttentionConfig to_attention(const Fields& f, const ModelConfig& model) {
    AttentionConfig a;
    read_heads(f, a);
    a.window = f.integer("window", 0);
    a.rope = f.optional_integer("rope");
    a.q_rope = f.optional_integer("q_rope");
    a.softcap = f.number("softcap", 0);
    a.bidirectional = f.flag("bidirectional");
    a.whole_images = f.flag("whole_images");
    a.image_windows = f.flag("image_windows");
    a.norms_whole_rows = f.flag("norms_whole_rows");
    a.norms_by_head = f.flag("norms_by_head");
    a.norms_after_rope = f.flag("norms_after_rope");
    a.norm_values = f.flag("norm_values");
    a.q_gain = f.number("q_gain", 0);
    a.norm_eps = f.number("norm_eps", model.norm_eps);
    a.kv_owner = f.optional_integer("kv_owner");
    for (const auto& [name, set] : {std::pair("rope", a.rope), std::pair("q_rope", a.q_rope)}) {
        if (!set) continue;
        f.check(*set < model.rope_sets.size(), name, *set,
                "less than the number of rope_sets, " + std::to_string(model.rope_sets.size()));
        const RopeSet& rope = model.rope_sets[*set];
        f.check(rope.dim() <= a.head_dim, "head_dim", a.head_dim,
                "at least the " + std::to_string(rope.dim()) + " elements that rope_sets[" + std::to_string(*set) +
                    "] rotates");
        // It is a factor of what is rotated.
        f.check(rope.temperature_length == 0 || rope.dim() == a.head_dim, "head_dim", a.head_dim,
                "the " + std::to_string(rope.dim()) + " elements that a set with a temperature rotates");
    }
    if (a.kv_owner) {
        const std::size_t i = *a.kv_owner;
        const auto* owner = i < model.blocks.size() ? std::get_if<AttentionConfig>(&model.blocks[i].mixer) : nullptr;
        const bool fits =
            owner && !owner->kv_owner && owner->n_kv_heads == a.n_kv_heads && owner->head_dim == a.head_dim;
        f.check(fits, "kv_owner", i, "an attention block before it with keys and values of its own and the same sizes");
    }
    return a;
}

CrossAttentionConfig to_cross_attention(const Fields& f) {
    CrossAttentionConfig c;
    read_heads(f, c);
    c.positions = f.integer("positions");
    c.aligned = f.integers("aligned");
    f.check(c.positions > 0, "positions", c.positions, "at least 1");
    for (const std::uint32_t head : c.aligned) {
        f.check(head < c.n_heads, "aligned", head, "heads of the " + std::to_string(c.n_heads));
    }
    return c;
}

FeedForwardConfig to_feed_forward(const Fields& f, const ModelConfig& model) {
    FeedForwardConfig config{f.integer("dim"), f.one_of(kActivations, "activation"), f.flag("parallel")};
    if (f.has("deviations")) config.deviations = f.number("deviations");
    f.check(config.dim > 0, "dim", config.dim, "at least 1");
    const bool follows = !model.blocks.empty() && std::holds_alternative<AttentionConfig>(model.blocks.back().mixer);
    f.check(follows || !config.parallel, "parallel", config.parallel, "0, as no attention block is before it");
    return config;
}

RouterConfig to_router(const Fields& f) {
    return {.gating = f.one_of(kGatings, "gating"),
            .groups = f.integer("groups", 0),
            .groups_used = f.integer("groups_used", 0),
            .group_top = f.integer("group_top", 0),
            .renormalise = f.flag("renormalise"),
            .sum_eps = f.number("sum_eps", 0),
            .sum_min = f.number("sum_min", 0),
            .scale = f.number("scale", 1),
            .input_scale = f.number("input_scale", 1)};
}

ExpertsConfig to_experts(const Fields& f) {
    const ExpertsConfig e{.count = f.integer("count"),
                          .used = f.integer("used"),
                          .dim = f.integer("dim"),
                          .shared_dim = f.integer("shared_dim", 0),
                          .latent_dim = f.integer("latent_dim", 0),
                          .router = to_router(Fields(f.optional("router"), f.path() + "router.")),
                          .activation = f.one_of(kActivations, "activation"),
                          .limit = f.number("limit", 0),
                          .sharpness = f.number("sharpness", 1),
                          .up_offset = f.number("up_offset", 0)};
    f.check(e.count > 0, "count", e.count, "at least 1");
    f.check(e.dim > 0, "dim", e.dim, "at least 1");
    f.check(e.used > 0 && e.used <= e.count, "used", e.used, "1 to the number of experts, " + std::to_string(e.count));
    if (const RouterConfig& r = e.router; r.groups > 0) {
        f.check(e.count % r.groups == 0, "router.groups", r.groups,
                "a divisor of the " + std::to_string(e.count) + " experts");
        const std::uint32_t size = e.count / r.groups;
        f.check(r.groups_used > 0 && r.groups_used <= r.groups && e.used <= r.groups_used * size, "router.groups_used",
                r.groups_used,
                "groups, of the " + std::to_string(r.groups) + ", that have the " + std::to_string(e.used) +
                    " experts of a row");
        f.check(r.group_top > 0 && r.group_top <= std::min(size, 32u), "router.group_top", r.group_top,
                "1 to the size of a group, " + std::to_string(size) + ", or 32");
        f.check(r.groups_used <= 32, "router.groups_used", r.groups_used, "at most 32");
    }
    return e;
}

LayerInputConfig to_layer_input(const Fields& f, const ModelConfig& model) {
    const LayerInputConfig config{f.integer("index"), f.one_of(kActivations, "activation")};
    const std::uint32_t count = model.layer_inputs ? model.layer_inputs->count : 0;
    f.check(config.index < count, "index", config.index,
            "less than the model's layer_inputs.count, " + std::to_string(count));
    return config;
}

LaurelConfig to_laurel(const Fields& f, const ModelConfig& model) {
    const LaurelConfig config{f.integer("rank")};
    f.check(config.rank > 0, "rank", config.rank, "at least 1");
    const bool follows = !model.blocks.empty() && std::holds_alternative<AttentionConfig>(model.blocks.back().mixer);
    if (!follows) throw InvalidArgumentError(f.path() + "kind is 'laurel', but no attention block is before it");
    return config;
}

MixStreamsConfig to_mix_streams(const Fields& f, const ModelConfig& model) {
    if (!model.streams) throw InvalidArgumentError(f.path() + "kind is 'mix_streams', but the model has no streams");
    return {f.flag("correct")};
}

RecurrenceConfig to_recurrence(const Fields& f) {
    const RecurrenceConfig config{f.integer("dim")};
    f.check(config.dim > 0, "dim", config.dim, "at least 1");
    return config;
}

DeltaNetConfig to_delta_net(const Fields& f, const ModelConfig& model) {
    DeltaNetConfig c;
    c.key_heads = f.integer("key_heads");
    c.value_heads = f.integer("value_heads");
    c.key_dim = f.integer("key_dim");
    c.value_dim = f.integer("value_dim");
    c.taps = f.integer("taps");
    c.grouped = f.flag("grouped");
    c.l2_eps = f.number("l2_eps");
    c.norm_eps = model.norm_eps;
    f.check(c.key_heads > 0, "key_heads", c.key_heads, "at least 1");
    f.check(c.value_heads > 0 && c.value_heads % c.key_heads == 0, "value_heads", c.value_heads,
            "a multiple of key_heads, " + std::to_string(c.key_heads));
    const auto fits = [](std::uint32_t dim) { return dim > 0 && dim % 4 == 0 && dim <= 256; };
    f.check(fits(c.key_dim), "key_dim", c.key_dim, "a multiple of 4 up to 256");
    f.check(fits(c.value_dim), "value_dim", c.value_dim, "a multiple of 4 up to 256");
    f.check(c.taps >= 2 && c.taps <= 8, "taps", c.taps, "2 to 8");
    // A thread has the states of a group besides.
    constexpr std::uint64_t kMost = std::uint64_t{1} << 19;
    const std::uint64_t group = std::uint64_t{c.value_heads / c.key_heads} * c.key_dim * c.value_dim;
    f.check(group <= kMost, "value_heads", c.value_heads,
            "states of at most " + std::to_string(kMost) + " elements for each key head, not " + std::to_string(group));
    return c;
}

LatentAttentionConfig to_latent_attention(const Fields& f, const ModelConfig& model) {
    LatentAttentionConfig c;
    c.n_heads = f.integer("n_heads");
    c.q_rank = f.integer("q_rank", 0);
    c.latent = f.integer("latent");
    c.nope_dim = f.integer("nope_dim");
    c.rope_dim = f.integer("rope_dim");
    c.value_dim = f.integer("value_dim");
    c.rope = f.integer("rope", 0);
    c.scale = f.number("scale");
    c.norm_eps = f.number("norm_eps", model.norm_eps);
    c.temperature = f.number("temperature", 0);
    c.temperature_length = f.integer("temperature_length", 0);
    for (const auto& [name, n] : {std::pair("n_heads", c.n_heads), std::pair("latent", c.latent),
                                  std::pair("nope_dim", c.nope_dim), std::pair("value_dim", c.value_dim)}) {
        f.check(n > 0, name, n, "at least 1");
    }
    f.check(c.rope < model.rope_sets.size(), "rope", c.rope,
            "less than the number of rope_sets, " + std::to_string(model.rope_sets.size()));
    const std::uint32_t rotated = model.rope_sets[c.rope].dim();
    f.check(rotated == c.rope_dim, "rope_dim", c.rope_dim, "the " + std::to_string(rotated) + " elements of its set");
    return c;
}

RelativeAttentionConfig to_relative_attention(const Fields& f) {
    RelativeAttentionConfig c{.n_heads = f.integer("n_heads"),
                              .head_dim = f.integer("head_dim"),
                              .scale = f.number("scale"),
                              .distances = f.integer("distances"),
                              .columns = f.integers("columns"),
                              .by_query = f.flag("by_query"),
                              .by_key = f.flag("by_key")};
    for (const auto& [name, n] : {std::pair("n_heads", c.n_heads), std::pair("head_dim", c.head_dim)}) {
        f.check(n > 0, name, n, "at least 1");
    }
    f.check(c.columns.size() % 2 == 1, "columns", c.columns.size(), "an odd number of them");
    for (const std::uint32_t column : c.columns) {
        f.check(column < c.distances, "columns", column, "less than the distances, " + std::to_string(c.distances));
    }
    return c;
}

ShortConvolutionConfig to_short_convolution(const Fields& f) {
    const ShortConvolutionConfig c{f.integer("taps")};
    f.check(c.taps >= 2 && c.taps <= 8, "taps", c.taps, "2 to 8");
    return c;
}

Mamba2Config to_mamba2(const Fields& f, const ModelConfig& model) {
    Mamba2Config c;
    c.groups = f.integer("groups");
    c.heads = f.integer("heads");
    c.state_dim = f.integer("state_dim");
    c.head_dim = f.integer("head_dim");
    c.taps = f.integer("taps");
    c.norm_eps = model.norm_eps;
    f.check(c.groups > 0, "groups", c.groups, "at least 1");
    f.check(c.heads > 0 && c.heads % c.groups == 0, "heads", c.heads,
            "a multiple of groups, " + std::to_string(c.groups));
    const auto fits = [](std::uint32_t dim) { return dim > 0 && dim % 4 == 0 && dim <= 256; };
    f.check(fits(c.state_dim), "state_dim", c.state_dim, "a multiple of 4 up to 256");
    f.check(fits(c.head_dim), "head_dim", c.head_dim, "a multiple of 4 up to 256");
    f.check(c.taps >= 2 && c.taps <= 8, "taps", c.taps, "2 to 8");
    return c;
}

ImageConfig to_image(const Fields& f) {
    const ImageConfig image{.values = f.integer("values"),
                            .frames = f.integer("frames", 1),
                            .channels = f.integer("channels", 3),
                            .patches = f.integer("patches"),
                            .dim = f.integer("dim"),
                            .parts = f.integer("parts")};
    f.check(image.frames > 0 && image.frames <= 16, "frames", image.frames, "1 to 16");
    f.check(image.channels > 0 && image.values % image.channels == 0, "channels", image.channels,
            "a divisor of the " + std::to_string(image.values) + " values");
    f.check(image.values > 0, "values", image.values, "at least 1");
    f.check(image.patches > 0, "patches", image.patches, "at least 1");
    f.check(image.dim > 0, "dim", image.dim, "at least 1");
    f.check(image.parts > 0, "parts", image.parts, "at least 1");
    return image;
}

MergeConfig to_merge(const Fields& f, const ModelConfig& model) {
    if (!model.image) throw InvalidArgumentError(f.path() + "kind is 'merge', but the model has no image");
    const MergeConfig m{.patches = model.image->patches,
                        .mean = f.flag("mean"),
                        .dim = f.integer("dim", 0),
                        .activation = f.one_of(kActivations, "activation"),
                        .part = f.integer("part", 0),
                        .normed = f.flag("normed"),
                        .norm_eps = f.number("norm_eps", model.norm_eps),
                        .patch_eps = f.number("patch_eps", model.norm_eps),
                        .gain = f.number("gain", 1)};
    f.check(m.part < model.image->parts, "part", m.part, "less than " + std::to_string(model.image->parts));
    return m;
}

MixerConfig to_mixer(const Fields& f, const ModelConfig& model) {
    const std::string kind = f.text("kind");
    if (kind == "attention") return to_attention(f, model);
    if (kind == "cross_attention") return to_cross_attention(f);
    if (kind == "feed_forward") return to_feed_forward(f, model);
    if (kind == "experts") return to_experts(f);
    if (kind == "layer_input") return to_layer_input(f, model);
    if (kind == "laurel") return to_laurel(f, model);
    if (kind == "mix_streams") return to_mix_streams(f, model);
    if (kind == "recurrence") return to_recurrence(f);
    if (kind == "delta_net") return to_delta_net(f, model);
    if (kind == "latent_attention") return to_latent_attention(f, model);
    if (kind == "relative_attention") return to_relative_attention(f);
    if (kind == "short_convolution") return to_short_convolution(f);
    if (kind == "mamba2") return to_mamba2(f, model);
    if (kind == "merge") return to_merge(f, model);
    throw InvalidArgumentError(
        f.path() + "kind is '" + kind +
        "', expected one of attention, cross_attention, feed_forward, experts, layer_input, "
        "laurel, mix_streams, recurrence, delta_net, latent_attention, relative_attention, short_convolution, "
        "mamba2, merge");
}

BlockConfig to_block(const Fields& f, const ModelConfig& model) {
    return {f.text("prefix"), static_cast<int>(f.integer("layer")),
            to_mixer(Fields(f.optional("mixer"), f.path() + "mixer."), model)};
}

DrafterConfig to_drafter(const Fields& f, const ModelConfig& model) {
    DrafterConfig d{f.text("prefix"),
                    {},
                    f.flag("normed_state"),
                    f.integer("dim", 0),
                    f.number("norm_eps", 0),
                    f.integer("clusters", 0),
                    f.integer("clusters_used", 0)};
    f.each("blocks", [&](const Fields& block) {
        d.blocks.push_back(to_block(block, model));
        const auto& mixer = d.blocks.back().mixer;
        const auto* attention = std::get_if<AttentionConfig>(&mixer);
        const bool keeps = attention ? !attention->kv_owner : std::holds_alternative<LatentAttentionConfig>(mixer);
        const bool others =
            std::holds_alternative<FeedForwardConfig>(mixer) || std::holds_alternative<ExpertsConfig>(mixer);
        if (d.dim) {
            if (!others && (!attention || keeps)) {
                throw InvalidArgumentError(f.path() +
                                           "blocks: expected attention that reads another block's keys and values, "
                                           "feed-forwards and experts");
            }
        } else if (d.blocks.size() == 1 ? !keeps : !others) {
            throw InvalidArgumentError(f.path() + "blocks: expected attention, then feed-forwards or experts");
        }
    });
    f.check(!d.blocks.empty(), "blocks", 0, "at least one");
    if (d.clusters) {
        f.check(d.dim != 0 && model.vocab_size % d.clusters == 0, "clusters", d.clusters,
                "a divisor of an assistant's vocabulary");
        f.check(d.clusters_used > 0 && d.clusters_used <= d.clusters, "clusters_used", d.clusters_used,
                "at least one, and no more than clusters");
    }
    return d;
}

EncoderConfig to_encoder(const Fields& f) {
    EncoderConfig e;
    e.pooling = f.one_of(kPoolings, "pooling");
    for (const auto& [dim, activation] :
         py::cast<std::vector<std::pair<std::uint32_t, std::string>>>(f.optional("head"))) {
        HeadLayer layer{dim, {}};
        if (!activation.empty()) layer.activation = f.named(kActivations, "head", activation);
        e.head.push_back(layer);
    }
    return e;
}

// h += r·branch, where the norms of h are of h / sqrt(mean(h²) + eps): in units of r this is h += branch, of an
// embedding divided by r and an epsilon divided by r².
void scale_residual(ModelConfig& m, const Fields& f) {
    const float r = f.number("residual_scale", 1);
    if (r == 1) return;
    if (!(r > 0) || m.positions || m.kinds || m.encoder || m.audio || m.image || m.streams || m.norm_embedding) {
        throw InvalidArgumentError("residual_scale is " + std::to_string(r) +
                                   ", expected 1, or a positive number for a model of tokens alone");
    }
    m.branch_norm_eps = m.branch_norm_eps.value_or(m.norm_eps);
    m.embedding_scale /= r;
    m.norm_eps /= r * r;
}

}  // namespace

ModelConfig to_config(const py::object& object) {
    const Fields f(object, "");
    ModelConfig m;
    m.dim = f.integer("dim");
    m.vocab_size = f.integer("vocab_size");
    m.context_length = f.integer("context_length");
    m.norm_eps = f.number("norm_eps");
    m.layer_norm = f.flag("layer_norm");
    m.norm_embedding = f.flag("norm_embedding");
    m.final_softcap = f.number("final_softcap", 0);
    m.embedding_scale = f.number("embedding_scale", 1);
    m.logit_scale = f.number("logit_scale", 1);
    if (f.has("branch_norm_eps")) m.branch_norm_eps = f.number("branch_norm_eps");
    m.positions = f.integer("positions", 0);
    m.kinds = f.integer("kinds", 0);
    f.check(m.dim > 0, "dim", m.dim, "at least 1");
    if (f.has("image")) m.image = to_image(Fields(f.optional("image"), "image."));
    m.encoded_parts = f.integer("encoded_parts", 0);
    m.whole_image_rows = f.integer("whole_image_rows", 0);
    f.check(m.vocab_size > 0 || m.image, "vocab_size", m.vocab_size, "at least 1");
    f.each("rope_sets", [&](const Fields& set) { m.rope_sets.push_back(to_rope_set(set)); });
    if (f.has("layer_inputs")) {
        const Fields inputs(f.optional("layer_inputs"), "layer_inputs.");
        m.layer_inputs = {inputs.integer("dim"), inputs.integer("count"), inputs.integer("vocab_size")};
        const LayerInputsConfig& in = *m.layer_inputs;
        inputs.check(in.dim > 0, "dim", in.dim, "at least 1");
        inputs.check(in.count > 0, "count", in.count, "at least 1");
        inputs.check(in.vocab_size > 0, "vocab_size", in.vocab_size, "at least 1");
    }
    if (f.has("streams")) {
        const Fields streams(f.optional("streams"), "streams.");
        m.streams = {streams.integer("count"), streams.integer("active")};
        const StreamsConfig& s = *m.streams;
        streams.check(s.count > 0 && s.count <= kMostStreams, "count", s.count,
                      "1 to " + std::to_string(std::uint32_t{kMostStreams}));
        streams.check(s.active < s.count, "active", s.active, "less than the count, " + std::to_string(s.count));
    }
    f.each("blocks", [&](const Fields& block) {
        m.blocks.push_back(to_block(block, m));
        // One encoder's output is what all of a decoder's blocks attend to.
        if (const auto* cross = std::get_if<CrossAttentionConfig>(&m.blocks.back().mixer)) {
            block.check(cross->positions == m.sound_positions(), "mixer.positions", cross->positions,
                        "those of the other blocks, " + std::to_string(m.sound_positions()));
        }
    });
    if (f.has("encoder")) m.encoder = to_encoder(Fields(f.optional("encoder"), "encoder."));
    if (f.has("audio")) {
        const Fields audio(f.optional("audio"), "audio.");
        m.audio = AudioConfig{audio.integer("mels"), audio.flag("taps_last")};
    }
    if (f.has("drafter")) m.drafter = to_drafter(Fields(f.optional("drafter"), "drafter."), m);
    scale_residual(m, f);
    return m;
}

}  // namespace akunu
