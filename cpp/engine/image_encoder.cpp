#include "engine/image_encoder.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "core/error.h"
#include "engine/records.h"

namespace akunu {

namespace {

constexpr std::uint32_t kFewPatches = 1024;
constexpr std::uint32_t kWindow = 64;  // patches of a window, where none is given

const ModelConfig& seeing(const ModelConfig& config) {
    if (!config.image) throw InvalidArgumentError("this model sees nothing");
    return config;
}

}  // namespace

ImageEncoder::ImageEncoder(std::shared_ptr<Device> device, const ModelConfig& config,
                           std::shared_ptr<WeightSource> source, const Progress& progress)
    : LoadedModel(std::move(device), seeing(config), std::move(source), config.context_length, progress) {
    model_->upload_frequencies(*device_);
    fixed_ = owned_.size();
    fixed_scratch_ = memory_.scratch;
    make_room(std::min(kFewPatches, context_));
    prepare_kernels(progress);
}

bool ImageEncoder::has_windows() const {
    return std::ranges::any_of(config_.blocks, [](const BlockConfig& block) {
        const auto* attention = std::get_if<AttentionConfig>(&block.mixer);
        return attention && attention->image_windows;
    });
}

void ImageEncoder::make_room(std::uint32_t patches, std::uint32_t window_pages) {
    StepBuffers& s = step_;
    if (patches <= s.max_rows && window_pages <= pages_) return;
    body_.reset();
    activations_ = {};
    owned_.resize(fixed_);
    memory_.scratch = fixed_scratch_;
    memory_.activations = 0;
    s = {};
    const std::uint32_t per_row = config_.image->patches;
    s.max_rows = std::min(std::bit_ceil(patches), context_ / per_row * per_row);
    s.max_logits = s.max_rows / per_row;
    s.max_pages = pages_for(s.max_rows);
    pages_ = std::max(s.max_pages, window_pages);
    const Binding table = allocate_kv_of_one_step(pages_, 1);
    std::iota(table.host<u32>(), table.host<u32>() + s.max_pages, 0u);
    if (has_windows()) {
        // A window may be as small as a row's patches, or all of the image.
        window_rows_ = own(checked_product({s.max_rows, sizeof(Row)}), &MemoryUse::scratch);
        window_tables_ = own(checked_product({s.max_logits, s.max_pages, sizeof(u32)}), &MemoryUse::scratch);
        for (std::size_t i = 0; i < config_.blocks.size(); ++i) {
            const auto* attention = std::get_if<AttentionConfig>(&config_.blocks[i].mixer);
            if (!attention || !attention->image_windows) continue;
            s.kv[i].tables = window_tables_;
            s.kv[i].rows = window_rows_;
        }
    }
    const auto shared = [&](std::initializer_list<std::uint64_t> sizes) {
        return own(checked_product(sizes), &MemoryUse::scratch);
    };
    s.rows = shared({s.max_rows, sizeof(Row)});
    s.merge_rows = shared({s.max_rows, sizeof(Row)});
    s.sources = shared({s.max_rows, sizeof(u32)});
    std::iota(s.sources.host<u32>(), s.sources.host<u32>() + s.max_rows, 0u);
    s.logit_rows = shared({s.max_logits, sizeof(u32)});
    s.positions = shared({s.max_rows, kPositionAxes, sizeof(u32)});
    if (config_.positions) {
        s.added =
            own(checked_product({s.max_rows, config_.dim, sizeof(float)}), &MemoryUse::scratch, MemoryKind::kDevice);
        added_id_ = 0;
    }
    s.vectors = own(checked_product({s.max_logits, width(), sizeof(float)}), &MemoryUse::scratch, MemoryKind::kDevice);
    for (u32 i = 0; i < s.max_rows; ++i) {
        s.rows.host<Row>()[i] = {0, i};
        s.merge_rows.host<Row>()[i] = {i / per_row, i % per_row};
    }
    for (u32 i = 0; i < s.max_logits; ++i) s.logit_rows.host<u32>()[i] = (i + 1) * per_row - 1;
    allocate_activations(s.max_rows, [this](const PlanContext& plan) {
        std::vector<DispatchTable> tables;
        tables.push_back(model_->body(plan, Phase::kPrefill));
        return tables;
    });
    body_ = device_->compile(model_->body(plan(), Phase::kPrefill));
}

void ImageEncoder::check(const ImagePatches& image) const {
    const std::size_t values = config_.image->values, n = image.pixels.size() / values;
    const auto expect = [](bool ok, const std::string& what, std::uint64_t found, const std::string& expected) {
        if (!ok) throw InvalidArgumentError(what + " are " + std::to_string(found) + ", expected " + expected);
    };
    const auto several = [](std::uint64_t k) { return "a multiple of " + std::to_string(k); };
    expect(n > 0 && image.pixels.size() % values == 0, "an image's pixels", image.pixels.size(), several(values));
    expect(n % config_.image->patches == 0, "an image's patches", n, several(config_.image->patches));
    expect(n <= context_, "an image's patches", n, "at most " + std::to_string(context_));
    const std::size_t added = config_.positions ? n * config_.dim : 0, positions = config_.has_axes() ? n : 0;
    expect(image.added.size() == added, "values of an image's positions", image.added.size(), std::to_string(added));
    expect(image.positions.size() == positions, "an image's rotary positions", image.positions.size(),
           std::to_string(positions));
    std::uint64_t seen = 0;
    for (const u32 window : image.windows) {
        seen += window;
        expect(window > 0 && window % config_.image->patches == 0, "patches of a window", window,
               several(config_.image->patches));
    }
    const std::size_t windowed = has_windows() ? n : 0;
    expect(seen == windowed, "patches of an image's windows", seen, std::to_string(windowed));
}

// Each window is as a sequence of its own, with pages of its own.
void ImageEncoder::place_windows(std::span<const u32> windows) {
    u32 slot = 0, page = 0;
    Row* row = window_rows_.host<Row>();
    for (const u32 n : windows) {
        for (u32 i = 0; i < n; ++i) *row++ = {slot, i};
        u32* table = window_tables_.host<u32>() + std::size_t{slot++} * step_.max_pages;
        for (u32 i = 0; i < pages_for(n); ++i) table[i] = page++;
    }
}

void ImageEncoder::place(const ImagePatches& image, std::uint32_t patches) {
    u32 pages = 0;
    for (const u32 window : image.windows) pages += pages_for(window);
    make_room(patches, pages);
    if (!image.windows.empty()) place_windows(image.windows);
    device_->upload(activations_.memory("pixels"), std::as_bytes(image.pixels));
    if (!image.added.empty() && (image.added_id == 0 || image.added_id != added_id_)) {
        added_id_ = 0;  // should the upload fail
        device_->upload(step_.added, std::as_bytes(image.added));
        added_id_ = image.added_id;
    }
    for (std::size_t i = 0; i < image.positions.size(); ++i) {
        std::ranges::copy(image.positions[i], step_.positions.host<u32>() + i * kPositionAxes);
    }
}

Segment ImageEncoder::segment(std::uint32_t patches) const {
    return {body_.get(), {.rows = patches, .logits = patches / config_.image->patches, .keys = patches}};
}

std::shared_ptr<const EncodedRows> ImageEncoder::encode(const ImagePatches& image, const Poll& poll) {
    check(image);
    check_weights();
    const auto patches = static_cast<std::uint32_t>(image.pixels.size() / config_.image->values);
    place(image, patches);
    cancelled_ = false;
    const auto stop = [&] { return cancelled_.load() || (poll && poll()); };
    const Segment body = segment(patches);
    Control control;
    if (device_->replay({.segments = {&body, 1}}, control, stop, {}) != 1) return nullptr;
    auto rows = std::make_shared<EncodedRows>();
    rows->count = body.args.logits;
    rows->width = width();
    rows->values.resize(std::size_t{rows->count} * rows->width);
    device_->download(step_.vectors, std::as_writable_bytes(std::span(rows->values)));
    return rows;
}

std::vector<CommandInfo> ImageEncoder::commands(std::uint32_t patches) {
    make_room(patches);
    const Segment body = segment(patches);
    return describe(*device_, {&body, 1});
}

std::vector<CommandInfo> ImageEncoder::profile(std::uint32_t patches, std::size_t repeats, const Poll& poll) {
    const std::vector<float> pixels(std::size_t{patches} * config_.image->values),
        added(config_.positions ? std::size_t{patches} * config_.dim : 0);
    const std::vector<std::array<u32, kPositionAxes>> positions(config_.has_axes() ? patches : 0);
    std::vector<u32> windows;
    for (u32 left = has_windows() ? patches : 0; left > 0; left -= windows.back()) {
        windows.push_back(std::min(left, kWindow));
    }
    const ImagePatches image{pixels, added, 0, positions, windows};
    check(image);
    place(image, patches);
    const Segment body = segment(patches);
    return akunu::profile(*device_, {&body, 1}, repeats, poll);
}

}  // namespace akunu
