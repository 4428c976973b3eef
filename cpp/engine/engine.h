// Engine: everything of one loaded model. It owns the buffers, compiles the tables, and runs steps of many sequences;
// the cache holds exactly the tokens [0, length) of each.
//
// Which sequences run is the caller's to say, step by step. No two calls may overlap; `cancel` and `yield` may be
// called at any time.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/sampling.h"
#include "engine/adapters.h"
#include "engine/input_squares.h"
#include "engine/loaded_model.h"
#include "engine/pages.h"
#include "engine/profile.h"
#include "engine/sequence.h"

namespace akunu {

struct EngineOptions {
    std::uint32_t context = 0;  // 0: the model's, at most kDefaultContext
    std::uint32_t chunk = 0;    // rows of a step at most; 0: the device's own
    KvTypes kv_types = {};
    std::uint32_t parallel = 8;  // sequences at a time
    // Bytes of all pages and states; 0: those of a context for each sequence, or half of the device's memory.
    std::uint64_t kv_memory = 0;
    std::uint64_t memory =
        0;  // bytes of the model in all; 0: as the device has. Experts without room stay in their file
    std::uint32_t sounds = 1;  // of decoders with cross-attention: sounds at a time
};

constexpr std::uint32_t kMaxParallel = 256;
constexpr std::uint32_t kMaxChain = 256;   // steps of one call
constexpr std::uint32_t kLogitsRows = 32;  // rows whose logits a step can give, whatever the sequences

// Settings of one generation: what the device's sampler reads, and the lists that lie apart from it.
struct SamplerSettings {
    SamplerState state;
    std::vector<LogitBias> bias;
    std::vector<u32> breakers;  // none, or breaker_words(vocab)
    bool plain() const {
        return state.temperature == 0 && bias.empty() && state.repeat_penalty == 1 && state.presence_penalty == 0 &&
               state.frequency_penalty == 0 && state.dry_multiplier == 0;
    }
};

// A text, or the beginning of one, and all that its keys and values follow from.
struct Prefix {
    std::span<const std::uint32_t> ids;
    // What all of it depends on besides the model, such as an adapter, and who may share it: texts of other roots share
    // no page with it.
    std::uint64_t root = 0;
    // Where something other than the token stands at a position, such as a piece of an image, its hash, which is not 0;
    // there may be fewer than tokens.
    std::span<const std::uint64_t> contents = {};

