#include "engine/engine.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "engine/records.h"

namespace akunu {

namespace {

constexpr std::uint32_t kLogprobRecords = 4096;  // of all steps of a call

ModelConfig decoder_config(ModelConfig config) {
    if (config.encoder) throw UnsupportedError("this model makes vectors, it samples no tokens");
    if (config.audio) throw UnsupportedError("this model hears, it samples no tokens");
    if (config.image) throw UnsupportedError("this model sees, it samples no tokens");
    return config;
}

}  // namespace

Engine::Engine(std::shared_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
               const EngineOptions& options, const Progress& progress)
    : LoadedModel(std::move(device), decoder_config(std::move(config)), std::move(source), options.context, progress,
                  options.memory),
      shared_{*device_,
              config_,
              *model_,
              activations_,
              memory_,
              step_,
              sequences_,
              context_,
              [this](std::uint64_t bytes, std::uint64_t MemoryUse::* purpose, MemoryKind kind) {
                  return own(bytes, purpose, kind);
              }},
      inputs_(shared_),
      programs_(shared_),
      adapters_(shared_) {
    allocate(options);
    hold_experts();
    // What every generation needs; other tables are built when first asked for.
    for (const Phase phase : {Phase::kDecode, Phase::kBatch, Phase::kPrefill}) {
        body(phase);
        if (drafter_) drafter_->keeping(phase);
    }
    tail({});
    if (drafter_) {
        for (const Phase phase : {Phase::kDecode, Phase::kBatch}) {
            for (const bool first : {true, false}) drafter_->body(phase, first);
            drafter_->tail({.one_row = phase == Phase::kDecode}, common_tokens() != 0);
        }
        drafter_->advance();
    }
    if (!config_.sound_positions())
        prepare_kernels(progress);  // else with those of the encoder of sounds, which comes next
}

void Engine::allocate(const EngineOptions& options) {
    if (!device_->supports_kv(options.kv_types)) {
        throw UnsupportedError("KV cache type '" + kv_name(options.kv_types) + "' is not supported by device " +
                               device_->name());
    }
    if (options.parallel < 1 || options.parallel > kMaxParallel) {
        throw InvalidArgumentError("parallel is " + std::to_string(options.parallel) + ", expected 1.." +
                                   std::to_string(kMaxParallel));
    }
    if (config_.sound_positions() && (options.sounds < 1 || options.sounds > kMaxParallel)) {
        throw InvalidArgumentError("sounds is " + std::to_string(options.sounds) + ", expected 1.." +
                                   std::to_string(kMaxParallel));
    }
    sequences_.resize(options.parallel);
    chunk_ = std::clamp(options.chunk ? options.chunk : device_->traits().prompt_rows, 1u, context_);
    const std::uint64_t slots = options.parallel;
    StepBuffers& s = step_;
    s.kv_types = options.kv_types;
    s.max_pages = pages_for(context_);
    s.history_stride = context_ + 1;
    // Batch tables, and a step with a row of every sequence, may have more rows than a small chunk.
    s.max_rows = std::max({chunk_, device_->traits().max_batch_rows, options.parallel});
    // An image that is not to be split may stand beside a row of each other sequence.
    if (config_.whole_image_rows) s.max_rows = std::max(s.max_rows, config_.whole_image_rows + options.parallel);
    s.max_logits = std::max(std::min(s.max_rows, kLogitsRows), options.parallel);
    cache_ = std::make_unique<Cache>(shared_, options, chunk_, memory_.weights);
    if (config_.sound_positions()) sounds_ = std::make_unique<Sounds>(shared_, options);

    model_->upload_frequencies(*device_);
    const auto shared = [&](std::initializer_list<std::uint64_t> sizes) {
        return own(checked_product(sizes), &MemoryUse::scratch);
    };
    const std::uint64_t vocab = config_.vocab_size;
    s.rows = shared({s.max_rows, sizeof(Row)});
    if (config_.has_axes()) s.positions = shared({s.max_rows, kPositionAxes, sizeof(u32)});
    s.logit_rows = shared({s.max_logits, sizeof(u32)});
    s.history = shared({slots, s.history_stride, sizeof(u32)});
    s.copies = shared({2, sizeof(u32)});
    s.logits = own(checked_product({s.max_logits, vocab, sizeof(float)}), &MemoryUse::scratch, MemoryKind::kDevice);
    s.scaled = own(checked_product({s.max_logits, 2, vocab, sizeof(float)}), &MemoryUse::scratch, MemoryKind::kDevice);
    s.sampled = shared({s.max_logits, sizeof(u32)});
    s.sampler = shared({slots, sizeof(SamplerState)});
    s.bias = shared({slots, kMaxLogitBias, sizeof(LogitBias)});
    s.breakers = shared({slots, breaker_words(config_.vocab_size), sizeof(u32)});
    s.mask = shared({s.max_logits, mask_words(config_.vocab_size), sizeof(u32)});
    s.slots = shared({slots, sizeof(SlotState)});
    s.control = shared({sizeof(Control)});
    s.logprobs = shared({kLogprobRecords, sizeof(LogprobRecord)});
    if (drafts()) drafter_ = std::make_unique<DraftHead>(shared_, inputs_);

    // An adapter of every layer, in memory that no command is given.
    AdapterPlan adapters;
    std::array<std::byte, 6> places{};
    const auto some = [&](std::size_t i) { return Binding{{.handle = &places.at(i), .size = 64}}; };
    adapters.parts.assign(model_->linears().size(), {.max_rank = 1});
    adapters.slots = some(0);
    adapters.choices = some(1);
    for (std::size_t i = 0; i < adapters.scratch.size(); ++i) adapters.scratch[i] = some(2 + i);
    allocate_activations(
        s.max_rows, [this](const PlanContext& plan) { return tables(plan); },
        [&](const PlanContext& plan) {
            PlanContext adapted = plan;
            adapted.adapters = &adapters;
            return tables(adapted);
        },
        options.activations_apart);
}

std::vector<DispatchTable> Engine::tables(const PlanContext& plan) const {
    // What is made when it is needed first has no memory yet.
    StepBuffers step = plan.step;
    std::byte place{};
    const Binding some{{.handle = &place, .size = 64}};
    for (Binding* b : {&step.encoded, &step.sources, &step.ends, &step.aligned}) {
        if (!*b) *b = some;
    }
    step.heads.resize(config_.blocks.size(), some);
    step.aligned_rows = std::max(step.aligned_rows, 1u);
    const PlanContext all{plan.device, plan.config, plan.activations, step, plan.stream, plan.adapters};
    const bool drafts = drafter_ && !plan.adapters;  // no adapter changes a head that drafts
    std::vector<DispatchTable> out;
    for (const Phase phase : {Phase::kDecode, Phase::kBatch, Phase::kPrefill}) {
        out.push_back(model_->body(all, phase));
        if (!drafts) continue;
        if (model_->drafter()->keeps()) out.push_back(model_->keep_for_drafts(all, phase));
        for (const bool first : {true, false}) out.push_back(model_->draft(all, phase, first));
    }
    if (config_.encoded_parts) out.push_back(model_->body(all, Phase::kEncoded));
    if (config_.aligned_heads()) out.push_back(model_->body(all, Phase::kAligned));
    for (const bool one_row : {true, false}) {
        out.push_back(model_->tail(all, {.one_row = one_row}));
        if (drafts) out.push_back(model_->draft_tail(all, {.one_row = one_row}, false));
        if (drafts && common_tokens()) out.push_back(model_->draft_tail(all, {.one_row = one_row}, true));
    }
    return out;
}

// ---- programs ---------------------------------------------------------------------------------

const Program& Engine::body(Phase phase, bool adapted) {
    if (phase == Phase::kEncoded) inputs_.reserve();
    return adapted ? adapters_.body(phase) : programs_.body(plan(), phase);
}

const Program& Engine::tail(const TailKey& key, bool adapted) {
    return adapted && adapters_.changes_tail() ? adapters_.tail(key) : programs_.tail(plan(), key);
}

// ---- sequences ------------------------------------------------------------------------------------

std::optional<std::uint32_t> Engine::open(std::uint32_t sound) {
    const auto slot = sequences_.free_slot();
    if (!slot) return std::nullopt;
    Sequence fresh;
    cache_->open(fresh);
    fresh.open = true;
    fresh.sound = sound;
    if (sounds_) sounds_->hold(sound);
    sequences_[*slot] = std::move(fresh);
    return slot;
}

std::uint32_t Engine::take_slot(std::uint32_t sound) {
    if (const auto slot = open(sound)) return *slot;
    throw DeviceError("all " + std::to_string(parallel()) + " sequences are in use");
}

void Engine::close(std::uint32_t slot) {
    Sequence& s = sequences_.opened(slot);
    cache_->drop(slot);
    if (sounds_) sounds_->release(s.sound);
    s = {};
}

std::uint32_t Engine::fork(std::uint32_t slot) {
    Sequence& from = sequences_.opened(slot);
    const std::uint32_t fresh = take_slot(from.sound);
    Sequence& to = sequences_[fresh];
    try {
        cache_->share(slot, fresh);
    } catch (...) {
        close(fresh);
        throw;
    }
    to.known = from.known;
    to.prompt = from.prompt;
    to.sampler = from.sampler;
    to.plain = from.plain;
    to.ruled = from.ruled;
    to.root = from.root;
    to.contents = from.contents;
    to.inputs = from.inputs;
    to.next_position = from.next_position;
    adapters_.choose(fresh, from.adapter);
    std::copy_n(shared_.history(slot), from.known, shared_.history(fresh));
    const auto same = [&](const Binding& buffer, std::uint64_t bytes) {
        std::memcpy(buffer.host() + fresh * bytes, buffer.host() + slot * bytes, bytes);
    };
    same(step_.sampler, sizeof(SamplerState));
    same(step_.bias, kMaxLogitBias * sizeof(LogitBias));
    if (to.sampler.has_dry_breakers) same(step_.breakers, breaker_words(config_.vocab_size) * sizeof(u32));
    if (to.ruled) {
        same(step_.rules, sizeof(SpeechRules));
        same(step_.forbidden, 2 * mask_words(config_.vocab_size) * sizeof(u32));
    }
    return fresh;
}

void Engine::check_ids(std::span<const std::uint32_t> ids) const {
    if (ids.empty()) throw InvalidArgumentError("the prompt is empty: at least one token is needed");
    if (ids.size() > context_) {
        const std::string most = std::to_string(config_.context_length);
        throw ContextLengthError(
            "the prompt has " + std::to_string(ids.size()) + " tokens, the context holds " + std::to_string(context_) +
            (context_ < config_.context_length ? "; load the model with a larger one, at most " + most
                                               : ", all that the model was trained for"));
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] >= config_.vocab_size) {
            throw InvalidArgumentError("the token id at index " + std::to_string(i) + " is " + std::to_string(ids[i]) +
                                       ", outside the vocabulary of " + std::to_string(config_.vocab_size));
        }
    }
}

