#include "plan/model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace akunu {

std::vector<std::unique_ptr<Block>> load_blocks(Loader& loader, const ModelConfig& config,
                                                std::span<const BlockConfig> blocks, std::size_t first) {
    std::vector<std::unique_ptr<Block>> out;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const BlockConfig* next = i + 1 < blocks.size() ? &blocks[i + 1] : nullptr;
        const BlockPlace place{config, first + i, blocks[i].prefix, blocks[i].layer, next};
        out.push_back(std::visit([&](const auto& mixer) { return load_block(loader, place, mixer); }, blocks[i].mixer));
    }
    return out;
}

Model::Model(const ModelConfig& config, Loader& loader) : config_(config) {
    if (config.audio) {
        stem_ = std::make_unique<AudioStem>(config, loader);
        positions_ = AudioStem::load_positions(config, loader);
    } else if (config.positions && !config.image) {  // of images they are the host's to add
        positions_ = loader.vector("positions", std::uint64_t{config.positions} * config.dim);
    }
    if (config.kinds) kinds_ = loader.vector("kinds", std::uint64_t{config.kinds} * config.dim);
    if (const std::uint32_t n = distances()) {
        distances_ = loader.vector("distance_embedding", std::uint64_t{n} * config.dim);
        distance_norm_ = loader.optional_norm("distance_norm", config.dim);
    }
    if (config.encoder) {
        embedding_ = loader.lookup("token_embedding", config.vocab_size, config.dim);
        pooling_ = std::make_unique<PoolingHead>(config, loader);
    } else if (config.image) {
        patches_ = std::make_unique<ImageStem>(config, loader);
    } else if (config.audio) {
        // Its states are what comes of it.
    } else if (loader.has("output")) {
        output_ = load_output(loader, "output");
        embedding_ = loader.lookup("token_embedding", config.vocab_size, config.dim);
    } else if (splits_output()) {
        embedding_ = loader.lookup("token_embedding", config.vocab_size, config.dim);
        output_ = load_output(loader, "token_embedding");
    } else {  // the embedding is the output matrix too
        embedding_ = output_ = loader.matmul("token_embedding", config.vocab_size, config.dim);
    }
    if (output_) output_bias_ = loader.optional_vector("output_bias", output_.rows, output_.rows != config.vocab_size);
    embedding_norm_ = loader.optional_norm("embedding_norm", config.dim);
    if (config.norm_embedding) embedding_norm_ = {loader.computed(std::vector<float>(config.dim, 1.0f)), {}};
    if (const auto& in = config.layer_inputs) {
        const std::uint64_t all = std::uint64_t{in->count} * in->dim;
        input_table_ = loader.lookup("layer_input_table", in->vocab_size, all);
        input_projection_ = loader.matmul("layer_input_projection", all, config.dim);
        std::vector<float> norm = loader.values("layer_input_norm", in->dim);
        for (float& weight : norm) weight *= std::numbers::sqrt2_v<float> / 2;
        input_norm_ = loader.computed(norm);
    }
    if (config.streams) streams_ = std::make_unique<Streams>(config, loader);
    // A scale of the logits is one of what the output's matrix reads.
    output_norm_ = config.encoder || config.image ? loader.optional_norm("output_norm", config.dim)
                                                  : loader.norm("output_norm", config.dim, config.logit_scale);
    blocks_ = load_blocks(loader, config, config.blocks);
    linears_ = loader.linears();
    if (output_.linear && config.final_softcap != 0) {  // to what goes through a function nothing is added
        linears_.at(output_.linear - 1).name.clear();
        output_.linear = 0;
    }
    if (config.drafter) {
        drafter_ = load_drafter(config, loader, {embedding_, output_, output_norm_});
    }
}

// A head that drafts multiplies with all of the output matrix.
bool Model::splits_output() const {
    return config_.cards > 1 && config_.vocab_size % config_.cards == 0 && !config_.drafter;
}

Weight Model::load_output(Loader& loader, const std::string& name) const {
    if (!splits_output()) return loader.matmul(name, config_.vocab_size, config_.dim);
    return loader.matmul(name, config_.vocab_size / config_.cards, config_.dim, false, Split::kRows);
}

