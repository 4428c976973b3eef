#include "engine/engine.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "engine/records.h"

namespace akunu {

namespace {

constexpr std::uint32_t kLogprobRecords = 4096;  // of all steps of a call

ModelConfig drawing(ModelConfig config) {
    if (config.encoder) throw UnsupportedError("this model makes vectors, it draws no tokens");
    if (config.audio) throw UnsupportedError("this model hears, it draws no tokens");
    return config;
}

}  // namespace

Engine::Engine(std::shared_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
               const EngineOptions& options, const Progress& progress)
    : LoadedModel(std::move(device), drawing(std::move(config)), std::move(source), options.context, progress) {
    allocate(options);
    // What every generation needs; other tables are built when first asked for.
    for (const Phase phase : {Phase::kDecode, Phase::kBatch, Phase::kPrefill}) body(phase);
    tail({});
}

void Engine::allocate(const EngineOptions& options) {
    if (!device_->supports_kv(options.kv_dtype)) {
        throw UnsupportedError("KV cache type '" + std::string(dtype_info(options.kv_dtype).name) +
                               "' is not supported by device " + device_->name());
    }
    if (options.parallel < 1 || options.parallel > kMaxParallel) {
        throw InvalidArgumentError("parallel is " + std::to_string(options.parallel) + ", expected 1.." +
                                   std::to_string(kMaxParallel));
    }
    sequences_.resize(options.parallel);
    chunk_ = std::clamp(options.chunk, 1u, context_);
    const std::uint64_t slots = options.parallel;
    StepBuffers& s = step_;
    s.kv_dtype = options.kv_dtype;
    s.max_pages = pages_for(context_);
    s.history_stride = context_ + 1;
    // Batch tables, and a step with a row of every sequence, may have more rows than a small chunk.
    s.max_rows = std::max({chunk_, device_->traits().max_batch_rows, options.parallel});
    s.max_logits = std::max(std::min(s.max_rows, kLogitsRows), options.parallel);
    allocate_pages(options);
    if (config_.cross) allocate_sounds(options);

    allocate_activations(s.max_rows);
    const auto shared = [&](std::initializer_list<std::uint64_t> sizes) {
        return own(checked_product(sizes), &MemoryUse::scratch);
    };
    const std::uint64_t vocab = config_.vocab_size;
    s.rows = shared({s.max_rows, sizeof(Row)});
    s.logit_rows = shared({s.max_logits, sizeof(u32)});
    s.pages = shared({slots, s.max_pages, sizeof(u32)});
    s.history = shared({slots, s.history_stride, sizeof(u32)});
    s.copies = shared({2, sizeof(u32)});
    s.logits = own(checked_product({s.max_logits, vocab, sizeof(float)}), &MemoryUse::scratch, MemoryKind::kDevice);
    s.scaled = own(checked_product({s.max_logits, 2, vocab, sizeof(float)}), &MemoryUse::scratch, MemoryKind::kDevice);
    s.sampled = shared({s.max_logits, sizeof(u32)});
    s.sampler = shared({slots, sizeof(SamplerState)});
    s.bias = shared({slots, kMaxLogitBias, sizeof(LogitBias)});
    s.mask = shared({s.max_logits, mask_words(config_.vocab_size), sizeof(u32)});
    s.slots = shared({slots, sizeof(SlotState)});
    s.control = shared({sizeof(Control)});
    s.logprobs = shared({kLogprobRecords, sizeof(LogprobRecord)});
}

void Engine::allocate_pages(const EngineOptions& options) {
    const RecordLayout layout(model_->kv_page_bytes(*device_, options.kv_dtype));
    page_bytes_ = std::max<std::uint64_t>(layout.end, 64);
    step_.page_words = static_cast<std::uint32_t>(page_bytes_ / 4);
    // One text must be able to fill the context, and a page that it shares be copied.
    const std::uint64_t least = std::uint64_t{step_.max_pages} + 1;
    const std::uint64_t all = checked_product({options.parallel, step_.max_pages}) + options.parallel;
    std::uint64_t pages = std::max(least, std::min(all, device_->memory() / 2 / page_bytes_));
    if (options.kv_memory) {
        pages = options.kv_memory / page_bytes_;
        if (pages < least) {
            throw InvalidArgumentError("kv_memory is " + std::to_string(options.kv_memory) + " bytes; a context of " +
                                       std::to_string(context_) + " tokens needs " +
                                       std::to_string(least * page_bytes_));
        }
    }
    if (pages >= PagePool::kNone) throw InvalidArgumentError("kv_memory holds too many pages");
    step_.cache = own(checked_product({pages, page_bytes_}), &MemoryUse::kv_cache, MemoryKind::kDevice);
    step_.kv = layout.in(step_.cache);
    allocate_states(step_.cache.buffer.size);
    pool_ = std::make_unique<PagePool>(static_cast<std::uint32_t>(pages), checkpoints_.get());
}

void Engine::allocate_sounds(const EngineOptions& options) {
    if (options.sounds < 1 || options.sounds > kMaxParallel) {
        throw InvalidArgumentError("sounds is " + std::to_string(options.sounds) + ", expected 1.." +
                                   std::to_string(kMaxParallel));
    }
    sounds_.resize(options.sounds);
    StepBuffers& s = step_;
    const RecordLayout layout(model_->sound_page_bytes(*device_, s.kv_dtype));
    s.sound_page_words = static_cast<std::uint32_t>(layout.end / 4);
    s.sound_max_pages = pages_for(config_.cross->positions);
    const std::uint64_t pages = checked_product({options.sounds, s.sound_max_pages});
    const Binding cache = own(checked_product({pages, layout.end}), &MemoryUse::kv_cache, MemoryKind::kDevice);
    s.sound_kv = layout.in(cache);
    s.sound_pages = own(pages * sizeof(u32), &MemoryUse::scratch);
    std::iota(s.sound_pages.host<u32>(), s.sound_pages.host<u32>() + pages, 0u);
    s.sound_rows = own(checked_product({s.max_rows, sizeof(Row)}), &MemoryUse::scratch);
    s.rules = own(options.parallel * sizeof(SpeechRules), &MemoryUse::scratch);
    s.forbidden =
        own(checked_product({options.parallel, 2, mask_words(config_.vocab_size), sizeof(u32)}), &MemoryUse::scratch);
}

void Engine::allocate_aligned() {
    StepBuffers& s = step_;
    if (s.aligned_rows) return;
    s.aligned_rows = std::min(s.max_rows, kLogitsRows);
    std::size_t all = 0;
    for (const auto& heads : config_.cross->aligned) {
        s.heads.push_back(heads.empty() ? Binding{} : own(heads.size() * sizeof(u32), &MemoryUse::scratch));
        std::ranges::copy(heads, s.heads.back().host<u32>());
        all += heads.size();
    }
    s.aligned =
        own(checked_product({all, s.aligned_rows, config_.cross->positions, sizeof(float)}), &MemoryUse::scratch);
}

// ---- programs ---------------------------------------------------------------------------------

const Program& Engine::body(Phase phase) {
    if (phase == Phase::kBatch && device_->traits().max_batch_rows <= 1) phase = Phase::kPrefill;
    auto& p = bodies_[phase];
    if (!p) p = device_->compile(model_->body(plan(), phase));
    return *p;
}

const Program& Engine::tail(const TailKey& key) {
    auto& p = tails_[key];
    if (!p) p = device_->compile(model_->tail(plan(), key));
    return *p;
}

Phase Engine::phase_for(std::uint32_t rows) const {
    if (rows == 1) return Phase::kDecode;
    return rows <= device_->traits().max_batch_rows ? Phase::kBatch : Phase::kPrefill;
}

// ---- sequences and their pages ----------------------------------------------------------------

std::uint32_t* Engine::history(std::uint32_t slot) const {
    return step_.history.host<std::uint32_t>() + std::size_t{slot} * step_.history_stride;
}

Sequence& Engine::opened(std::uint32_t slot) {
    if (slot >= sequences_.size() || !sequences_[slot].open) {
        throw InvalidArgumentError("slot " + std::to_string(slot) + " holds no text: open one first");
    }
    return sequences_[slot];
}

std::optional<std::uint32_t> Engine::open(std::uint32_t sound) {
    const auto free = std::ranges::find(sequences_, false, &Sequence::open);
    if (free == sequences_.end()) return std::nullopt;
    if (config_.cross) hold_sound(sound);
    *free = {};
    free->open = true;
    free->sound = sound;
    return static_cast<std::uint32_t>(free - sequences_.begin());
}

void Engine::close(std::uint32_t slot) {
    drop_pages(slot);
    if (config_.cross) release_sound(sequences_[slot].sound);
    sequences_[slot] = {};
}

std::optional<std::uint32_t> Engine::fork(std::uint32_t slot) {
    Sequence& from = opened(slot);
    const auto found = open(from.sound);
    if (!found) return std::nullopt;
    publish(slot, true);
    Sequence& to = sequences_[*found];
    // Pages beyond its tokens are those of one text alone.
    const std::uint32_t shared = pages_for(from.length);
    for (std::uint32_t i = 0; i < shared; ++i) {
        pool_->hold(from.pages[i]);
        add_page(*found, from.pages[i]);
    }
    from.published = to.published = shared;
    if (checkpoints_) copy_state(slot, *found);
    to.state_at = from.state_at;
    to.length = from.length;
    to.known = from.known;
    to.prompt = from.prompt;
    to.sampler = from.sampler;
    to.plain = from.plain;
    to.ruled = from.ruled;
    std::copy_n(history(slot), from.known, history(*found));
    const auto same = [&](const Binding& buffer, std::uint64_t bytes) {
        std::memcpy(buffer.host() + *found * bytes, buffer.host() + slot * bytes, bytes);
    };
    same(step_.sampler, sizeof(SamplerState));
    same(step_.bias, kMaxLogitBias * sizeof(LogitBias));
    if (to.ruled) {
        same(step_.rules, sizeof(SpeechRules));
        same(step_.forbidden, 2 * mask_words(config_.vocab_size) * sizeof(u32));
    }
    return found;
}

std::optional<std::uint32_t> Engine::open_sound() {
    const auto free = std::ranges::find(sounds_, 0u);
    if (free == sounds_.end()) return std::nullopt;
    *free = 1;
    return static_cast<std::uint32_t>(free - sounds_.begin());
}

void Engine::hold_sound(std::uint32_t sound) {
    if (sound >= sounds_.size() || sounds_[sound] == 0) {
        throw InvalidArgumentError("a text of this model is decoded from a sound that was encoded, and there is none");
    }
    ++sounds_[sound];
}

void Engine::release_sound(std::uint32_t sound) { --sounds_[sound]; }

void Engine::close_sound(std::uint32_t sound) {
    if (sound < sounds_.size() && sounds_[sound] != 0) release_sound(sound);
}

std::unique_ptr<Program> Engine::compile_sound(const Activations& activations, const Binding& rows,
                                               std::uint32_t max_rows) const {
    StepBuffers step = step_;
    step.sound_rows = rows;
    step.max_rows = max_rows;
    return device_->compile(model_->sound({*device_, config_, activations, step}));
}

void Engine::add_page(std::uint32_t slot, std::uint32_t page) {
    Sequence& s = sequences_[slot];
    step_.pages.host<std::uint32_t>()[std::size_t{slot} * step_.max_pages + s.pages.size()] = page;
    s.pages.push_back(page);
}

void Engine::release_pages(Sequence& s, std::uint32_t from) {
    // Later pages first: of two pages that nobody holds, the later one is then the one used longer ago.
    while (s.pages.size() > from) {
        pool_->release(s.pages.back());
        s.pages.pop_back();
    }
    s.published = std::min(s.published, from);
}

void Engine::drop_pages(std::uint32_t slot) {
    Sequence& s = opened(slot);
    publish(slot, true);
    if (checkpoints_) keep_checkpoint(slot);
    release_pages(s, 0);
    s.length = s.state_at = 0;
}

void Engine::publish(std::uint32_t slot, bool all) {
    if (config_.cross) return;
    Sequence& s = sequences_[slot];
    const std::uint32_t full = s.length / kPagePositions, last = all ? pages_for(s.length) : full;
    auto* table = step_.pages.host<std::uint32_t>() + std::size_t{slot} * step_.max_pages;
    for (; s.published < last; ++s.published) {
        const std::uint32_t i = s.published, first = i * kPagePositions;
        const std::span tokens(history(slot) + first, std::min<std::uint32_t>(kPagePositions, s.length - first));
        const std::uint32_t parent = i == 0 ? PagePool::kNone : s.pages[i - 1];
        table[i] = s.pages[i] = pool_->publish(parent, s.pages[i], tokens);
    }
}

void Engine::copy_record(std::unique_ptr<Program>& program, const Binding& records, std::uint32_t words,
                         std::uint32_t from, std::uint32_t to) {
    if (!program) program = device_->compile(model_->copies(plan(), records, words));
    auto* pair = step_.copies.host<std::uint32_t>();
    pair[0] = from;
    pair[1] = to;
    const Program* const segment = program.get();
    Control control;
    device_->replay({&segment, 1}, {}, control, {}, {});
}

bool Engine::own_page(std::uint32_t slot, std::uint32_t index) {
    Sequence& s = sequences_[slot];
    if (index >= s.published) return true;  // nobody else has seen it
    const std::uint32_t page = s.pages[index];
    if (!pool_->make_private(page)) {
        const std::uint32_t copy = pool_->acquire();
        if (copy == PagePool::kNone) return false;
        copy_record(page_copies_, step_.cache, step_.page_words, page, copy);
        pool_->release(page);
        s.pages[index] = copy;
        step_.pages.host<std::uint32_t>()[std::size_t{slot} * step_.max_pages + index] = copy;
    }
    s.published = index;
    return true;
}

bool Engine::make_writable(std::uint32_t slot, std::uint32_t from, std::uint32_t to) {
    Sequence& s = sequences_[slot];
    // Writing begins in at most one page that may be known to others: those behind it were released.
    if (from % kPagePositions != 0 && !own_page(slot, from / kPagePositions)) return false;
    while (s.pages.size() < pages_for(to)) {
        const std::uint32_t page = pool_->acquire();
        if (page == PagePool::kNone) return false;
        add_page(slot, page);
    }
    return true;
}

void Engine::check_ids(std::span<const std::uint32_t> ids) const {
    if (ids.empty()) throw InvalidArgumentError("the prompt is empty: at least one token is needed");
    if (ids.size() > context_) {
        throw ContextLengthError("the prompt has " + std::to_string(ids.size()) + " tokens, the context holds " +
                                 std::to_string(context_));
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] >= config_.vocab_size) {
            throw InvalidArgumentError("the token id at index " + std::to_string(i) + " is " + std::to_string(ids[i]) +
                                       ", outside the vocabulary of " + std::to_string(config_.vocab_size));
        }
    }
}