std::uint32_t Engine::begin(std::uint32_t slot, const Prefix& prompt, const SamplerSettings& settings, bool reuse,
                            SequenceInputs inputs, AdapterChoice adapter) {
    Sequence& s = sequences_.opened(slot);
    const auto ids = prompt.ids;
    check_ids(ids);
    if (prompt.contents.size() > ids.size()) {
        throw InvalidArgumentError("contents of " + std::to_string(prompt.contents.size()) +
                                   " positions, of a sequence of " + std::to_string(ids.size()));
    }
    inputs_.check(prompt, inputs);
    adapters_.check(adapter);
    if (!inputs.rows.empty()) body(Phase::kEncoded);
    std::vector<std::uint64_t> contents(prompt.contents.begin(), prompt.contents.end());
    const std::vector<PageKey> keys = keys_of({ids.first(ids.size() - 1), 0, contents});
    cache_->drop(slot);
    s.root = prompt.root;
    adapters_.choose(slot, adapter);
    s.contents = std::move(contents);
    s.inputs = std::move(inputs);
    s.next_position = next_position(s.inputs);
    std::ranges::copy(ids, shared_.history(slot));
    s.prompt = s.known = static_cast<std::uint32_t>(ids.size());
    s.ruled = false;
    configure(slot, settings);
    // The last token always runs, since its logits are needed.
    if (reuse) cache_->take_cached(slot, keys);
    return s.length;
}

