// What attention of few rows fetches while it reads something else: the next page, or the first pages of the sequence
// or head that comes next. It changes no result.

namespace akunu::cpu::AKUNU_ISA {

// A KV head for the rows of a span.
struct SpanHead {
    Span span;
    std::size_t kv_head;
};

// For a KV head of a span that fits one tile, where nothing but memory takes time.
struct ReadAhead {
    const AttentionParams& p;
    const Span& span;
    const KvPages& cache;
    const std::size_t &kv_head, &group;
    // The first `early` pages of the sequence are in the cache already. While they are read, `next_early` of the
    // sequence or head that comes next are fetched.
    std::size_t early = 0, next_early = 0, next_head = 0;
    const u32* next_pages = nullptr;

    // For a head that is read after another, during which `fetched` of its pages came, or before `next`, or both.
    void be_between(std::size_t fetched, const SpanHead* next) {
        early = early_pages(span);
        fetch_pages(std::min(fetched, early), early);
        if (!next) return;
        next_pages = next->span.pages;
        next_head = next->kv_head;
        next_early = std::min(early, early_pages(next->span));
    }

    // What is fetched while a page is read: of what comes next, or what this one reads next.
    Ahead keys(const BlockTask& task, std::size_t page) const {
        const std::byte* const now = cache.key_unit_at(page, kv_head);
        if (page < next_early) return {next_cache().key_unit_at(page, next_head) - now};
        if (page < early) return {};
        const std::size_t last = (task.begin + task.all.to + kPagePositions - 1) / kPagePositions;
        if (page + 1 < last) return {cache.key_unit_at(page + 1, kv_head) - now};
        return {cache.value_unit_at((task.begin + task.all.from) / kPagePositions, kv_head) - now};
    }
    Ahead values(const BlockTask& task, std::size_t page) const {
        const std::byte* const now = cache.value_unit_at(page, kv_head);
        if (page < next_early) return {next_cache().value_unit_at(page, next_head) - now};
        if (page + 1 < early) return {};
        const std::size_t last = (task.begin + task.all.to + kPagePositions - 1) / kPagePositions;
        if (page + 1 < last) return {cache.value_unit_at(page + 1, kv_head) - now};
        return task.last ? Ahead{} : Ahead{cache.key_unit_at(page + 1, kv_head) - now};
    }

  private:
    // Those that are fetched while another sequence is read: of a block of keys, which a second-level cache has room
    // for, unless several tiles share what they read.
    std::size_t early_pages(const Span& rows) const {
        if (rows.rows * group > kQueryTile || first_key(rows.position, p.window) > 0) return 0;
        const std::size_t keys = std::min(end_of_keys(p, rows, rows.rows - 1), kAttentionBlock);
        return (keys + kPagePositions - 1) / kPagePositions;
    }
    // At once: what nobody fetched while there was time.
    void fetch_pages(std::size_t first, std::size_t last) const {
        const std::size_t keys = end_of_keys(p, span, span.rows - 1);
        for (std::size_t page = first; page < last; ++page) {
            const std::size_t n = std::min<std::size_t>(keys - page * kPagePositions, kPagePositions);
            fetch_share(cache.key_unit_at(page, kv_head), cache.key_unit, (n + kKeyGroup - 1) / kKeyGroup * kKeyGroup);
            fetch_share(cache.value_unit_at(page, kv_head), cache.value_unit, n);
        }
    }
    static void fetch_share(const std::byte* unit, std::size_t bytes, std::size_t positions) {
        constexpr std::size_t kLine = 64;
        for (std::size_t i = 0; i < positions * bytes / kPagePositions; i += kLine) __builtin_prefetch(unit + i, 0, 2);
    }
    // The pages of the sequence that comes next.
    KvPages next_cache() const {
        KvPages next = cache;
        next.pages = next_pages;
        return next;
    }
};

}  // namespace akunu::cpu::AKUNU_ISA