std::uint32_t Engine::begin(std::uint32_t slot, std::span<const std::uint32_t> ids, const SamplerSettings& settings,
                            bool reuse) {
    Sequence& s = opened(slot);
    check_ids(ids);
    drop_pages(slot);
    if (reuse) {
        // The last token always runs, since its logits are needed.
        const PagePool::Match m = pool_->match(ids.first(ids.size() - 1));
        for (const std::uint32_t page : m.pages) add_page(slot, page);
        s.published = static_cast<std::uint32_t>(s.pages.size());
        s.length = s.published * kPagePositions;
        if (m.partial != PagePool::kNone) {
            add_page(slot, m.partial);
            ++s.published;
            s.length += m.partial_tokens;
        }
        if (checkpoints_ && s.length != 0) restore_state(slot, s.pages.back());
    }
    std::ranges::copy(ids, history(slot));
    s.prompt = s.known = static_cast<std::uint32_t>(ids.size());
    configure(slot, settings);
    s.ruled = false;
    return s.length;
}

void Engine::configure(std::uint32_t slot, const SamplerSettings& settings) {
    Sequence& s = opened(slot);
    s.sampler = settings.state;
    s.sampler.n_bias = static_cast<std::uint32_t>(settings.bias.size());
    s.plain = settings.plain();
    step_.sampler.host<SamplerState>()[slot] = s.sampler;
    std::ranges::copy(settings.bias, step_.bias.host<LogitBias>() + std::size_t{slot} * kMaxLogitBias);
}

