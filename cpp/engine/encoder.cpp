#include "engine/encoder.h"

#include <algorithm>

#include "core/error.h"

namespace akunu {

namespace {

constexpr std::uint32_t kTexts = 128;  // of a step

ModelConfig encoding(ModelConfig config) {
    if (!config.encoder) throw InvalidArgumentError("this model samples tokens: it needs an Engine");
    return config;
}

}  // namespace

Encoder::Encoder(std::shared_ptr<Device> device, ModelConfig config, std::shared_ptr<WeightSource> source,
                 std::uint32_t context, const Progress& progress)
    : LoadedModel(std::move(device), encoding(std::move(config)), std::move(source), context, progress) {
    allocate();
    body_ = device_->compile(model_->body(plan(), Phase::kPrefill));
    vectors_ = device_->compile(model_->vectors(plan(), kTexts));
    std::unique_ptr<Program> distances;
    if (model_->distances()) distances = device_->compile(model_->prepare_distances(plan()));
    prepare_kernels(progress);
    if (!distances) return;
    Control control;
    const Segment segment{distances.get(), {.rows = model_->distances(), .logits = 0}};
    device_->replay({.segments = {&segment, 1}}, control, {}, {});
}

void Encoder::allocate() {
    StepBuffers& s = step_;
    s.max_rows = std::max(context_, device_->traits().encoder_rows);
    s.max_logits = kTexts;
    s.max_pages = pages_for(context_);
    s.history_stride = context_;
    // Each text may leave a part of its last page empty.
    tables_ = allocate_kv_of_one_step(pages_for(s.max_rows) + kTexts, kTexts);
    model_->upload_frequencies(*device_);
    const auto shared = [&](std::uint64_t bytes) { return own(bytes, &MemoryUse::scratch); };
    s.rows = shared(std::uint64_t{s.max_rows} * sizeof(Row));
    s.row_kinds = shared(std::uint64_t{s.max_rows} * sizeof(u32));
    s.logit_rows = shared(std::uint64_t{kTexts} * sizeof(u32));
    s.history = shared(std::uint64_t{kTexts} * s.history_stride * sizeof(u32));
    s.vectors = shared(std::uint64_t{kTexts} * model_->width() * sizeof(float));
    allocate_activations(std::max(s.max_rows, model_->distances()), [this](const PlanContext& plan) {
        std::vector<DispatchTable> tables;
        tables.push_back(model_->body(plan, Phase::kPrefill));
        tables.push_back(model_->vectors(plan, kTexts));
        if (model_->distances()) tables.push_back(model_->prepare_distances(plan));
        return tables;
    });
}

void Encoder::check(std::span<const EncoderText> texts) const {
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::string text = "text " + std::to_string(i);
        const auto& ids = texts[i].ids;
        if (ids.empty()) throw InvalidArgumentError(text + " has no tokens");
        if (ids.size() > context_) {
            throw ContextLengthError(text + " has " + std::to_string(ids.size()) + " tokens, the model takes " +
                                     std::to_string(context_));
        }
        const auto wrong = std::ranges::find_if(ids, [&](std::uint32_t id) { return id >= config_.vocab_size; });
        if (wrong != ids.end()) {
            throw InvalidArgumentError(text + " has the token id " + std::to_string(*wrong) +
                                       ", outside the vocabulary of " + std::to_string(config_.vocab_size));
        }
    }
}

std::size_t Encoder::fill(std::span<const EncoderText> texts, ReplayArgs& args) {
    auto* rows = step_.rows.host<Row>();
    auto* kinds = step_.row_kinds.host<u32>();
    auto* pages = tables_.host<u32>();
    args = {.rows = 0, .logits = 0, .keys = 0};
    const std::uint32_t most = device_->traits().encoder_rows;
    u32 page = 0;
    for (const EncoderText& text : texts) {
        const u32 slot = args.logits, n = static_cast<u32>(text.ids.size());
        if (slot == kTexts || (slot != 0 && args.rows + n > most)) break;
        std::ranges::copy(text.ids, step_.history.host<u32>() + std::size_t{slot} * step_.history_stride);
        for (u32 i = 0; i < pages_for(n); ++i) pages[std::size_t{slot} * step_.max_pages + i] = page++;
        for (u32 i = 0; i < n; ++i) {
            rows[args.rows + i] = {slot, i};
            kinds[args.rows + i] = text.second != 0 && i >= text.second;
        }
        args.rows += n;
        args.keys = std::max(args.keys, n);
        step_.logit_rows.host<u32>()[args.logits++] = args.rows - 1;
    }
    return args.logits;
}

std::size_t Encoder::encode(std::span<const EncoderText> texts, float* out, const Poll& poll,
                            const std::function<void(std::size_t)>& done) {
    check(texts);
    check_weights();
    cancelled_ = false;
    const auto stop = [&] { return cancelled_.load() || (poll && poll()); };
    Control control;
    std::size_t made = 0;
    while (made < texts.size() && !stop()) {
        ReplayArgs args;
        const std::size_t n = fill(texts.subspan(made), args);
        const Segment segments[] = {{body_.get(), args}, {vectors_.get(), args}};
        if (device_->replay({.segments = segments}, control, stop, {}) == 0) break;
        std::copy_n(step_.vectors.host<float>(), n * width(), out + made * width());
        made += n;
        if (done) done(made);
    }
    return made;
}

std::vector<Segment> Encoder::segments_of(std::uint32_t tokens, std::uint32_t texts) const {
    const std::uint32_t most = std::min(kTexts, std::max(1u, device_->traits().encoder_rows / std::max(1u, tokens)));
    if (tokens == 0 || tokens > context_) {
        throw InvalidArgumentError("a text has 1.." + std::to_string(context_) + " tokens, not " +
                                   std::to_string(tokens));
    }
    if (texts == 0 || texts > most) {
        throw InvalidArgumentError("a step takes 1.." + std::to_string(most) + " texts of " + std::to_string(tokens) +
                                   " tokens, not " + std::to_string(texts));
    }
    const ReplayArgs args{.rows = tokens * texts, .logits = texts, .keys = tokens, .sequences = texts};
    return {{body_.get(), args}, {vectors_.get(), args}};
}

std::vector<CommandInfo> Encoder::profile(std::uint32_t tokens, std::uint32_t texts, std::size_t repeats,
                                          const Poll& poll) {
    const std::vector<Segment> segments = segments_of(tokens, texts);
    std::vector<std::uint32_t> ids(tokens);
    for (std::uint32_t i = 0; i < tokens; ++i) ids[i] = i % config_.vocab_size;
    ReplayArgs filled;
    fill(std::vector<EncoderText>(texts, {ids}), filled);
    return akunu::profile(*device_, segments, repeats, poll);
}

}  // namespace akunu
