#include "engine/engine.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/dequantize.h"
#include "core/error.h"

namespace akunu {

namespace {

constexpr std::uint32_t kMaxChain = 256;   // tokens of one decode call's logprob records
constexpr std::uint32_t kLogitsRows = 32;  // rows of a Head::kAllRows table

std::uint64_t checked_product(std::initializer_list<std::uint64_t> factors) {
    std::uint64_t p = 1;
    for (const std::uint64_t f : factors) {
        if (__builtin_mul_overflow(p, f, &p)) throw InvalidArgumentError("sizes of this model overflow 64 bits");
    }
    return p;
}

}  // namespace

Engine::Engine(std::unique_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
               const EngineOptions& options, const Progress& progress)
    : source_(std::move(source)), device_(std::move(device)), config_(std::move(config)) {
    load_weights(progress);
    allocate_workspace(options);
    // The tables that every generation needs; others are built when first asked for.
    for (const Phase phase : {Phase::kDecode, Phase::kBatch, Phase::kPrefill}) {
        table({phase, Head::kLastRow, Tail::kGreedy, false});
    }
}

Binding Engine::own(std::uint64_t bytes, std::uint64_t MemoryUse::* purpose) {
    owned_.emplace_back(*device_, std::max<std::uint64_t>(bytes, 64));
    memory_.*purpose += bytes;
    return owned_.back().at();
}

Weight Engine::load_matmul(const std::string& name, std::uint64_t rows, std::uint64_t cols) {
    const HostTensor t = source_->get(name);
    if (t.rows != rows || t.cols != cols) {
        throw ModelFileError("tensor '" + name + "' is " + std::to_string(t.rows) + "x" + std::to_string(t.cols) +
                             ", expected " + std::to_string(rows) + "x" + std::to_string(cols));
    }
    Weight w = device_->prepare_weight(t);
    if (w.mapped) {
        memory_.weights_mapped += w.bytes();
    } else {
        owned_.emplace_back(*device_, w.data.buffer);
        memory_.weights += w.data.buffer.size;
        source_->done(name);
    }
    loaded_(t.bytes.size());
    return w;
}

void Engine::read_vector(const std::string& name, std::uint64_t n, const Binding& to) {
    const HostTensor t = source_->get(name);
    if (t.rows * t.cols != n) {
        throw ModelFileError("tensor '" + name + "' has " + std::to_string(t.rows * t.cols) + " elements, expected " +
                             std::to_string(n));
    }
    dequantize_row(t.dtype, t.bytes.data(), to.as<float>(), n);
    source_->done(name);
    loaded_(t.bytes.size());
}

Vector Engine::load_vector(const std::string& name, std::uint64_t n, bool required) {
    if (!source_->has(name)) {
        if (required) throw ModelFileError("tensor '" + name + "' is missing");
        return {};
    }
    const Binding b = own(n * sizeof(float), &MemoryUse::weights);
    read_vector(name, n, b);
    return b;
}

void Engine::load_qkv_bias(const std::string& prefix, LayerWeights& l) {
    const std::array<std::pair<const char*, Vector*>, 3> parts{
        {{"attn_q_bias", &l.attn_q_bias}, {"attn_k_bias", &l.attn_k_bias}, {"attn_v_bias", &l.attn_v_bias}}};
    std::size_t present = 0;
    for (const auto& [name, to] : parts) present += source_->has(prefix + name);
    if (present == 0) return;
    if (present != parts.size()) {
        throw ModelFileError("'" + prefix + "': expected all of attn_q_bias, attn_k_bias and attn_v_bias, or none");
    }
    Binding at = own((config_.q_dim() + 2ull * config_.kv_dim()) * sizeof(float), &MemoryUse::weights);
    for (const auto& [name, to] : parts) {
        const std::uint64_t n = to == &l.attn_q_bias ? config_.q_dim() : config_.kv_dim();
        read_vector(prefix + name, n, at);
        *to = at;
        at.offset += n * sizeof(float);
    }
}

void Engine::load_weights(const Progress& progress) {
    const auto& c = config_;
    std::uint64_t done = 0;
    const std::uint64_t total = source_->total_bytes();
    loaded_ = [&](std::uint64_t bytes) {
        done += bytes;
        if (progress) progress(std::min(done, total), total);
    };
    auto& w = weights_;
    const bool tied = !source_->has("output");
    if (tied) {
        w.output = load_matmul("token_embedding", c.vocab_size, c.dim);
        w.token_embedding = w.output;
    } else {
        w.output = load_matmul("output", c.vocab_size, c.dim);
        w.token_embedding = device_->map_weight(source_->get("token_embedding"));
        memory_.weights_mapped += w.token_embedding.bytes();
    }
    w.output_norm = load_vector("output_norm", c.dim, true);
    w.layers.resize(c.n_layers);
    for (std::uint32_t i = 0; i < c.n_layers; ++i) {
        const std::string p = "layers." + std::to_string(i) + ".";
        LayerWeights& l = w.layers[i];
        l.attn_norm = load_vector(p + "attn_norm", c.dim, true);
        l.attn_q = load_matmul(p + "attn_q", c.q_dim(), c.dim);
        l.attn_k = load_matmul(p + "attn_k", c.kv_dim(), c.dim);
        l.attn_v = load_matmul(p + "attn_v", c.kv_dim(), c.dim);
        load_qkv_bias(p, l);
        l.attn_q_norm = load_vector(p + "attn_q_norm", c.head_dim, false);
        l.attn_k_norm = load_vector(p + "attn_k_norm", c.head_dim, false);
        if (bool(l.attn_q_norm) != bool(l.attn_k_norm)) {
            throw ModelFileError("layer " + std::to_string(i) + " has only one of attn_q_norm and attn_k_norm");
        }
        l.attn_output = load_matmul(p + "attn_output", c.dim, c.q_dim());
        l.attn_output_bias = load_vector(p + "attn_output_bias", c.dim, false);
        l.post_attn_norm = load_vector(p + "post_attn_norm", c.dim, false);
        l.ffn_norm = load_vector(p + "ffn_norm", c.dim, true);
        l.ffn_gate = load_matmul(p + "ffn_gate", c.ffn_dim, c.dim);
        l.ffn_up = load_matmul(p + "ffn_up", c.ffn_dim, c.dim);
        l.ffn_down = load_matmul(p + "ffn_down", c.dim, c.ffn_dim);
        l.post_ffn_norm = load_vector(p + "post_ffn_norm", c.dim, false);
    }
    if (progress) progress(total, total);
    loaded_ = nullptr;
    if (memory_.weights_mapped == 0) source_.reset();
}

void Engine::allocate_workspace(const EngineOptions& options) {
    const auto& c = config_;
    if (!device_->supports_kv(options.kv_dtype)) {
        throw UnsupportedError("KV cache type '" + std::string(dtype_info(options.kv_dtype).name) +
                               "' is not supported by device " + device_->name());
    }
    ws_.kv_dtype = options.kv_dtype;
    ws_.context = options.context ? options.context : std::min(c.context_length, kDefaultContext);
    if (ws_.context > c.context_length) {
        throw InvalidArgumentError("context " + std::to_string(ws_.context) + " is more than the model's " +
                                   std::to_string(c.context_length));
    }
    ws_.chunk = std::clamp(options.chunk, 1u, ws_.context);
    ws_.all_rows = std::min(ws_.chunk, kLogitsRows);
    // Batch tables may have more rows than a small chunk.
    const std::uint64_t rows = std::max(ws_.chunk, device_->traits().max_batch_rows);
    std::vector<const Weight*> in{&weights_.output}, attn, ffn;
    bool fused = true;
    bool post_norms = false;
    for (const LayerWeights& l : weights_.layers) {
        in.insert(in.end(), {&l.attn_q, &l.attn_k, &l.attn_v, &l.ffn_gate, &l.ffn_up});
        attn.push_back(&l.attn_output);
        ffn.push_back(&l.ffn_down);
        fused = fused && TableBuilder::fuses_gate_up(l);
        post_norms = post_norms || l.post_attn_norm || l.post_ffn_norm;
    }
    const auto act_for = [&](std::uint64_t dim, const std::vector<const Weight*>& consumers) {
        std::uint32_t formats = 0;
        for (const Weight* w : consumers) formats |= device_->matmul_input(w->dtype);
        Act a;
        if (formats & kActF32) a.f32 = own(device_->activation_bytes(kActF32, rows, dim), &MemoryUse::scratch);
        if (formats & ~kActF32) {
            a.compact = own(device_->activation_bytes(formats & ~kActF32, rows, dim), &MemoryUse::scratch);
        }
        return a;
    };
    const auto floats = [&](std::uint64_t dim) {
        return own(checked_product({rows, dim, sizeof(float)}), &MemoryUse::scratch);
    };
    ws_.hidden = floats(c.dim);
    if (post_norms) ws_.branch = floats(c.dim);
    ws_.input = act_for(c.dim, in);
    ws_.q = floats(c.q_dim() + 2ull * c.kv_dim());
    ws_.k = ws_.v = ws_.q;
    ws_.k.offset += rows * c.q_dim() * sizeof(float);
    ws_.v.offset = ws_.k.offset + rows * c.kv_dim() * sizeof(float);
    ws_.attn_f32 = floats(c.q_dim());
    ws_.attn = act_for(c.q_dim(), attn);
    if (!fused) {
        ws_.gate = floats(c.ffn_dim);
        ws_.up = floats(c.ffn_dim);
    }
    ws_.ffn = act_for(c.ffn_dim, ffn);
    if (device_->traits().split_attention) {
        ws_.partials = own(device_->attention_partial_bytes(c.n_heads, c.head_dim, ws_.context), &MemoryUse::scratch);
    }
    for (const RopeSet& set : c.rope_sets) {
        ws_.rope.push_back(floats(c.rope_dim));
        ws_.inv_freq.push_back(own(set.inv_freq.size() * sizeof(float), &MemoryUse::scratch));
        std::memcpy(ws_.inv_freq.back().as<float>(), set.inv_freq.data(), set.inv_freq.size() * sizeof(float));
    }
    const std::uint64_t kv = device_->kv_bytes(ws_.kv_dtype, c.n_kv_heads, c.head_dim, ws_.context);
    for (std::uint32_t i = 0; i < c.n_layers; ++i) {
        ws_.k_cache.push_back(own(kv, &MemoryUse::kv_cache));
        ws_.v_cache.push_back(own(kv, &MemoryUse::kv_cache));
    }
    ws_.logits = own(checked_product({ws_.all_rows, c.vocab_size, sizeof(float)}), &MemoryUse::scratch);
    ws_.scaled = own(checked_product({2, c.vocab_size, sizeof(float)}), &MemoryUse::scratch);
    ws_.history = own((ws_.context + std::uint64_t{1}) * sizeof(std::uint32_t), &MemoryUse::scratch);
    ws_.sampler = own(sizeof(SamplerState), &MemoryUse::scratch);
    ws_.control = own(sizeof(Control), &MemoryUse::scratch);
    ws_.logprobs = own(kMaxChain * sizeof(LogprobRecord), &MemoryUse::scratch);
}

const DispatchTable& Engine::table(const TableKey& key) {
    const auto it = tables_.find(key);
    if (it != tables_.end()) return it->second;
    return tables_.emplace(key, TableBuilder(*device_, config_, weights_, ws_).build(key)).first->second;
}

std::uint32_t Engine::run(const TableKey& key, const ReplayArgs& args, const Poll& poll) {
    auto& control = *ws_.control.as<Control>();
    control = {};
    const auto stop = [&] { return cancelled_.load(std::memory_order_relaxed) || (poll && poll()); };
    if (stop()) return 0;
    return device_->replay(table(key), args, control, stop);
}

Phase Engine::phase_for(std::uint32_t rows) const {
    if (rows == 1) return Phase::kDecode;
    return rows <= device_->traits().max_batch_rows ? Phase::kBatch : Phase::kPrefill;
}

void Engine::check_ids(std::span<const std::uint32_t> ids) const {
    if (ids.empty()) throw InvalidArgumentError("the prompt is empty: at least one token is needed");
    if (ids.size() > ws_.context) {
        throw ContextLengthError("the prompt has " + std::to_string(ids.size()) + " tokens, the context holds " +
                                 std::to_string(ws_.context));
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] >= config_.vocab_size) {
            throw InvalidArgumentError("the token id at index " + std::to_string(i) + " is " + std::to_string(ids[i]) +
                                       ", outside the vocabulary of " + std::to_string(config_.vocab_size));
        }
    }
}