void Model::reserve(const Device& device, Activations& a, std::uint32_t context) const {
    a.reserve("hidden", config_.dim);
    if (output_) a.reserve("input", config_.dim, device.matmul_input(output_.dtype));
    if (pooling_) pooling_->reserve(device, a);
    if (stem_) stem_->reserve(device, a);
    if (const auto& in = config_.layer_inputs) {
        a.reserve("input", config_.dim, device.matmul_input(input_projection_.dtype));
        a.reserve("layer_inputs", std::uint64_t{in->count} * in->dim);
    }
    if (patches_) patches_->reserve(device, a);
    if (streams_) streams_->reserve(device, a);
    for (std::size_t set = 0; set < config_.rope_sets.size(); ++set) {
        a.reserve(rope_table_name(set), config_.rope_sets[set].dim());
    }
    for (const auto& block : blocks_) {
        block->reserve(device, a, context);
        if (const std::uint32_t formats = block->distance_formats(device)) a.reserve("input", config_.dim, formats);
    }
    if (drafter_) drafter_->reserve(device, a, context);
}

std::vector<Kept> Model::keeps(const Device& device, const KvTypes& types) const {
    std::vector<Kept> kept;
    for (const auto& block : blocks_) kept.push_back(block->keeps(device, types));
    const auto widen = [&](const std::vector<BlockConfig>& readers) {
        for (const BlockConfig& block : readers) {
            const auto* reader = std::get_if<AttentionConfig>(&block.mixer);
            if (!reader || !reader->kv_owner) continue;
            std::uint32_t& window = kept.at(*reader->kv_owner).window;
            window = window && reader->window ? std::max(window, reader->window) : 0;
        }
    };
    widen(config_.blocks);
    if (config_.drafter) widen(config_.drafter->blocks);
    if (drafter_) {
        for (const auto& block : drafter_->blocks()) kept.push_back(block->keeps(device, types));
    }
    return kept;
}

KvTypes Model::kv_of_one_step(const Device& device) const {
    std::uint32_t formats = 0;
    for (const auto& block : blocks_) formats |= block->attention_formats(device);
    const DType type = formats == kActF16 ? DType::F16 : DType::F32;
    return {type, type};
}

std::uint32_t Model::distances() const {
    for (const BlockConfig& block : config_.blocks) {
        const auto* attention = std::get_if<RelativeAttentionConfig>(&block.mixer);
        if (attention && (attention->by_query || attention->by_key)) return attention->distances;
    }
    return 0;
}

DispatchTable Model::prepare_distances(const PlanContext& context) const {
    Emitter e(context, "distances", distances(), PatchSource::kRows);
    std::uint32_t formats = 0;
    for (const auto& block : blocks_) formats |= block->distance_formats(context.device);
    Act input = e.activations.act("input");
    if (distance_norm_) {
        e.norm("distance_norm", -1, distances_, distance_norm_, input, formats);
    } else {
        input.f32 = distances_;
        if (const std::uint32_t compact = formats & ~kActF32) {
            e.quantize("distance_embedding", -1, input, config_.dim, compact);
        }
    }
    for (const auto& block : blocks_) block->emit_distances(e, input);
    return e.take();
}

void Model::reserve_sound(const Device& device, Activations& a) const {
    for (const auto& block : blocks_) block->reserve_sound(device, a);
}

DispatchTable Model::sound(const PlanContext& context) const {
    Emitter e(context, "sound", context.step.max_rows, PatchSource::kRows);
    std::uint32_t formats = 0;
    for (const auto& block : blocks_) formats |= block->sound_formats(context.device);
    const Act states = e.block_input("states", -1, {}, formats);
    for (const auto& block : blocks_) block->emit_sound(e, states);
    return e.take();
}

void Model::upload_frequencies(Device& device) {
    for (const RopeSet& set : config_.rope_sets) {
        const auto bytes = std::as_bytes(std::span(set.inv_freq));
        inv_freq_.emplace_back(device, std::max<std::uint64_t>(bytes.size(), 64), MemoryKind::kDevice);
        device.upload(inv_freq_.back().at(), bytes);
        const auto axes = std::as_bytes(std::span(set.axes));
        axes_.emplace_back();
        if (axes.empty()) continue;
        axes_.back() = DeviceBuffer(device, std::max<std::uint64_t>(axes.size(), 64), MemoryKind::kDevice);
        device.upload(axes_.back().at(), axes);
    }
}

Emitter Model::emitter(const PlanContext& context, const std::string& name, Phase phase) const {
    const StepBuffers& s = context.step;
    const std::uint32_t rows = phase == Phase::kDecode    ? 1
                               : phase == Phase::kBatch   ? std::min(context.device.traits().max_batch_rows, s.max_rows)
                               : phase == Phase::kAligned ? s.aligned_rows
                                                          : s.max_rows;
    return {context, name, rows, PatchSource::kRows};
}