void Engine::configure(std::uint32_t slot, const SamplerSettings& settings) {
    Sequence& s = sequences_.opened(slot);
    s.sampler = settings.state;
    s.sampler.n_bias = static_cast<std::uint32_t>(settings.bias.size());
    s.plain = settings.plain();
    step_.sampler.host<SamplerState>()[slot] = s.sampler;
    std::ranges::copy(settings.bias, step_.bias.host<LogitBias>() + std::size_t{slot} * kMaxLogitBias);
    const std::size_t words = breaker_words(config_.vocab_size);
    std::ranges::copy(settings.breakers, step_.breakers.host<u32>() + slot * words);
}

void Engine::rerun_last(std::uint32_t slot) {
    Sequence& s = sequences_.opened(slot);
    if (s.length == 0 || s.length != s.known) return;
    cache_->go_back(slot, s.length - 1);
}

void Engine::extend(std::uint32_t slot, std::span<const std::uint32_t> ids) {
    Sequence& s = sequences_.opened(slot);
    check_ids(ids);
    if (s.known == 0) throw InvalidArgumentError("slot " + std::to_string(slot) + " has no sequence to extend");
    if (ids.size() > context_ - std::min(s.known, context_)) {
        throw ContextLengthError("slot " + std::to_string(slot) + " has " + std::to_string(s.known) + " tokens and " +
                                 std::to_string(ids.size()) + " more; the context holds " + std::to_string(context_));
    }
    std::ranges::copy(ids, shared_.history(slot) + s.known);
    s.known += static_cast<std::uint32_t>(ids.size());
}