    Prefix(std::span<const std::uint32_t> tokens, std::uint64_t of_root = 0, std::span<const std::uint64_t> others = {})
        : ids(tokens), root(of_root), contents(others) {}
    Prefix(const std::vector<std::uint32_t>& tokens) : ids(tokens) {}
};
std::vector<PageKey> keys_of(const Prefix& text);

// A sequence's part of a step.
struct Part {
    std::uint32_t slot = 0;
    std::uint32_t rows = 1;   // of the tokens that are still to be run, drafts not counted
    bool sample = true;       // draw the next token; only where all known tokens are run
    std::uint32_t limit = 1;  // tokens to draw at most
    std::vector<std::uint32_t> drafts;
};

// Drafts that are wanted for a text.
struct Wish {
    std::uint32_t slot = 0, tokens = 1;
};

// What a part gave.
struct Produced {
    std::vector<std::uint32_t> ids;
    std::vector<LogprobRecord> logprobs;
    bool ended = false;  // the last one is an end-of-generation token
};

// A text whose tokens are to be run, and the positions, in order, after which logits are wanted.
struct Asked {
    std::uint32_t slot = 0;
    std::vector<std::uint32_t> positions;
};

// Who gets what a run computes: position after position, in the order in which they were asked for.
struct RunSinks {
    std::function<void(std::span<const float> logits)> logits;
    std::function<void(const LogprobRecord&)> ranks;  // of what a text's rules allow
    // Weights of the aligned heads, [heads, aligned_rows, positions], for so many more rows.
    std::function<void(std::span<const float> weights, std::uint32_t rows)> aligned;
};

// Of layers with a window, of which a text keeps the last pages only.
struct WindowUse {
    std::uint32_t positions = 0;  // that a row sees
    std::uint32_t pages = 0, held = 0, pinned = 0, cached = 0;
    std::uint32_t most_held = 0;  // by one text
    std::uint64_t page_bytes = 0;
};

struct PageUse {
    std::uint32_t pages = 0, held = 0, pinned = 0, cached = 0;  // those that are pinned are held
    std::uint64_t page_bytes = 0;                               // with those of windows
    std::vector<WindowUse> windows;
    // Of models whose blocks have a state: checkpoints that pages have, and the size of one.
    std::uint32_t checkpoints = 0;
    std::uint64_t state_bytes = 0;
};

// What a page has outside of the engine: what layers without a window keep of its positions, what those of each window
// do, and the state behind it, as far as the model has any. The cache may lack parts, but the first one.
using PageParts = std::vector<std::optional<std::vector<std::byte>>>;
using PartsView = std::span<const std::optional<std::span<const std::byte>>>;

// Which programs, and on what: for plans and profiles. The rows are one text's, which draws after the last; or, with
// `each_draws`, each is that of a text of its own, which draws after it.
struct PhaseRun {
    Phase phase = Phase::kDecode;
    std::uint32_t rows = 1, position = 0;
    bool each_draws = false;
    std::uint32_t texts() const { return each_draws ? rows : 1; }
};

// A command's buffer, by its name in the op's row, and what it holds.
struct Written {
    std::string_view name;
    std::vector<std::byte> bytes;
};

class Engine : public LoadedModel {
  public:
    Engine(std::shared_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
           const EngineOptions& options, const Progress& progress);

    // A slot for a text; nothing when all are taken. With cross-attention it is decoded from a sound.
    std::optional<std::uint32_t> open(std::uint32_t sound = kNoSound);
    // The same; DeviceError when all are taken.
    std::uint32_t take_slot(std::uint32_t sound = kNoSound);
    // Ends a text. Its pages stay to be found by others, until their memory is needed; not those of a text that is
    // decoded from a sound, which are true of that sound alone.
    void close(std::uint32_t slot);
    // A second text with the same tokens, settings and rules, which shares the pages. DeviceError when no slot is left.
    std::uint32_t fork(std::uint32_t slot);

    // Gives a slot a text to go on from, and settings. With `reuse`, pages of any earlier text that begins like it are
    // used again. Returns how many of its tokens the cache holds; at least the last one is to be run.
    // `inputs`: what an encoder made of the text's contents, and rotary positions. `adapter`: the number of one, + 1,
    // which the text's root must stand for.
    std::uint32_t begin(std::uint32_t slot, const Prefix& text, const SamplerSettings& settings, bool reuse,
                        TextInputs inputs = {}, AdapterChoice adapter = {0, 1});
    // The same settings for what comes now.
    void configure(std::uint32_t slot, const SamplerSettings& settings);
    // The last token is to be run again, so that another can be drawn after it.
    void rerun_last(std::uint32_t slot);
    // Appends tokens that are known without being drawn; they are to be run. The text must have begun.
    void extend(std::uint32_t slot, std::span<const std::uint32_t> ids);
    // Goes back to the first n tokens, which must be in the cache. Returns how many of them it holds now: fewer where
    // what a row there would need of states and windows has been given up; the others are to be run again.
    std::uint32_t truncate(std::uint32_t slot, std::uint32_t n);
    // Pages outside of the engine. The last page of a prefix, whole pages that some text begins with; nothing when the
    // cache does not hold it.
    // Parts that are not `wanted` are left out.
    std::optional<PageParts> read_page(const Prefix& text, const std::function<bool(std::size_t)>& wanted = {}) const;
    // The next page of a slot's text as `read_page` gave it, so that its tokens need not be run. False when no page is
    // left. At least the last known token is still to be run.
    bool restore_page(std::uint32_t slot, PartsView parts);
    // To be called behind the last of these pages. Returns how many tokens the cache holds now, so that the text can go
    // on: fewer where the pages came without a part that the next row needs.
    std::uint32_t finish_restoring(std::uint32_t slot);
    // Bytes of the parts of a page.
    std::vector<std::uint64_t> part_bytes() const;
    // The pages of a prefix, whole pages that some text begins with, stay in the cache until they are unpinned as
    // often. False where it does not hold all of them. Throws where a text that fills the context would have no room
    // left, and, of `unpin`, where they are not pinned.
    bool pin(const Prefix& text);
    void unpin(const Prefix& text);
    // What may not come next in a transcript, with masks of the tokens that never come and of those that are not first.
    void set_rules(std::uint32_t slot, const SpeechRules& rules, std::span<const std::uint32_t> never,
                   std::span<const std::uint32_t> not_first);