void Engine::rerun_last(std::uint32_t slot) {
    Sequence& s = opened(slot);
    if (s.length == 0 || s.length != s.known) return;
    go_back(slot, s.length - 1);
}

void Engine::extend(std::uint32_t slot, std::span<const std::uint32_t> ids) {
    Sequence& s = opened(slot);
    check_ids(ids);
    if (s.known == 0) throw InvalidArgumentError("slot " + std::to_string(slot) + " has no text to extend");
    if (ids.size() > context_ - std::min(s.known, context_)) {
        throw ContextLengthError("slot " + std::to_string(slot) + " has " + std::to_string(s.known) + " tokens and " +
                                 std::to_string(ids.size()) + " more; the context holds " + std::to_string(context_));
    }
    std::ranges::copy(ids, history(slot) + s.known);
    s.known += static_cast<std::uint32_t>(ids.size());
}

std::uint32_t Engine::truncate(std::uint32_t slot, std::uint32_t n) {
    Sequence& s = opened(slot);
    if (n > s.length) {
        throw InvalidArgumentError("cannot truncate to " + std::to_string(n) + " tokens: the cache holds " +
                                   std::to_string(s.length));
    }
    go_back(slot, n);
    s.known = s.prompt = n;
    return s.length;
}

bool Engine::read_page(std::span<const std::uint32_t> ids, std::span<std::byte> bytes) const {
    if (ids.empty() || ids.size() % kPagePositions != 0) {
        throw InvalidArgumentError("a page ends at a multiple of " + std::to_string(kPagePositions) + " tokens, not " +
                                   std::to_string(ids.size()));
    }
    check_page(bytes.size());
    const std::uint32_t page = pool_->find(ids);
    if (page == PagePool::kNone) return false;
    device_->download(page_at(page), bytes);
    return true;
}

