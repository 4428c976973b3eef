#include "plan/spread.h"

#include <string>
#include <variant>

#include "core/error.h"

namespace akunu {

namespace {

// Kernels read so many elements at a time.
constexpr std::uint32_t kElements = 8;

}  // namespace

ModelConfig spread(ModelConfig config, std::uint32_t cards) {
    if (cards == 1) return config;
    const std::string on_one = "; name one GPU, as in device='cuda:0'";
    if (config.encoder || config.audio || config.image || config.sound_positions() != 0) {
        throw UnsupportedError("models of embeddings, sound and images are not spread over " + std::to_string(cards) +
                               " GPUs" + on_one);
    }
    if (config.drafter && config.drafter->dim) {
        throw UnsupportedError("an assistant that drafts reads keys and values of all heads, which are spread over " +
                               std::to_string(cards) + " GPUs" + on_one + ", or draft=False");
    }
    config.cards = cards;
    bool any = false;
    for (BlockConfig& block : config.blocks) {
        if (auto* a = std::get_if<AttentionConfig>(&block.mixer)) {
            if (a->n_heads % cards != 0 || a->n_kv_heads % cards != 0 || a->norms_whole_rows) continue;
            a->n_heads /= cards;
            a->n_kv_heads /= cards;
            a->cards = cards;
        } else if (auto* f = std::get_if<FeedForwardConfig>(&block.mixer)) {
            if (f->dim % (cards * kElements) != 0 || f->deviations) continue;
            f->dim /= cards;
            f->cards = cards;
        } else {
            continue;
        }
        any = true;
    }
    if (!any) {
        throw UnsupportedError("this model has no attention and no feed-forward that is split over " +
                               std::to_string(cards) + " GPUs" + on_one);
    }
    return config;
}

}  // namespace akunu