    // Makes room for the positions that a part writes in `steps` steps; false when no page is left. Throws where the
    // part is none that can be run.
    bool reserve(const Part& part, std::uint32_t steps);
    // The same; DeviceError when no page is left.
    void take_pages(const Part& part, std::uint32_t steps);
    // Runs the parts, at most one for a slot, in one step, or, where each has a single row and draws, in up to `steps`.
    // Every part must be reserved. A replay that was cancelled produces less; calling again goes on. `masks` calls
    // `set_mask` for the texts that have any, while the tokens before are run; where it returns false nothing is drawn.
    std::vector<Produced> step(std::span<const Part> parts, std::uint32_t steps, const Poll& poll,
                               const Meanwhile& masks = {});
    // Within `masks`: only tokens whose bit is set may be drawn after a part's last row, and, in masks that follow,
    // after each of its drafts; those of what the step does not draw, for a checkpoint's sake, are left out. Throws
    // InvalidArgumentError when a mask has no bit.
    void set_mask(std::uint32_t slot, std::span<const std::uint32_t> masks);

    // What adapters may change; one without a name they may not.
    const std::vector<Linear>& linears() const { return model_->linears(); }
    // Adds an adapter and returns its number. Texts that have none are computed as before. UnsupportedError where the
    // device has no kernels for adapters.
    std::uint32_t add_adapter(std::span<const AdapterTensors> tensors);
    // Throws where a text has it, or where there is none of this number.
    void remove_adapter(std::uint32_t number);

    // Whether the model has a head that drafts.
    bool drafts() const { return config_.drafter.has_value(); }
    // Drafts of that head for texts whose last token was drawn by the last step: as many as are wanted, or fewer where
    // a text ends, was in no such step, or was not reserved for them.
    // Of the `common` tokens alone: those with ids below common_tokens(), which is 0 where there is no such choice.
    std::vector<std::vector<std::uint32_t>> draft(std::span<const Wish> wishes, const Poll& poll, bool common = false);
    std::uint32_t common_tokens() const { return model_->common_tokens(); }

    // Runs all tokens of these texts, each once here, that are still to be run; false when it was cancelled.
    bool run(std::span<const Asked> asked, const RunSinks& sinks, const Poll& poll);

    // A place for a sound; nothing when all are taken. It stays as long as a text is decoded from it.
    std::optional<std::uint32_t> open_sound();
    void close_sound(std::uint32_t sound);
    // What an encoder adds to its own commands: the segment that computes what is kept of a sound, whose rows are those
    // of `rows`, up to `max_rows`.
    void reserve_sound(Activations& activations) const { model_->reserve_sound(*device_, activations); }
    std::unique_ptr<Program> compile_sound(const Activations& activations, const Binding& rows,
                                           std::uint32_t max_rows) const;

    // Ends the replay that runs after its step; where none runs, the next one. May be called at any time.
    void yield();

