// Engine: everything of one loaded model. It owns the buffers, compiles the tables, and runs steps of many sequences;
// the cache holds exactly the tokens [0, length) of each.
//
// Its parts are classes: `Cache` has pages and states, `Sounds` what decoders read of sounds, `EncodedInputs` rows that
// are no tokens, `DraftHead` the model's own drafts, `Adapters` what is added to products, `Inspector` plans and
// profiles.
//
// Which sequences run is the caller's to say, step by step. No two calls may overlap; `cancel` and `yield` may be
// called at any time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/sampling.h"
#include "engine/cache.h"
#include "engine/draft_head.h"
#include "engine/encoded_inputs.h"
#include "engine/engine_adapters.h"
#include "engine/engine_context.h"
#include "engine/input_squares.h"
#include "engine/sounds.h"
#include "engine/step_programs.h"

namespace akunu {

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

// What a part gave.
struct Produced {
    std::vector<std::uint32_t> ids;
    std::vector<LogprobRecord> logprobs;
    bool ended = false;  // the last one is an end-of-generation token
    // Of a chain whose drafts the model's head writes: how many drafts each of its steps verified, and how many ids
    // each gave.
    std::uint32_t drafts = 0;
    std::vector<std::uint32_t> of_steps;
};

// Steps of a chain, before each of which the model's head writes so many drafts for every sequence. `common`: the
// common tokens alone, where it has such a choice.
struct Drafting {
    std::uint32_t drafts = 1, steps = 1;
    bool common = false;
};

// A sequence whose tokens are to be run, and the positions, in order, after which logits are wanted.
struct LogitsRequest {
    std::uint32_t slot = 0;
    std::vector<std::uint32_t> positions;
};

// Who gets what a run computes: position after position, in the order in which they were asked for.
struct RunSinks {
    std::function<void(std::span<const float> logits)> logits;
    std::function<void(const LogprobRecord&)> ranks;  // of what a sequence's rules allow
    // Weights of the aligned heads, [heads, aligned_rows, positions], for so many more rows.
    std::function<void(std::span<const float> weights, std::uint32_t rows)> aligned;
};

class Engine : public LoadedModel {
  public:
    Engine(std::shared_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
           const EngineOptions& options, const Progress& progress);

    // A slot for a sequence; nothing when all are taken. With cross-attention it is decoded from a sound.
    std::optional<std::uint32_t> open(std::uint32_t sound = kNoSound);
    // Calls `open`, and throws DeviceError when all slots are taken.
    std::uint32_t take_slot(std::uint32_t sound = kNoSound);
    // Ends a sequence. Its pages stay to be found by others, until their memory is needed; not those of a sequence that
    // is decoded from a sound, which are true of that sound alone.
    void close(std::uint32_t slot);
    // A second sequence with the same tokens, settings and rules, which shares the pages. DeviceError when no slot is
    // left.
    std::uint32_t fork(std::uint32_t slot);

    // Gives a slot a prompt to go on from, and settings. With `reuse`, pages of any earlier sequence that begins like
    // it are used again. Returns how many of its tokens the cache holds; at least the last one is to be run.
    // `inputs`: what an encoder made of the prompt's contents, and rotary positions. `adapter`: the number of one, + 1,
    // which the prompt's root must stand for.
    std::uint32_t begin(std::uint32_t slot, const Prefix& prompt, const SamplerSettings& settings, bool reuse,
                        SequenceInputs inputs = {}, AdapterChoice adapter = {0, 1});
    // Gives a slot's sequence other settings from here on.
    void configure(std::uint32_t slot, const SamplerSettings& settings);
    // The last token is to be run again, so that another can be sampled after it.
    void rerun_last(std::uint32_t slot);
    // Appends tokens that are known without being sampled; they are to be run. The sequence must have begun.
    void extend(std::uint32_t slot, std::span<const std::uint32_t> ids);
    // Goes back to the first n tokens, which must be in the cache. Returns how many of them it holds now: fewer where
    // what a row there would need of states and windows has been given up; the others are to be run again.
    std::uint32_t truncate(std::uint32_t slot, std::uint32_t n);
    // What may not come next in a transcript: see `Sounds`.
    void set_rules(std::uint32_t slot, const SpeechRules& rules, std::span<const std::uint32_t> never,
                   std::span<const std::uint32_t> not_first);