bool Engine::restore_page(std::uint32_t slot, std::span<const std::byte> bytes) {
    Sequence& s = opened(slot);
    check_page(bytes.size());
    const std::uint32_t index = s.length / kPagePositions, end = (index + 1) * kPagePositions;
    if (end >= s.known) {
        throw InvalidArgumentError("slot " + std::to_string(slot) + " has " + std::to_string(s.known) +
                                   " tokens: a page that ends at " + std::to_string(end) + " leaves none to run");
    }
    const std::uint32_t page = pool_->acquire();
    if (page == PagePool::kNone) return false;
    release_pages(s, index);  // one that the cache holds a part of
    add_page(slot, page);
    device_->upload(page_at(page), bytes);
    s.length = end;
    publish(slot, false);
    return true;
}

void Engine::check_page(std::size_t bytes) const {
    if (checkpoints_) throw UnsupportedError("texts of this model have a state, which pages outside of it lack");
    if (bytes == page_bytes_) return;
    throw InvalidArgumentError("a page has " + std::to_string(page_bytes_) + " bytes, not " + std::to_string(bytes));
}

void Engine::set_rules(std::uint32_t slot, const SpeechRules& rules, std::span<const std::uint32_t> never,
                       std::span<const std::uint32_t> not_first) {
    Sequence& s = opened(slot);
    const std::size_t n = mask_words(config_.vocab_size);
    if (!config_.cross) throw UnsupportedError("only transcripts have such rules, and this model hears nothing");
    if (never.size() != n || not_first.size() != n) {
        throw InvalidArgumentError("a mask has " + std::to_string(std::min(never.size(), not_first.size())) +
                                   " words, expected " + std::to_string(n));
    }
    step_.rules.host<SpeechRules>()[slot] = rules;
    u32* masks = step_.forbidden.host<u32>() + slot * 2 * n;
    std::ranges::copy(never, masks);
    std::ranges::copy(not_first, masks + n);
    s.ruled = true;
}