    // Fresh run over `ids`: `row(i, logits)` is called for each position in order. Returns the positions run.
    std::uint32_t for_each_logits(std::span<const std::uint32_t> ids, const Poll& poll,
                                  const std::function<void(std::size_t, std::span<const float>)>& row);
    // The forward pass with sums in it.
    InputSquares input_squares() { return {*device_, model_->body(plan(), Phase::kPrefill)}; }
    // A fresh run over `ids` for each call, whose sums add up. Returns the positions run.
    std::uint32_t add_input_squares(std::span<const std::uint32_t> ids, const Poll& poll, InputSquares& squares);
    // Throws unless `ids` are a prompt that this model and its context can take.
    void check_ids(std::span<const std::uint32_t> ids) const;

    // The programs of a phase with the greedy tail, and what a replay of them is.
    Replay replay_of(const PhaseRun& run);
    // The commands of a phase with the greedy tail; and run as `profile` of profile.h says, of texts that are decoded
    // from `sound` where there is cross-attention.
    std::vector<CommandInfo> commands(const PhaseRun& run) { return describe(*device_, replay_of(run)); }
    std::vector<CommandInfo> profile(const PhaseRun& run, std::size_t repeats = 1, const Poll& poll = {},
                                     std::uint32_t sound = kNoSound);
    // Runs the first `commands` commands of the step that would run all of a slot's tokens that are to be run and draw
    // one, and gives what the last of these commands wrote, the cache apart. The text is as before.
    std::vector<Written> run_prefix(std::uint32_t slot, std::uint32_t commands);

    std::uint32_t chunk() const { return chunk_; }
    // Of a step, at most.
    std::uint32_t max_rows() const { return step_.max_rows; }
    // Rows of a step that draw, or verify a draft, at most.
    std::uint32_t max_logits() const { return step_.max_logits; }
    std::uint32_t sounds() const { return static_cast<std::uint32_t>(sounds_.size()); }
    std::uint32_t parallel() const { return static_cast<std::uint32_t>(sequences_.size()); }
    const KvTypes& kv_types() const { return step_.kv_types; }
    const Sequence& sequence(std::uint32_t slot) const { return sequences_.at(slot); }
    std::span<const std::uint32_t> tokens(std::uint32_t slot) const { return {history(slot), sequences_[slot].length}; }
    PageUse page_use() const;
    // Forgets every text that no slot holds.
    void forget() { pool_->forget(); }
    // Gives the memory of pages that hold nothing back to the system.
    void discard_unused();