std::uint32_t Engine::truncate(std::uint32_t slot, std::uint32_t n) {
    Sequence& s = sequences_.opened(slot);
    if (n > s.length) {
        throw InvalidArgumentError("cannot truncate to " + std::to_string(n) + " tokens: the cache holds " +
                                   std::to_string(s.length));
    }
    cache_->go_back(slot, n);
    s.known = s.prompt = n;
    s.contents.resize(std::min<std::size_t>(s.contents.size(), n));
    if (s.inputs.positions.size() > n) {
        s.inputs.positions.resize(n);
        s.next_position = next_position(s.inputs);
    }
    // Some that are cut may have to be run again; which of them stand in the sequence its contents say.
    std::erase_if(s.inputs.rows, [&](const PlacedRows& placed) { return placed.start >= n; });
    return s.length;
}

// ---- steps ------------------------------------------------------------------------------------

Control& Engine::begin_control(std::uint32_t active) {
    auto& control = *step_.control.host<Control>();
    control.stop = 0;
    control.active = active;
    for (Sequence& s : sequences_) s.last_row = kNoRow;
    return control;
}

std::uint32_t Engine::replay_step(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile) {
    const std::uint32_t done = device_->replay(chain, control, poll, meanwhile);
    // Not before the replay: who came since the step was planned ends its chain too.
    __atomic_store_n(&control.yield, 0u, __ATOMIC_RELAXED);
    return done;
}

void Engine::yield() { __atomic_store_n(&step_.control.host<Control>()->yield, 1u, __ATOMIC_RELAXED); }

void Engine::place(std::uint32_t row, std::uint32_t slot, std::uint32_t n, std::uint32_t drafts) {
    Sequence& s = sequences_[slot];
    for (std::uint32_t i = 0; i < n; ++i) {
        step_.rows.host<Row>()[row + i] = {slot, s.length + i};
        if (sounds_) step_.sound_rows.host<Row>()[row + i] = {s.sound, 0};
    }
    inputs_.place(row, s, n);
    if (!cache_->has_states()) return;
    cache_->begin_rows(slot, n, drafts);
    step_.slots.host<SlotState>()[slot] = {};
}

std::uint32_t Engine::end_of(const Part& part, std::uint32_t steps) {
    const Sequence& s = sequences_.opened(part.slot);
    if (steps == 0) throw InvalidArgumentError("a step has 0 steps, expected at least 1");
    const std::uint64_t end = std::uint64_t{s.length} + part.rows - 1 + (1 + part.drafts.size()) * steps;
    if (part.rows == 0 || s.length + std::uint64_t{part.rows} > s.known) {
        throw InvalidArgumentError("slot " + std::to_string(part.slot) + " has " + std::to_string(s.known - s.length) +
                                   " tokens to run, not " + std::to_string(part.rows));
    }
    if (part.sample && s.length + part.rows != s.known) {
        throw InvalidArgumentError("a token is sampled only when all known ones are run");
    }
    if (!part.drafts.empty() && !part.sample) {
        throw InvalidArgumentError("drafts follow the last known token, and are run only where a token is sampled");
    }
    if (end > context_) {
        throw ContextLengthError("slot " + std::to_string(part.slot) + " would need " + std::to_string(end) +
                                 " positions, the context holds " + std::to_string(context_));
    }
    return static_cast<std::uint32_t>(end);
}