    // Makes room for the positions that a part writes in `steps` steps; false when no page is left. Throws where the
    // part is none that can be run.
    bool reserve(const Part& part, std::uint32_t steps);
    // Calls `reserve`, and throws DeviceError when no page is left.
    void take_pages(const Part& part, std::uint32_t steps);
    // Runs the parts, at most one for a slot, in one step, or, where each has a single row and samples, in up to
    // `steps`. Every part must be reserved. A replay that was cancelled produces less; calling again goes on. `masks`
    // calls `set_mask` for the sequences that have any, while the tokens before are run; where it returns false nothing
    // is sampled.
    std::vector<Produced> step(std::span<const Part> parts, std::uint32_t steps, const Poll& poll,
                               const Meanwhile& masks = {});
    // Within `masks`: only tokens whose bit is set may be sampled after a part's last row, and, in masks that follow,
    // after each of its drafts; those of what the step does not sample, for a checkpoint's sake, are left out. Throws
    // InvalidArgumentError when a mask has no bit.
    void set_mask(std::uint32_t slot, std::span<const std::uint32_t> masks);

    // Whether the model has a head that drafts.
    bool drafts() const { return config_.drafter.has_value(); }
    // Its drafts: see `DraftHead`. With `common`, those of the common tokens alone, whose ids are below
    // common_tokens(), which is 0 where there is no such choice.
    std::vector<std::vector<std::uint32_t>> draft(std::span<const Wish> wishes, const Poll& poll, bool common = false);
    std::uint32_t common_tokens() const { return model_->common_tokens(); }

    // Runs parts of one row, each of which samples and was reserved with so many drafts, in up to so many steps that
    // verify drafts of the head. Tokens are those of `step`. Where the head has no state of some sequence to go on
    // from, or a checkpoint is due, it is a step without drafts, and gives one token. A replay that was cancelled
    // produces less.
    std::vector<Produced> draft_and_verify(std::span<const Part> parts, Drafting how, const Poll& poll);

    // Runs all tokens of these sequences, each once here, that are still to be run; false when it was cancelled.
    bool run(std::span<const LogitsRequest> asked, const RunSinks& sinks, const Poll& poll);

    // Ends the replay that runs after its step; where none runs, the next one. May be called at any time.
    void yield();

    // Fresh run over `ids`: `row(i, logits)` is called for each position in order. Returns the positions run.
    std::uint32_t for_each_logits(std::span<const std::uint32_t> ids, AdapterChoice adapter, const Poll& poll,
                                  const std::function<void(std::size_t, std::span<const float>)>& row);
    // The forward pass with sums in it; `adapted`: that of sequences with adapters.
    InputSquares input_squares(bool adapted) {
        return {*device_, model_->body(adapted ? adapters_.plan() : plan(), Phase::kPrefill)};
    }
    // A fresh run over `ids` for each call, whose sums add up. Returns the positions run.
    std::uint32_t add_input_squares(std::span<const std::uint32_t> ids, AdapterChoice adapter, const Poll& poll,
                                    InputSquares& squares);
    // Throws unless `ids` are a prompt that this model and its context can take.
    void check_ids(std::span<const std::uint32_t> ids) const;

    // What sequences keep.
    Cache& cache() { return *cache_; }
    Adapters& adapters() { return adapters_; }
    // The layers that adapters may change; those without a name they may not.
    const std::vector<Linear>& linears() const { return model_->linears(); }
    // UnsupportedError for a model that hears nothing.
    Sounds& sounds();
    // What an encoder of sounds adds to its own activations: see `Sounds::table`.
    void reserve_sound(Activations& activations) const { model_->reserve_sound(*device_, activations); }