  private:
    void allocate(const EngineOptions& options);
    void allocate_cache(const EngineOptions& options);
    // Pages of a window that a text can hold, with one to copy, where its steps have up to so many rows.
    std::uint32_t most_held(std::uint32_t window, std::uint32_t rows) const;
    // A fresh run over `ids`, up to `at_once` rows at a time, each with logits where there is a tail; then `done(first,
    // n)`. Returns the positions run.
    std::uint32_t run_fresh(std::span<const std::uint32_t> ids, std::uint32_t at_once, Segments segments,
                            const Poll& poll, const std::function<void(std::uint32_t, std::uint32_t)>& done);
    void allocate_sounds(const EngineOptions& options);
    void allocate_aligned();
    // Asked by a device during a replay: whether it was cancelled, or `poll` ends it.
    Poll stopping(const Poll& poll) {
        interrupted_ = false;
        return [this, &poll] {
            const bool stop = cancelled_.exchange(false) || (poll && poll());
            interrupted_ = interrupted_ || stop;
            return stop;
        };
    }
    // What device and host share, for a replay that begins with so many texts that draw.
    Control& begin_control(std::uint32_t active);
    std::uint32_t replay_step(Segments segments, const ReplayArgs& args, Control& control, const Poll& poll,
                              const Meanwhile& meanwhile);
    void check_inputs(const Prefix& text, const TextInputs& inputs) const;
    // Whether an encoder made some of a text's next n rows.
    bool is_encoded(const Sequence& s, std::uint32_t n) const;
    // Throws where the next n rows end within an image whose rows see all of it.
    void check_whole_images(const Sequence& s, std::uint32_t n) const;
    void place_inputs(std::uint32_t row, const Sequence& s, std::uint32_t n);
    // The rotary positions of a row that is at position `at` of a text, where sets have axes.
    void place_axes(const StepBuffers& step, std::uint32_t row, const Sequence& s, std::uint32_t at) const;
    void allocate_encoded();
    // Rows from `row` on are a text's next n tokens, the last `drafts` of which may be refused.
    void place(std::uint32_t row, std::uint32_t slot, std::uint32_t n, std::uint32_t drafts = 0);
    void hold_sound(std::uint32_t sound);
    void release_sound(std::uint32_t sound);
    bool replay_run(const ReplayArgs& args, const RunSinks& sinks, const Poll& poll);
    const Program& body(Phase phase, bool adapted = false);
    const Program& tail(const TailKey& key, bool adapted = false);
    PlanContext adapted_plan() const {
        PlanContext context = plan();
        context.adapters = &adapters_->plan();
        return context;
    }
    void forget_adapted();
    void count_adapters();
    // What tables with adapters have besides those without.
    void allocate_activations_again();
    // Of the head that drafts; null where there is none.
    const Program* keeping(Phase phase);
    const Program& draft_body(Phase phase, bool first);
    const Program& draft_tail(const TailKey& key, bool common);
    void allocate_drafts();
    // So many rows of `drafting_`, the first draft of each being the n-th of its text's.
    void place_drafts(std::span<const Wish> wishes, std::uint32_t n);
    // The segments of a step.
    struct StepSegments {
        std::array<const Program*, 3> all{};
        std::size_t n = 0;
        void add(const Program* p) {
            if (p) all.at(n++) = p;
        }
        Segments get() const { return std::span(all).first(n); }
    };
    // Of a step of so many rows, some of which an encoder made.
    Phase phase_for(std::uint32_t rows, bool encoded = false) const;
    std::uint32_t* history(std::uint32_t slot) const;
    // Texts' states. The position after a text's length where a checkpoint of it is to be kept next; what a step leaves
    // out so that it ends there, of a part's rows, and its steps.
    std::uint32_t next_checkpoint(const Sequence& s) const;
    std::uint32_t shorten(Part& part, std::uint32_t steps) const;
    // After a step: the state is where its rows left it, or, where it did not run to its end, at a checkpoint before.
    void settle_state(const Part& part, bool whole);
    // Of the text as it is; after its pages have been published.
    void keep_checkpoint(std::uint32_t slot);
    // Keeps a state, that before `state_at`, for a page that has none: `copy(record)` copies it. Where that throws the
    // page has none, as before.
    void add_checkpoint(std::uint32_t page, std::uint32_t state_at, const std::function<void(std::uint32_t)>& copy);
    void restore_state(std::uint32_t slot, std::uint32_t page);
    // Goes back to the first n tokens, or as many of them as there is a state of.
    void go_back(std::uint32_t slot, std::uint32_t n);
    void copy_state(std::uint32_t from, std::uint32_t to);
    Binding state_of(std::uint32_t record) const { return {step_.states.buffer, record * state_bytes_, state_bytes_}; }
    Sequence& opened(std::uint32_t slot);
    // Gives the slot's pages back; its tokens are to be run again.
    void drop_pages(std::uint32_t slot);

