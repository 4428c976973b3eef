// Pages, and their records of a window, are found by texts of their identity only, whatever comes, forks, ends, goes on
// and makes room: random texts of equal tokens, whose roots, or whose contents at a position, differ.
#include "engine/pages.h"

#include <algorithm>
#include <vector>

#include "check.h"

namespace {

using namespace akunu;
using akunu::test::check;
using Keys = std::vector<PageKey>;

constexpr std::uint32_t kPages = 24, kRecords = 14, kWindow = 40;

class Random {
  public:
    std::uint32_t below(std::uint32_t n) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::uint32_t>((state_ >> 33) % n);
    }

  private:
    std::uint64_t state_ = 1;
};

// What was written to a page: all that it follows from, up to its end.
struct Written {
    std::uint64_t root = 0;
    Keys keys;
};

struct Text {
    std::uint64_t root = 0;
    Keys keys;
    std::vector<std::uint32_t> pages;
    std::uint32_t published = 0;
    std::uint32_t kept_from = 0;  // the first page whose record it holds
};

class Pool {
  public:
    PageRecords records{kPages, kRecords};
    PagePool pool{kPages, nullptr, {{kWindow, &records}}};
    std::vector<Written> written{kPages}, recorded{kRecords};
    std::uint64_t shared = 0;

    // A text that finds what it can, and writes the rest; false where there is no room.
    bool begin(Text& text) {
        const PagePool::Match m = pool.match({text.root, text.keys});
        std::size_t at = 0;
        for (const std::uint32_t page : m.pages) {
            expect(text, written[page], at += kPagePositions);
            text.pages.push_back(page);
        }
        text.kept_from = static_cast<std::uint32_t>(m.pages.size());
        const auto length = static_cast<std::uint32_t>(at) + m.partial_keys;
        for (const std::uint32_t seen = first_page_seen(kWindow, length); text.kept_from > seen;) {
            const std::uint32_t page = text.pages[--text.kept_from];
            check(records.find(page) != PageRecords::kNone, "what the next row sees is there");
            records.hold(page);
            expect(text, recorded[records.find(page)], (text.kept_from + 1) * kPagePositions);
        }
        if (m.partial != PagePool::kNone) {
            expect(text, written[m.partial], at + m.partial_keys);
            check(records.find(m.partial) != PageRecords::kNone, "a part of a page has its record");
            expect(text, recorded[records.find(m.partial)], at + m.partial_keys);
            // It is written to behind that, so it has to be its own.
            records.hold(m.partial);
            if (pool.make_private(m.partial)) {
                text.pages.push_back(m.partial);
            } else {
                records.release(m.partial);
                pool.release(m.partial);
            }
        }
        text.published = static_cast<std::uint32_t>(m.pages.size());
        while (text.pages.size() * kPagePositions < text.keys.size()) {
            const std::uint32_t page = pool.acquire();
            if (page == PagePool::kNone) return false;
            if (records.acquire(page) == PageRecords::kNone) {
                pool.release(page);
                return false;
            }
            text.pages.push_back(page);
        }
        for (std::size_t i = text.published; i < text.pages.size(); ++i) {
            const std::size_t end = std::min((i + 1) * kPagePositions, text.keys.size());
            const Written now{text.root, {text.keys.begin(), text.keys.begin() + std::ptrdiff_t(end)}};
            written[text.pages[i]] = recorded[records.find(text.pages[i])] = now;
        }
        return true;
    }
    void publish(Text& text) {
        for (; text.published < text.pages.size(); ++text.published) {
            const std::size_t i = text.published, first = i * kPagePositions;
            const auto keys = std::span(text.keys).subspan(first);
            const std::uint32_t parent = i == 0 ? PagePool::kNone : text.pages[i - 1];
            text.pages[i] = pool.publish(parent, text.pages[i],
                                         {text.root, keys.first(std::min<std::size_t>(keys.size(), kPagePositions))});
            expect(text, written[text.pages[i]], std::min(first + kPagePositions, text.keys.size()));
        }
        check_records(text);
    }
    // The text is all in the cache: it gives back what its next row does not see.
    void pass(Text& text) {
        const auto seen = first_page_seen(kWindow, static_cast<std::uint32_t>(text.keys.size()));
        for (; text.kept_from < seen; ++text.kept_from) records.release(text.pages[text.kept_from], true);
    }
    void check_records(const Text& text) {
        for (std::size_t i = text.kept_from; i < text.pages.size(); ++i) {
            const std::uint32_t record = records.find(text.pages[i]);
            check(record != PageRecords::kNone && records.is_held(text.pages[i]), "what a text holds stays");
            expect(text, recorded[record], std::min((i + 1) * kPagePositions, text.keys.size()));
        }
    }
    void end(Text& text) {
        while (!text.pages.empty()) {
            const std::uint32_t page = text.pages.back();
            text.pages.pop_back();
            if (text.pages.size() >= text.kept_from) records.release(page);
            pool.release(page);
        }
    }
    Text fork(const Text& text) {
        for (std::size_t i = 0; i < text.pages.size(); ++i) {
            pool.hold(text.pages[i]);
            if (i >= text.kept_from) records.hold(text.pages[i]);
        }
        return text;
    }

  private:
    // A page, or a record, holds what the first n keys of the text make.
    void expect(const Text& text, const Written& w, std::size_t n) {
        check(w.root == text.root, "a page of the text's root");
        check(
            w.keys.size() >= n && std::equal(text.keys.begin(), text.keys.begin() + std::ptrdiff_t(n), w.keys.begin()),
            "that follows from the text's beginning");
        ++shared;
    }
};

Text drawn(Random& random) {
    Text text;
    text.root = random.below(4) ? random.below(3) : std::uint64_t{random.below(2)} << 63;
    const std::uint32_t n = 1 + random.below(150);
    for (std::uint32_t i = 0; i < n; ++i) text.keys.push_back(i * 7 % 50);
    if (random.below(2)) {
        const std::uint32_t places[] = {0, 3, 32, 40, 70}, at = places[random.below(5)];
        // A hash may be the number of the token that stands there.
        for (std::uint32_t i = at; i < std::min(at + 2, n); ++i) {
            text.keys[i] = random.below(2) ? content_key(text.keys[i]) : content_key(1 + random.below(2));
        }
    }
    return text;
}

}  // namespace

int main() {
    Random random;
    Pool pool;
    std::vector<Text> open;
    for (int step = 0; step < 20000; ++step) {
        if (open.size() < 4 && random.below(2)) {
            Text text = drawn(random);
            if (pool.begin(text)) {
                open.push_back(std::move(text));
            } else {
                pool.end(text);
            }
        } else if (!open.empty()) {
            const std::uint32_t i = random.below(static_cast<std::uint32_t>(open.size()));
            pool.publish(open[i]);
            if (random.below(2)) pool.pass(open[i]);
            pool.check_records(open[i]);
            if (random.below(3) == 0 && open.size() < 4) {
                open.push_back(pool.fork(open[i]));
            } else {
                pool.end(open[i]);
                open.erase(open.begin() + i);
            }
        }
        if (random.below(500) == 0) pool.pool.forget();
        check(pool.pool.held() <= kPages && pool.records.held() <= kRecords, "pages are counted");
    }
    for (Text& text : open) pool.end(text);
    check(pool.pool.held() == 0 && pool.records.held() == 0, "every page is back");
    check(pool.shared > 10000, "texts shared pages");
    pool.pool.forget();
    check(pool.pool.cached() == 0 && pool.pool.unused().size() == kPages, "and are forgotten");
    check(pool.records.used() == 0, "with their records");
    return 0;
}