bool Engine::reserve(const Part& part, std::uint32_t steps) {
    const std::uint32_t end = end_of(part, steps);
    return cache_->make_writable(part.slot, sequences_[part.slot].length, end);
}

void Engine::take_pages(const Part& part, std::uint32_t steps) {
    const std::uint32_t end = end_of(part, steps);
    cache_->take(part.slot, sequences_[part.slot].length, end);
}

void Engine::check_step(std::span<const Part> parts, std::uint32_t steps) {
    for (const Part& part : parts) {
        const std::uint32_t end = end_of(part, steps);
        cache_->check_step(part.slot, end);
        inputs_.check_whole_images(sequences_[part.slot], part.rows);
    }
    check_weights();
}

void Engine::begin_sampling(const Part& part, Control& control, TailKey& key) {
    const Sequence& s = sequences_[part.slot];
    step_.slots.host<SlotState>()[part.slot] = {0, 0, part.limit};
    step_.sampler.host<SamplerState>()[part.slot].masked = 0;
    ++control.active;
    if (!s.plain) key.sampling = Sampling::kSampled;
    key.logprobs = key.logprobs || s.sampler.want_logprobs;
    key.rules = key.rules || s.ruled;
}

std::vector<Produced> Engine::step(std::span<const Part> parts, std::uint32_t steps, const Poll& poll,
                                   const Meanwhile& masks) {
    if (parts.empty() || cancelled_.exchange(false)) return std::vector<Produced>(parts.size());
    check_step(parts, steps);
    std::vector<Part> shortened;
    if (cache_->has_states()) {
        shortened.assign(parts.begin(), parts.end());
        for (Part& part : shortened) steps = cache_->shorten(part, steps);
        parts = shortened;
    }
    auto* logit_rows = step_.logit_rows.host<std::uint32_t>();
    ReplayArgs args{.rows = 0, .logits = 0, .keys = 0};
    TailKey key{.sampling = masks ? Sampling::kSampled : Sampling::kGreedy};
    Control& control = begin_control(0);
    bool each_is_one = true;
    const bool encoded = std::ranges::any_of(
        parts, [&](const Part& part) { return inputs_.is_encoded(sequences_[part.slot], part.rows); });
    for (const Part& part : parts) {
        Sequence& s = sequences_.opened(part.slot);
        const auto n = static_cast<std::uint32_t>(part.rows + part.drafts.size());
        const std::uint32_t logits = part.sample ? 1 + static_cast<std::uint32_t>(part.drafts.size()) : 0;
        if (args.rows + std::uint64_t{n} > step_.max_rows || args.logits + logits > step_.max_logits) {
            throw InvalidArgumentError("a step has more than " + std::to_string(step_.max_rows) + " rows, or " +
                                       std::to_string(step_.max_logits) + " of them with logits");
        }
        if (steps > 1 && (n != 1 || !part.sample)) throw InvalidArgumentError("a chain samples a token in every row");
        std::ranges::copy(part.drafts, shared_.history(part.slot) + s.known);
        place(args.rows, part.slot, n, n - part.rows);
        for (std::uint32_t i = 0; i < logits; ++i) logit_rows[args.logits + i] = args.rows + n - logits + i;
        s.first_logits = args.logits;
        s.n_logits = logits;
        if (part.sample) begin_sampling(part, control, key);
        args.rows += n;
        args.logits += logits;
        each_is_one = each_is_one && n == 1;
        args.keys = std::max(args.keys, s.length + n);
    }
    if (key.logprobs) steps = std::min(steps, std::max(kLogprobRecords / std::max(args.logits, 1u), 1u));
    if (each_is_one) args.sequences = args.rows;
    key.one_row = args.logits == 1;
    StepSegments segments;
    const bool adapted = std::ranges::any_of(parts, [&](const Part& part) { return has_adapter(part.slot); });
    segments.add(body(encoded ? Phase::kEncoded : shared_.phase_for(args.rows), adapted), args);
    if (args.logits) segments.add(tail(key, adapted), args);
    add_keeping(segments, args);
    const Poll stop = stopping(poll);
    Meanwhile meanwhile;
    if (masks && args.logits) {
        meanwhile = [&] {
            const bool told = masks();
            interrupted_ = interrupted_ || !told;
            return told;
        };
    }
    const Chain chain{.segments = segments.get(), .times = steps};
    const std::uint32_t done = replay_step(chain, control, stop, meanwhile);
    const bool whole = done == steps || !interrupted_;
    if (!whole) cancelled_ = false;
    std::vector<Produced> out;
    std::uint32_t logit = 0, row = 0;
    for (const Part& part : parts) {
        out.push_back(collect(part, logit, part.drafts.empty() ? args.logits : 1, done != 0));
        // Drafts that held are stashed yet.
        cache_->settle(part.slot, whole,
                       part.drafts.empty() ? sequences_[part.slot].length : cache_->span_of(part.slot).to);
        cache_->pass(part.slot);
        const auto sampled = static_cast<std::uint32_t>(out.back().ids.size());
        // A chain has rows of its last step alone.
        if (whole && sampled != 0 && (steps == 1 || sampled == done)) {
            sequences_[part.slot].last_row = steps == 1 ? row + part.rows + sampled - 2 : row;
        }
        row += part.rows + static_cast<std::uint32_t>(part.drafts.size());
        if (part.sample) logit += 1 + static_cast<std::uint32_t>(part.drafts.size());
    }
    return out;
}