    // The pages of positions [from, to) exist and belong to this text alone; false, or DeviceError, when none is left.
    bool make_writable(std::uint32_t slot, std::uint32_t from, std::uint32_t to);
    void take_pages(std::uint32_t slot, std::uint32_t from, std::uint32_t to);
    bool own_page(std::uint32_t slot, std::uint32_t index);
    // Pages [from, s.pages.size()) are in the slot's page tables.
    void place_pages(std::uint32_t slot, std::uint32_t from);
    void copy_record(std::unique_ptr<Program>& program, const Binding& records, std::uint64_t bytes, std::uint32_t from,
                     std::uint32_t to);
    // Pages that one text needs: it can fill the context, and a page that it shares be copied.
    std::uint32_t least_pages() const { return step_.max_pages + 1; }
    void release_pages(Sequence& s, std::uint32_t from);
    // Gives back what no later row of a text sees.
    void pass_pages(std::uint32_t slot);
    // Holds what the next row sees of windows, which pages have.
    void hold_windows(Sequence& s);
    void check_parts(PartsView parts) const;
    // A text that goes back a little, as one whose last token is run again, finds what it sees from there.
    static constexpr std::uint32_t kGoesBack = kPagePositions;
    // Enters what the cache holds of a text: its full pages, and with `all` the last one too.
    void publish(std::uint32_t slot, bool all);
    // Where the positions end that a part writes in `steps` steps; throws where it is none that can be run.
    std::uint32_t end_of(const Part& part, std::uint32_t steps);
    // What a part gave, and what the cache holds of its text now.
    Produced collect(const Part& part, std::uint32_t index, std::uint32_t logit_rows, bool ran);

    std::map<Phase, std::unique_ptr<Program>> bodies_;
    std::map<TailKey, std::unique_ptr<Program>> tails_;
    // The same for steps in which some text has an adapter.
    std::map<Phase, std::unique_ptr<Program>> adapted_bodies_;
    std::map<TailKey, std::unique_ptr<Program>> adapted_tails_;
    std::unique_ptr<AdapterSlots> adapters_;
    std::uint64_t adapter_bytes_ = 0;
    Binding choices_;
    // What layers that keep equally many positions have: a part of each page, in a cache and page tables of their own.
    // The first group keeps all; of each of the others pages have the record that `records` says.
    struct PageGroup {
        std::uint32_t window = 0, most_held = 0;
        std::uint64_t page_bytes = 0;
        Binding cache, tables;
        std::unique_ptr<PageRecords> records;
        std::unique_ptr<Program> copies;

        std::uint32_t* table(std::uint32_t slot, std::uint32_t max_pages) const {
            return tables.host<std::uint32_t>() + std::size_t{slot} * max_pages;
        }
        std::uint32_t record(std::uint32_t page) const { return records ? records->find(page) : page; }
        Binding at(std::uint32_t record) const { return {cache.buffer, record * page_bytes, page_bytes}; }
    };
    std::span<PageGroup> windows() { return std::span(groups_).subspan(1); }

    class FreshPage;

    // What the rows of drafts are, as programs see it: the step's buffers but for these. A text's row is at the
    // position before its last token, whose state it goes on from, and draws as a row of that token would.
    struct Drafting {
        StepBuffers rows, draws;
        std::map<std::pair<Phase, bool>, std::unique_ptr<Program>> bodies;
        std::map<std::pair<TailKey, bool>, std::unique_ptr<Program>> tails;
        StepBuffers common;  // as `draws`, with logits of which those of the other tokens are -infinity
        std::map<Phase, std::unique_ptr<Program>> keeping;  // of the step's own rows
    };
    std::unique_ptr<Drafting> drafting_;

    std::vector<PageGroup> groups_;
    std::unique_ptr<Program> state_copies_;
    std::uint32_t chunk_ = 0;
    std::uint64_t state_bytes_ = 0;
    bool interrupted_ = false;  // the replay that runs, or the last one
    // Of models whose blocks have a state: which pages have a copy of one, and, for each such record, the position that
    // the state is before. What the text ran since is stashed in it.
    std::unique_ptr<PageRecords> checkpoints_;
    std::vector<std::uint32_t> checkpoint_at_;
    std::unique_ptr<PagePool> pool_;
    std::vector<Sequence> sequences_;
    std::vector<std::uint32_t> sounds_;  // how many hold each: its owner, and texts
};

}  // namespace akunu