DispatchTable Model::body(const PlanContext& context, Phase phase) const {
    Emitter e = emitter(context,
                        phase == Phase::kDecode    ? "decode"
                        : phase == Phase::kBatch   ? "batch"
                        : phase == Phase::kAligned ? "aligned"
                        : phase == Phase::kEncoded ? "encoded"
                                                   : "prefill",
                        phase);
    embed(e);
    if (phase == Phase::kEncoded) insert_rows(e, 0);
    layer_inputs(e);
    if (streams_) streams_->begin(e);
    rope_tables(e);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        blocks_[i]->emit(e, phase);
        const int layer = config_.blocks[i].layer;
        const bool ends = i + 1 == blocks_.size() || config_.blocks[i + 1].layer != layer;
        const auto part = static_cast<std::uint32_t>(layer + 1);
        if (phase == Phase::kEncoded && ends && part < config_.encoded_parts) insert_rows(e, part);
    }
    if (streams_) streams_->end(e);
    const Act hidden{e.activations.f32("hidden"), {}};
    if (!output_ && output_norm_) e.norm("output_norm", -1, hidden.f32, output_norm_, hidden, kActF32);
    return e.take();
}

void Model::embed(Emitter& e) const {
    if (stem_) {
        stem_->emit(e);
    } else if (patches_) {
        patches_->emit(e);
    } else {
        e.embed("token_embedding", e.step.history, embedding_, e.activations.f32("hidden"), std::to_string(config_.dim),
                {.dim = config_.dim, .vocab = config_.vocab_size, .scale = config_.embedding_scale});
    }
    const Act hidden{e.activations.f32("hidden"), {}};
    if (positions_ || kinds_) {
        e.emit(Op::kEmbedPosition, "position_embedding")
            .buffer(positions_)
            .buffer(kinds_)
            .buffer(hidden.f32)
            .buffer(e.step.rows)
            .buffer(e.step.row_kinds)
            .shape(std::to_string(config_.dim))
            .params(EmbedPositionParams{
                .rows = 0, .step = 0, .dim = config_.dim, .positions = config_.positions, .kinds = config_.kinds});
    }
    if (embedding_norm_) e.norm("embedding_norm", -1, hidden.f32, embedding_norm_, hidden, kActF32);
}

// A norm of x / √dim is one of x with an epsilon that is dim times as large.
void Model::layer_inputs(Emitter& e) const {
    const auto& in = config_.layer_inputs;
    if (!in) return;
    const Act hidden = e.block_input("layer_inputs", -1, {}, e.input_format(input_projection_));
    const Binding& out = e.activations.f32("layer_inputs");
    e.matmul("layer_inputs_projection", -1, hidden, input_projection_, out);
    const Act parts = rows_in(out, in->count * in->dim).divided(in->count);
    e.rms_norm("layer_inputs_norm", -1, parts, input_norm_, parts,
               {.eps = config_.norm_eps * static_cast<float>(config_.dim)});
    e.embed("layer_inputs_table", e.step.history, input_table_, out, shape_of(in->count, in->dim),
            {.dim = in->count * in->dim,
             .vocab = in->vocab_size,
             .scale = std::sqrt(static_cast<float>(in->dim) / 2),
             .accumulate = true});
}

void Model::rope_tables(Emitter& e, u32 ahead) const {
    for (std::size_t set = 0; set < config_.rope_sets.size(); ++set) {
        const RopeSet& rope = config_.rope_sets[set];
        if (rope.dim() == 0) continue;
        e.emit(Op::kRopeTable, set ? "rope_table_local" : "rope_table")
            .buffer(inv_freq_[set].at())
            .buffer(e.activations.f32(rope_table_name(set)))
            .buffer(e.step.rows)
            .buffer(rope.axes.empty() ? Binding{} : axes_[set].at())
            .buffer(rope.axes.empty() ? Binding{} : e.step.positions)
            .shape(std::to_string(rope.dim() / 2))
            .params(RopeTableParams{.rows = 0,
                                    .step = ahead,
                                    .half_dim = rope.dim() / 2,
                                    .scale = rope.scale,
                                    .temperature = rope.temperature,
                                    .temperature_length = rope.temperature_length,
                                    .axes = !rope.axes.empty()});
    }
}

void Model::insert_rows(Emitter& e, std::uint32_t part) const {
    e.emit(Op::kInsertRows, part == 0 ? "image_embedding" : "image_features", static_cast<int>(part) - 1)
        .buffer(e.activations.f32("hidden"))
        .buffer(e.step.encoded)
        .buffer(e.step.sources)
        .shape(std::to_string(config_.dim))
        .params(InsertRowsParams{.rows = 0,
                                 .step = 0,
                                 .dim = config_.dim,
                                 .width = config_.dim * config_.encoded_parts,
                                 .offset = part * config_.dim,
                                 .accumulate = part != 0});
}