// ---- steps ------------------------------------------------------------------------------------

Control& Engine::begin_control(std::uint32_t active) {
    auto& control = *step_.control.host<Control>();
    control.stop = 0;
    control.active = active;
    __atomic_store_n(&control.yield, 0u, __ATOMIC_RELAXED);  // others may set it at any time
    return control;
}

void Engine::yield() { __atomic_store_n(&step_.control.host<Control>()->yield, 1u, __ATOMIC_RELAXED); }

void Engine::place(std::uint32_t row, std::uint32_t slot, std::uint32_t n, std::uint32_t drafts) {
    Sequence& s = sequences_[slot];
    for (std::uint32_t i = 0; i < n; ++i) {
        step_.rows.host<Row>()[row + i] = {slot, s.length + i};
        if (config_.cross) step_.sound_rows.host<Row>()[row + i] = {s.sound, 0};
    }
    if (!checkpoints_) return;
    step_.state_spans.host<StateSpan>()[slot] = {s.state_at, s.length + n - drafts};
    step_.slots.host<SlotState>()[slot] = {};
    s.state_at = kLostState;
}

bool Engine::reserve(const Part& part, std::uint32_t steps) {
    const Sequence& s = opened(part.slot);
    const std::uint64_t end = std::uint64_t{s.length} + part.rows + part.drafts.size() + steps - 1;
    if (part.rows == 0 || s.length + std::uint64_t{part.rows} > s.known) {
        throw InvalidArgumentError("slot " + std::to_string(part.slot) + " has " + std::to_string(s.known - s.length) +
                                   " tokens to run, not " + std::to_string(part.rows));
    }
    if (part.sample && s.length + part.rows != s.known) {
        throw InvalidArgumentError("a token is drawn only when all known ones are run");
    }
    if (end > context_) {
        throw ContextLengthError("slot " + std::to_string(part.slot) + " would need " + std::to_string(end) +
                                 " positions, the context holds " + std::to_string(context_));
    }
    return make_writable(part.slot, s.length, static_cast<std::uint32_t>(end));
}

