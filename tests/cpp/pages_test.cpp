// Pages are found by texts of their identity only, whatever comes, forks, ends and makes room: random texts of equal
// tokens, whose roots, or whose contents at a position, differ.
#include "engine/pages.h"

#include <algorithm>
#include <vector>

#include "check.h"

namespace {

using namespace akunu;
using akunu::test::check;
using Keys = std::vector<PageKey>;

constexpr std::uint32_t kPages = 24;

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
};

class Pool {
  public:
    PagePool pool{kPages};
    std::vector<Written> written{kPages};
    std::uint64_t shared = 0;

    // A text that finds what it can, and writes the rest; false where there is no room.
    bool begin(Text& text) {
        const PagePool::Match m = pool.match({text.root, text.keys});
        std::size_t at = 0;
        for (const std::uint32_t page : m.pages) {
            expect(text, page, at += kPagePositions);
            text.pages.push_back(page);
        }
        if (m.partial != PagePool::kNone) {
            expect(text, m.partial, at + m.partial_keys);
            // It is written to behind that, so it has to be its own.
            if (pool.make_private(m.partial)) {
                text.pages.push_back(m.partial);
            } else {
                pool.release(m.partial);
            }
        }
        text.published = static_cast<std::uint32_t>(m.pages.size());
        while (text.pages.size() * kPagePositions < text.keys.size()) {
            const std::uint32_t page = pool.acquire();
            if (page == PagePool::kNone) return false;
            text.pages.push_back(page);
        }
        for (std::size_t i = text.published; i < text.pages.size(); ++i) {
            const std::size_t end = std::min((i + 1) * kPagePositions, text.keys.size());
            written[text.pages[i]] = {text.root, {text.keys.begin(), text.keys.begin() + std::ptrdiff_t(end)}};
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
            expect(text, text.pages[i], std::min(first + kPagePositions, text.keys.size()));
        }
    }
    void end(Text& text) {
        while (!text.pages.empty()) {
            pool.release(text.pages.back());
            text.pages.pop_back();
        }
    }
    Text fork(const Text& text) {
        for (const std::uint32_t page : text.pages) pool.hold(page);
        return text;
    }

  private:
    // The page holds what the first n keys of the text make.
    void expect(const Text& text, std::uint32_t page, std::size_t n) {
        const Written& w = written[page];
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
            if (random.below(3) == 0 && open.size() < 4) {
                open.push_back(pool.fork(open[i]));
            } else {
                pool.end(open[i]);
                open.erase(open.begin() + i);
            }
        }
        if (random.below(500) == 0) pool.pool.forget();
        check(pool.pool.held() <= kPages, "pages are counted");
    }
    for (Text& text : open) pool.end(text);
    check(pool.pool.held() == 0, "every page is back");
    check(pool.shared > 10000, "texts shared pages");
    pool.pool.forget();
    check(pool.pool.cached() == 0 && pool.pool.unused().size() == kPages, "and are forgotten");
    return 0;
}