DispatchTable Model::tail(const PlanContext& context, const TailKey& key) const {
    Emitter e(context, "tail", key.one_row ? 1 : context.step.max_logits, PatchSource::kLogits);
    const Act& input = e.activations.act("input");
    e.norm("output_norm", -1, e.activations.f32("hidden"), output_norm_, input, e.input_formats(output_), true);
    const u32 n = static_cast<u32>(output_.rows), all = config_.vocab_size;
    e.matmul("output", -1, input, output_, e.step.logits,
             {.bias = output_bias_, .softcap = config_.final_softcap, .y_stride = all, .gathered = true});
    if (n != all) {
        e.emit(Op::kAllReduce, "output_parts")
            .buffer(e.step.logits)
            .buffer(e.step.logits)
            .shape(std::to_string(n))
            .params(
                AllReduceParams{.rows = 0, .dim = n, .accumulate = 0, .gather = 1, .x_stride = all, .y_stride = all});
    }
    sample(e, key);
    return e.take();
}

void Model::sample(Emitter& e, const TailKey& key) const {
    const StepBuffers& s = e.step;
    const SampleParams p{.rows = 0, .step = 0, .vocab = config_.vocab_size, .history_stride = s.history_stride};
    const auto sample = [&](Op op, const char* name, std::initializer_list<Binding> buffers) {
        auto c = e.emit(op, name);
        for (const Binding& b : buffers) c.buffer(b);
        c.shape(std::to_string(config_.vocab_size)).params(p);
    };
    if (key.rules) {
        sample(Op::kSpeechRules, "speech_rules", {s.logits, s.history, s.rules, s.forbidden, s.rows, s.logit_rows});
    }
    if (key.sampling == Sampling::kGreedy) {
        sample(Op::kArgmax, "argmax", {s.logits, s.sampled});
    } else if (key.sampling == Sampling::kSampled) {
        sample(Op::kSamplePrepare, "sample_prepare",
               {s.logits, s.history, s.sampler, s.bias, s.mask, s.scaled, s.rows, s.logit_rows, s.breakers});
        sample(Op::kSampleSelect, "sample_select", {s.scaled, s.sampler, s.sampled, s.rows, s.logit_rows});
    }
    if (key.logprobs) {
        sample(Op::kLogprobs, "logprobs", {s.logits, s.sampled, s.sampler, s.logprobs, s.rows, s.logit_rows});
    }
    if (key.sampling != Sampling::kNone) {
        sample(Op::kAccept, "accept", {s.sampled, s.history, s.sampler, s.slots, s.control, s.rows, s.logit_rows});
    }
}

DispatchTable Model::keep_for_drafts(const PlanContext& context, Phase phase) const {
    Emitter e = emitter(context, "keep_for_drafts", phase);
    drafter_->keep(e);
    return e.take();
}

DispatchTable Model::draft(const PlanContext& context, Phase phase, bool first) const {
    Emitter e = emitter(drafter_->plan(context), first ? "draft" : "draft_more", phase);
    drafter_->enter(e, first);
    if (drafter_->stands_still()) e.stand_still();
    rope_tables(e, drafter_->stands_still());
    drafter_->emit(e, phase);
    return e.take();
}

DispatchTable Model::draft_tail(const PlanContext& context, const TailKey& key, bool common) const {
    Emitter e(drafter_->plan(context), "draft_tail", key.one_row ? 1 : context.step.max_logits, PatchSource::kLogits);
    drafter_->logits(e, common);
    sample(e, key);
    return e.take();
}

DispatchTable Model::advance(const PlanContext& context, const DraftedRows& drafted) const {
    Emitter e(context, "advance", context.step.max_rows, PatchSource::kRows);
    e.emit(Op::kAdvance, "advance")
        .buffer(e.step.rows)
        .buffer(e.step.positions)
        .buffer(e.step.slots)
        .buffer(drafted.records)
        .buffer(drafted.rows)
        .buffer(drafted.positions)
        .buffer(drafted.states)
        .buffer(drafted.sampled_rows)
        .buffer(drafted.slots)
        .buffer(e.step.state_spans)
        .params(AdvanceParams{.rows = 0, .has_axes = bool(e.step.positions), .has_spans = bool(e.step.state_spans)});
    return e.take();
}

DispatchTable Model::vectors(const PlanContext& context, std::uint32_t sequences) const {
    Emitter e(context, "vectors", sequences, PatchSource::kLogits);
    pooling_->emit(e);
    return e.take();
}

DispatchTable Model::copies(const PlanContext& context, const Binding& records, std::uint32_t words) const {
    Emitter e(context, "copies", 1, PatchSource::kRows);
    e.emit(Op::kCopyRecords, "copy_records")
        .buffer(e.step.copies)
        .buffer(records)
        .params(CopyRecordsParams{.rows = 0, .record_words = words});
    return e.take();
}

}  // namespace akunu