std::vector<Produced> Engine::step(std::span<const Part> parts, std::uint32_t steps, const Poll& poll,
                                   const Meanwhile& masks) {
    if (parts.empty() || cancelled_.exchange(false)) return std::vector<Produced>(parts.size());
    std::vector<Part> shortened;
    if (checkpoints_) {
        shortened.assign(parts.begin(), parts.end());
        for (Part& part : shortened) steps = shorten(part, steps);
        parts = shortened;
    }
    auto* logit_rows = step_.logit_rows.host<std::uint32_t>();
    ReplayArgs args{.rows = 0, .logits = 0, .steps = steps, .keys = 0};
    TailKey key{.draw = masks ? Draw::kSampled : Draw::kGreedy};
    Control& control = begin_control(0);
    for (const Part& part : parts) {
        Sequence& s = opened(part.slot);
        const auto n = static_cast<std::uint32_t>(part.rows + part.drafts.size());
        const std::uint32_t logits = part.sample ? 1 + static_cast<std::uint32_t>(part.drafts.size()) : 0;
        if (args.rows + std::uint64_t{n} > step_.max_rows || args.logits + logits > step_.max_logits) {
            throw InvalidArgumentError("a step has more than " + std::to_string(step_.max_rows) + " rows, or " +
                                       std::to_string(step_.max_logits) + " of them with logits");
        }
        if (s.pages.size() < pages_for(s.length + n + steps - 1)) {
            throw InvalidArgumentError("slot " + std::to_string(part.slot) + " was not reserved for this step");
        }
        if (steps > 1 && (n != 1 || !part.sample)) throw InvalidArgumentError("a chain draws a token in every row");
        std::ranges::copy(part.drafts, history(part.slot) + s.known);
        place(args.rows, part.slot, n, n - part.rows);
        for (std::uint32_t i = 0; i < logits; ++i) logit_rows[args.logits + i] = args.rows + n - logits + i;
        s.first_logits = args.logits;
        s.n_logits = logits;
        if (part.sample) {
            step_.slots.host<SlotState>()[part.slot] = {0, 0, part.limit};
            step_.sampler.host<SamplerState>()[part.slot].masked = 0;
            ++control.active;
            if (!s.plain) key.draw = Draw::kSampled;
            key.logprobs = key.logprobs || s.sampler.want_logprobs;
            key.rules = key.rules || s.ruled;
        }
        args.rows += n;
        args.logits += logits;
        args.keys = std::max(args.keys, s.length + n);
    }
    if (key.logprobs) args.steps = std::min(args.steps, std::max(kLogprobRecords / std::max(args.logits, 1u), 1u));
    key.one_row = args.logits == 1;
    const Program* segments[] = {&body(phase_for(args.rows)), args.logits ? &tail(key) : nullptr};
    const Poll stop = stopping(poll);
    Meanwhile meanwhile;
    if (masks && args.logits) {
        meanwhile = [&] {
            const bool told = masks();
            interrupted_ = interrupted_ || !told;
            return told;
        };
    }
    const std::uint32_t done = device_->replay({segments, args.logits ? 2u : 1u}, args, control, stop, meanwhile);
    const bool whole = done == args.steps || !interrupted_;
    std::vector<Produced> out;
    std::uint32_t logit = 0;
    for (const Part& part : parts) {
        out.push_back(collect(part, logit, args.logits, done != 0));
        if (checkpoints_) settle_state(part, whole);
        if (part.sample) logit += 1 + static_cast<std::uint32_t>(part.drafts.size());
    }
    return out;
}

