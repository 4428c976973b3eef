// Pages, and their records of a window, are found by sequences of their identity only, whatever comes, forks, ends,
// goes on and makes room: random sequences of equal tokens, whose roots, or whose contents at a position, differ.
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

struct Sequence {
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

    // A sequence that finds what it can, and writes the rest; false where there is no room.
    bool begin(Sequence& sequence) {
        const PagePool::Match m = pool.match({sequence.root, sequence.keys});
        std::size_t at = 0;
        for (const std::uint32_t page : m.pages) {
            expect(sequence, written[page], at += kPagePositions);
            sequence.pages.push_back(page);
        }
        sequence.kept_from = static_cast<std::uint32_t>(m.pages.size());
        const auto length = static_cast<std::uint32_t>(at) + m.partial_keys;
        for (const std::uint32_t seen = first_page_seen(kWindow, length); sequence.kept_from > seen;) {
            const std::uint32_t page = sequence.pages[--sequence.kept_from];
            check(records.find(page) != PageRecords::kNone, "what the next row sees is there");
            records.hold(page);
            expect(sequence, recorded[records.find(page)], (sequence.kept_from + 1) * kPagePositions);
        }
        if (m.partial != PagePool::kNone) {
            expect(sequence, written[m.partial], at + m.partial_keys);
            check(records.find(m.partial) != PageRecords::kNone, "a part of a page has its record");
            expect(sequence, recorded[records.find(m.partial)], at + m.partial_keys);
            // It is written to behind that, so it has to be its own.
            records.hold(m.partial);
            if (pool.make_private(m.partial)) {
                sequence.pages.push_back(m.partial);
            } else {
                records.release(m.partial);
                pool.release(m.partial);
            }
        }
        sequence.published = static_cast<std::uint32_t>(m.pages.size());
        while (sequence.pages.size() * kPagePositions < sequence.keys.size()) {
            const std::uint32_t page = pool.acquire();
            if (page == PagePool::kNone) return false;
            if (records.acquire(page) == PageRecords::kNone) {
                pool.release(page);
                return false;
            }
            sequence.pages.push_back(page);
        }
        for (std::size_t i = sequence.published; i < sequence.pages.size(); ++i) {
            const std::size_t end = std::min((i + 1) * kPagePositions, sequence.keys.size());
            const Written now{sequence.root, {sequence.keys.begin(), sequence.keys.begin() + std::ptrdiff_t(end)}};
            written[sequence.pages[i]] = recorded[records.find(sequence.pages[i])] = now;
        }
        return true;
    }
    void publish(Sequence& sequence) {
        for (; sequence.published < sequence.pages.size(); ++sequence.published) {
            const std::size_t i = sequence.published, first = i * kPagePositions;
            const auto keys = std::span(sequence.keys).subspan(first);
            const std::uint32_t parent = i == 0 ? PagePool::kNone : sequence.pages[i - 1];
            sequence.pages[i] =
                pool.publish(parent, sequence.pages[i],
                             {sequence.root, keys.first(std::min<std::size_t>(keys.size(), kPagePositions))});
            expect(sequence, written[sequence.pages[i]], std::min(first + kPagePositions, sequence.keys.size()));
        }
        check_records(sequence);
    }
    // The sequence is all in the cache: it gives back what its next row does not see.
    void pass(Sequence& sequence) {
        const auto seen = first_page_seen(kWindow, static_cast<std::uint32_t>(sequence.keys.size()));
        for (; sequence.kept_from < seen; ++sequence.kept_from)
            records.release(sequence.pages[sequence.kept_from], true);
    }
    void check_records(const Sequence& sequence) {
        for (std::size_t i = sequence.kept_from; i < sequence.pages.size(); ++i) {
            const std::uint32_t record = records.find(sequence.pages[i]);
            check(record != PageRecords::kNone && records.is_held(sequence.pages[i]), "what a sequence holds stays");
            expect(sequence, recorded[record], std::min((i + 1) * kPagePositions, sequence.keys.size()));
        }
    }
    void end(Sequence& sequence) {
        while (!sequence.pages.empty()) {
            const std::uint32_t page = sequence.pages.back();
            sequence.pages.pop_back();
            if (sequence.pages.size() >= sequence.kept_from) records.release(page);
            pool.release(page);
        }
    }
    Sequence fork(const Sequence& sequence) {
        for (std::size_t i = 0; i < sequence.pages.size(); ++i) {
            pool.hold(sequence.pages[i]);
            if (i >= sequence.kept_from) records.hold(sequence.pages[i]);
        }
        return sequence;
    }

  private:
    // A page, or a record, holds what the first n keys of the sequence make.
    void expect(const Sequence& sequence, const Written& w, std::size_t n) {
        check(w.root == sequence.root, "a page of the sequence's root");
        check(w.keys.size() >= n &&
                  std::equal(sequence.keys.begin(), sequence.keys.begin() + std::ptrdiff_t(n), w.keys.begin()),
              "that follows from the sequence's beginning");
        ++shared;
    }
};

Sequence drawn(Random& random) {
    Sequence sequence;
    sequence.root = random.below(4) ? random.below(3) : std::uint64_t{random.below(2)} << 63;
    const std::uint32_t n = 1 + random.below(150);
    for (std::uint32_t i = 0; i < n; ++i) sequence.keys.push_back(i * 7 % 50);
    if (random.below(2)) {
        const std::uint32_t places[] = {0, 3, 32, 40, 70}, at = places[random.below(5)];
        // A hash may be the number of the token that stands there.
        for (std::uint32_t i = at; i < std::min(at + 2, n); ++i) {
            sequence.keys[i] = random.below(2) ? content_key(sequence.keys[i]) : content_key(1 + random.below(2));
        }
    }
    return sequence;
}

}  // namespace

int main() {
    Random random;
    Pool pool;
    std::vector<Sequence> open;
    for (int step = 0; step < 20000; ++step) {
        if (open.size() < 4 && random.below(2)) {
            Sequence sequence = drawn(random);
            if (pool.begin(sequence)) {
                open.push_back(std::move(sequence));
            } else {
                pool.end(sequence);
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
    for (Sequence& sequence : open) pool.end(sequence);
    check(pool.pool.held() == 0 && pool.records.held() == 0, "every page is back");
    check(pool.shared > 10000, "sequences shared pages");
    pool.pool.forget();
    check(pool.pool.cached() == 0 && pool.pool.unused().size() == kPages, "and are forgotten");
    check(pool.records.used() == 0, "with their records");
    return 0;
}