std::uint32_t Engine::begin(std::span<const std::uint32_t> ids, const SamplerState& sampler, bool reuse) {
    check_ids(ids);
    cancelled_ = false;
    auto* history = ws_.history.as<std::uint32_t>();
    std::uint32_t shared = 0;
    if (reuse) {
        // The last prompt token always runs, since its logits are needed.
        const auto limit = std::min<std::size_t>(position_, ids.size() - 1);
        while (shared < limit && history[shared] == ids[shared]) ++shared;
    }
    position_ = shared;
    std::copy(ids.begin() + shared, ids.end(), history + shared);
    prompt_end_ = static_cast<std::uint32_t>(ids.size());
    pending_ = false;
    *ws_.sampler.as<SamplerState>() = sampler;
    logprobs_ = sampler.want_logprobs != 0;
    const bool plain = sampler.temperature == 0 && sampler.n_bias == 0 && sampler.repeat_penalty == 1 &&
                       sampler.presence_penalty == 0 && sampler.frequency_penalty == 0;
    tail_ = plain ? Tail::kGreedy : Tail::kSampled;
    return shared;
}

void Engine::collect(std::uint32_t first, std::uint32_t n, Chunk& out) const {
    const auto* history = ws_.history.as<std::uint32_t>();
    out.ids.assign(history + first, history + first + n);
    if (logprobs_) {
        const auto* records = ws_.logprobs.as<LogprobRecord>();
        out.logprobs.assign(records, records + n);
    }
    if (n == 0) return;
    const auto& s = *ws_.sampler.as<SamplerState>();
    out.ended = std::find(s.end_ids.begin(), s.end_ids.begin() + s.n_end_ids, out.ids.back()) !=
                s.end_ids.begin() + s.n_end_ids;
}