void Engine::set_mask(std::uint32_t slot, std::span<const std::uint32_t> masks) {
    const Sequence& s = opened(slot);
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

Produced Engine::collect(const Part& part, std::uint32_t index, std::uint32_t logit_rows, bool ran) {
    Produced out;
    Sequence& s = sequences_[part.slot];
    const std::uint32_t first = s.length + part.rows;  // where drawn tokens begin
    const std::uint32_t n = part.sample ? step_.slots.host<SlotState>()[part.slot].produced : 0;
    if (n == 0) {
        if (ran && !part.sample) s.length = first;
        publish(part.slot, false);
        return out;
    }
    // The last token drawn is not in the cache, those before it are.
    s.length = first + n - 1;
    s.known = s.length + 1;
    const std::uint32_t* ids = history(part.slot) + first;
    out.ids.assign(ids, ids + n);
    if (s.sampler.want_logprobs) {
        const auto* records = step_.logprobs.host<LogprobRecord>() + index;
        const std::uint32_t stride = part.drafts.empty() ? logit_rows : 1;
        for (std::uint32_t i = 0; i < n; ++i) out.logprobs.push_back(records[std::size_t{i} * stride]);
    }
    const auto ends = std::span(s.sampler.end_ids).first(s.sampler.n_end_ids);
    out.ended = std::ranges::find(ends, out.ids.back()) != ends.end();
    publish(part.slot, false);
    return out;
}

}  // namespace akunu