void Engine::set_mask(std::uint32_t slot, std::span<const std::uint32_t> masks) {
    const Sequence& s = sequences_.opened(slot);
    const std::uint32_t n = mask_words(config_.vocab_size);
    if (masks.size() < std::size_t{s.n_logits} * n) {
        throw InvalidArgumentError("masks for " + std::to_string(s.n_logits) + " tokens have " + std::to_string(n) +
                                   " words each, not " + std::to_string(masks.size()) + " in all");
    }
    masks = masks.first(std::size_t{s.n_logits} * n);
    const std::uint32_t last = config_.vocab_size % 32 ? (1u << config_.vocab_size % 32) - 1 : ~0u;
    for (std::size_t first = 0; first < masks.size(); first += n) {
        const auto mask = masks.subspan(first, n);
        const bool any = (mask.back() & last) != 0 ||
                         std::ranges::any_of(mask.first(n - 1), [](std::uint32_t word) { return word != 0; });
        if (!any) throw InvalidArgumentError("the mask of slot " + std::to_string(slot) + " allows no token");
    }
    std::ranges::copy(masks, step_.mask.host<std::uint32_t>() + std::size_t{s.first_logits} * n);
    step_.sampler.host<SamplerState>()[slot].masked = 1;
}

Produced Engine::collect(const Part& part, std::uint32_t index, std::uint32_t stride, bool ran) {
    Produced out;
    Sequence& s = sequences_[part.slot];
    const std::uint32_t first = s.length + part.rows;  // where sampled tokens begin
    const std::uint32_t n = part.sample ? step_.slots.host<SlotState>()[part.slot].produced : 0;
    if (n == 0) {
        if (ran && !part.sample) s.length = first;
        cache_->publish(part.slot, false);
        return out;
    }
    // The last token sampled is not in the cache, those before it are.
    s.length = first + n - 1;
    s.known = s.length + 1;
    const std::uint32_t* ids = shared_.history(part.slot) + first;
    out.ids.assign(ids, ids + n);
    if (s.sampler.want_logprobs) {
        const auto* records = step_.logprobs.host<LogprobRecord>() + index;
        for (std::uint32_t i = 0; i < n; ++i) out.logprobs.push_back(records[std::size_t{i} * stride]);
    }
    out.ended = step_.slots.host<SlotState>()[part.slot].stopped == kStoppedAtEnd;
    cache_->publish(part.slot, false);
    return out;
}

// ---- its parts --------------------------------------------------------------------------------

std::vector<std::vector<std::uint32_t>> Engine::draft(std::span<const Wish> wishes, const Poll& poll, bool common) {
    if (!drafter_) throw InvalidArgumentError("this model has no head that drafts");
    check_weights();
    return drafter_->draft(wishes, stopping(poll), common);
}

Sounds& Engine::sounds() {
    if (!sounds_) throw UnsupportedError("this model hears nothing: it has no sounds and no rules of transcripts");
    return *sounds_;
}

void Engine::set_rules(std::uint32_t slot, const SpeechRules& rules, std::span<const std::uint32_t> never,
                       std::span<const std::uint32_t> not_first) {
    sounds().set_rules(slot, rules, never, not_first);
}

}  // namespace akunu