std::uint32_t Engine::prefill(bool sample, Chunk& out, const Poll& poll) {
    out = {};
    const std::uint32_t left = prompt_end_ - position_;
    if (prompt_end_ <= position_) throw InvalidArgumentError("prefill without a prompt: call begin first");
    const std::uint32_t rows = std::min(left, ws_.chunk);
    const bool last = rows == left && sample;
    const TableKey key{phase_for(rows), last ? Head::kLastRow : Head::kNone, last ? tail_ : Tail::kNone,
                       last && logprobs_};
    if (run(key, {position_, rows, 1}, poll) == 0) return left;
    position_ += rows;
    if (last) {
        collect(position_, 1, out);
        pending_ = true;
    }
    return left - rows;
}

Chunk Engine::decode(std::uint32_t n, const Poll& poll) {
    if (!pending_) throw InvalidArgumentError("decode without a sampled token: call begin and prefill first");
    Chunk out;
    const std::uint32_t steps = std::min({n, ws_.context - position_, kMaxChain});
    if (steps == 0) return out;
    const std::uint32_t done = run({Phase::kDecode, Head::kLastRow, tail_, logprobs_}, {position_, 1, steps}, poll);
    collect(position_ + 1, done, out);
    position_ += done;
    return out;
}

void Engine::truncate(std::uint32_t n) {
    if (n > position_) {
        throw InvalidArgumentError("cannot truncate to " + std::to_string(n) + " tokens: the cache holds " +
                                   std::to_string(position_));
    }
    position_ = n;
    prompt_end_ = 0;
    pending_ = false;
}