    std::uint32_t chunk() const { return chunk_; }
    // Rows of a step, at most.
    std::uint32_t max_rows() const { return step_.max_rows; }
    // Rows of a step that sample, or verify a draft, at most.
    std::uint32_t max_logits() const { return step_.max_logits; }
    std::uint32_t parallel() const { return sequences_.size(); }
    const KvTypes& kv_types() const { return step_.kv_types; }
    const Sequence& sequence(std::uint32_t slot) const { return sequences_.at(slot); }
    std::span<const std::uint32_t> tokens(std::uint32_t slot) const {
        return {shared_.history(slot), sequences_.at(slot).length};
    }

  private:
    friend class Inspector;

    void allocate(const EngineOptions& options);
    // Every table that there may be but for those of samplers, which name the same activations as greedy ones.
    std::vector<DispatchTable> tables(const PlanContext& plan) const;
    // A fresh run over `ids`, up to `at_once` rows at a time, each with logits where there is a tail; then `done(first,
    // n)`. Returns the positions run.
    std::uint32_t run_fresh(std::span<const std::uint32_t> ids, AdapterChoice adapter, std::uint32_t at_once,
                            std::span<const Program* const> programs, const Poll& poll,
                            const std::function<void(std::uint32_t, std::uint32_t)>& done);
    // Asked by a device during a replay: whether it was cancelled, or `poll` ends it. `cancelled_` stays: a replay may
    // be told at its very end, and runs whole; then the next one stops.
    Poll stopping(const Poll& poll) {
        interrupted_ = false;
        return [this, &poll] {
            const bool stop = cancelled_ || (poll && poll());
            interrupted_ = interrupted_ || stop;
            return stop;
        };
    }
    // What device and host share, for a replay that begins with so many sequences that sample.
    Control& begin_control(std::uint32_t active);
    std::uint32_t replay_step(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile);
    // A part samples in the step that is being put together.
    void begin_sampling(const Part& part, Control& control, TailKey& key);
    // Rows from `row` on are a sequence's next n tokens, the last `drafts` of which may be refused.
    void place(std::uint32_t row, std::uint32_t slot, std::uint32_t n, std::uint32_t drafts = 0);
    bool replay_run(const ReplayArgs& args, bool adapted, const RunSinks& sinks, const Poll& poll);
    bool has_adapter(std::uint32_t slot) const { return sequences_.at(slot).adapter.number != 0; }
    // The programs of a step; `adapted`: some sequence of it has an adapter.
    const Program& body(Phase phase, bool adapted = false);
    const Program& tail(const TailKey& key, bool adapted = false);
    // Adds the segment that keeps what drafts need of a step's rows, if they need something.
    void add_keeping(StepSegments& segments, const ReplayArgs& args) {
        const Program* keeping = drafter_ ? drafter_->keeping(shared_.phase_for(args.rows)) : nullptr;
        if (keeping) segments.add(*keeping, args);
    }
    // Where a position ends that a part writes in `steps` steps; throws where it is none that can be run.
    std::uint32_t end_of(const Part& part, std::uint32_t steps);
    // Throws unless a step can run parts that were reserved for so many steps.
    void check_step(std::span<const Part> parts, std::uint32_t steps);
    // The parts with so many drafts, which are to be written. Throws where a head does not draft for them.
    std::vector<Part> with_drafts(std::span<const Part> parts, std::uint32_t drafts) const;
    // As many drafts and steps as there is room for until a checkpoint is due; no drafts where the head has no state of
    // some sequence.
    Drafting shortened(std::vector<Part>& parts, Drafting how) const;
    // What a part gave, and what the cache holds of its sequence now. Its records are the `index`-th and every
    // `stride`-th from there on.
    Produced collect(const Part& part, std::uint32_t index, std::uint32_t stride, bool ran);

    Sequences sequences_;
    const EngineContext shared_;
    EncodedInputs inputs_;
    std::unique_ptr<Cache> cache_;
    std::unique_ptr<Sounds> sounds_;      // of decoders with cross-attention
    std::unique_ptr<DraftHead> drafter_;  // of models that have one
    StepPrograms programs_;
    Adapters adapters_;
    std::uint32_t chunk_ = 0;
    bool interrupted_ = false;  // the replay that runs, or the last one
};

}  // namespace akunu