void Engine::for_each_logits(std::span<const std::uint32_t> ids, const Poll& poll,
                             const std::function<void(std::size_t, std::span<const float>)>& row) {
    begin(ids, {}, false);
    const auto* logits = ws_.logits.as<float>();
    while (position_ < prompt_end_) {
        const std::uint32_t rows = std::min(prompt_end_ - position_, ws_.all_rows);
        if (run({Phase::kPrefill, Head::kAllRows, Tail::kNone, false}, {position_, rows, 1}, poll) == 0) return;
        for (std::uint32_t r = 0; r < rows; ++r) {
            row(position_ + r, {logits + std::size_t{r} * config_.vocab_size, config_.vocab_size});
        }
        position_ += rows;
    }
}

std::vector<double> Engine::profile(const TableKey& key, const ReplayArgs& args) {
    const DispatchTable& t = table(key);
    if (args.rows == 0 || args.rows > t.max_rows || args.position + std::uint64_t{args.rows} > ws_.context) {
        throw InvalidArgumentError("profile: rows " + std::to_string(args.rows) + " at position " +
                                   std::to_string(args.position) + " do not fit (at most " +
                                   std::to_string(t.max_rows) + " rows, context " + std::to_string(ws_.context) + ")");
    }
    position_ = 0;
    prompt_end_ = 0;
    pending_ = false;
    std::vector<double> seconds(t.commands.size(), 0.0);
    device_->profile(t, args, seconds);
    return seconds;
}

}  // namespace akunu
