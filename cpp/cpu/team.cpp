#include "cpu/team.h"

#include <algorithm>

namespace akunu::cpu {

namespace {

constexpr std::uint64_t kEnd = ~std::uint64_t{0};

// A word of tag and count. 2^40 tags last for weeks within one program.
constexpr int kCountBits = 24;
constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;
constexpr std::uint64_t kMostPieces = std::uint64_t{1} << 20;

// Seats whose finished pieces are counted together: one counter for all of many threads would be what they wait for.
constexpr int kSeatsPerCount = 8;

// Pieces are small enough that waiting for the last one costs little, and large enough that claiming them does. Work
// below the least is not shared: handing over its inputs and results would take as long.
constexpr std::uint64_t kLeastPiece = 32 << 10, kUsualPiece = 256 << 10;

std::uint64_t piece_count(std::uint64_t n, std::uint64_t bytes, int threads) {
    const auto t = static_cast<std::uint64_t>(threads);
    if (t == 1) return std::min<std::uint64_t>(n, 1);
    const std::uint64_t all = n * bytes;
    const std::uint64_t pieces = t * std::max<std::uint64_t>(1, all / (t * kUsualPiece));
    return std::min({pieces, std::max<std::uint64_t>(1, all / kLeastPiece), n, kMostPieces});
}

constexpr double kBytesPerSecond = 16e9;  // as `Worker::claim` counts work

// What pre-empted helpers may cost. The lead waits this long without blame, for a serial step, and as long as a large
// piece takes on a processor that is this much slower than most.
constexpr double kNoBlame = 300e-6, kSlowness = 2;
// A helper whose blame exceeds this, after what it has earned since, goes home.
constexpr double kPatience = 1e-3;

}  // namespace

// ---- claims --------------------------------------------------------------------------------

Claims::Claims(const Team& team, Seat& seat, int index, std::uint64_t tag, std::uint64_t n, std::uint64_t bytes)
    : team_(team), seat_(seat), index_(index), tag_(tag), n_(n), pieces_(piece_count(n, bytes, team.size_)) {
    seat.pieces += pieces_;
    if (index == 0 && pieces_ > 0) {
        const double piece = static_cast<double>(n) * static_cast<double>(bytes) / static_cast<double>(pieces_);
        seat.longest_piece = std::max(seat.longest_piece, piece / kBytesPerSecond);
    }
}

Claims::~Claims() {
    if (holds_) ++seat_.finished;
}

bool Claims::next() {
    if (holds_) ++seat_.finished;
    for (; tried_ < team_.size_; ++tried_) {
        const int seat = index_ + tried_;
        if (claim_from(seat < team_.size_ ? seat : seat - team_.size_)) {
            if (!holds_) seat_.holds.store(true, std::memory_order_relaxed);
            return holds_ = true;
        }
    }
    return holds_ = false;
}

bool Claims::claim_from(int seat) {
    const auto s = static_cast<std::uint64_t>(seat), seats = static_cast<std::uint64_t>(team_.size_);
    // Rounded up, so that a single piece is the lead's.
    const std::uint64_t first = (pieces_ * s + seats - 1) / seats, last = (pieces_ * (s + 1) + seats - 1) / seats;
    if (first == last) return false;
    std::atomic<std::uint64_t>& claimed = team_.seats_[s].claimed;
    std::uint64_t old = claimed.load(std::memory_order_relaxed);
    for (;;) {
        const std::uint64_t tag = old >> kCountBits;
        if (tag > tag_) return false;  // the command is over
        const std::uint64_t count = tag == tag_ ? old & kCountMask : 0;
        if (first + count >= last) return false;
        if (claimed.compare_exchange_weak(old, (tag_ << kCountBits) + count + 1, std::memory_order_relaxed)) {
            // Items are spread over all pieces: with a shorter last one, the seats would not have equal shares.
            begin = n_ * (first + count) / pieces_;
            end = n_ * (first + count + 1) / pieces_;
            return true;
        }
    }
}

Claims Worker::claim(std::uint64_t n, std::uint64_t bytes) const { return {*team, *seat, index, tag, n, bytes}; }

// ---- the team ------------------------------------------------------------------------------

Team::Team(int seats)
    : seats_(static_cast<std::size_t>(seats)),
      counts_(static_cast<std::size_t>((seats + kSeatsPerCount - 1) / kSeatsPerCount)),
      scratch_(map_memory(kWorkerScratch, "")) {}

void Team::start(int size) {
    size_ = size;
    for (Seat& seat : seats_) seat.claimed.store(0, std::memory_order_relaxed);
    for (Count& count : counts_) count.finished.store(0, std::memory_order_relaxed);
    ending_.store(0, std::memory_order_relaxed);
    stage_.set(0);
}

void Team::lead() {
    begin();
    work(0, scratch_.get(), nullptr);
}

void Team::help(int seat, std::byte* scratch, const std::atomic<bool>& surplus) { work(seat, scratch, &surplus); }

int Team::take_seat(int wish) {
    const auto free = [&](int i) { return i < size_ && !seats_[static_cast<std::size_t>(i)].taken; };
    int seat = wish;
    if (!free(seat)) {
        for (seat = 1; seat < size_ && !free(seat); ++seat) {
        }
    }
    if (seat >= size_) return 0;
    Seat& s = seats_[static_cast<std::size_t>(seat)];
    s.taken = true;
    s.dismissed.store(false, std::memory_order_relaxed);
    helpers_.fetch_add(1, std::memory_order_relaxed);
    return seat;
}

bool Team::leave_seat(int seat) {
    Seat& s = seats_[static_cast<std::size_t>(seat)];
    s.taken = false;
    helpers_.fetch_sub(1, std::memory_order_release);
    return s.dismissed.load(std::memory_order_relaxed);
}

void Team::work(int index, std::byte* scratch, const std::atomic<bool>* surplus) {
    Seat& seat = seats_[static_cast<std::size_t>(index)];
    Worker worker{index, size_, scratch, this, &seat, 0};
    for (std::uint64_t at = stage_.get(); at != kEnd;) {
        if (index == 0) look_up();
        seat.pieces = seat.finished = 0;
        seat.longest_piece = 0;
        const std::uint64_t next = run_stage(at, worker);
        at = meet(index, at, next);
        if (surplus && (surplus->load(std::memory_order_relaxed) || seat.dismissed.load(std::memory_order_relaxed))) {
            return;
        }
    }
}

std::uint64_t Team::meet(int index, std::uint64_t at, std::uint64_t next) {
    Seat& seat = seats_[static_cast<std::size_t>(index)];
    if (arrive(seat, index, at)) {
        std::uint64_t expected = at;
        if (ending_.compare_exchange_strong(expected, next, std::memory_order_acq_rel)) {
            stage_.set(end_stage(at, next) ? next : kEnd);
        }
    }
    if (index == 0) {
        wait_for_helpers(at);
        return stage_.get();
    }
    return stage_.wait(at);
}

// True when all pieces of the stage are finished; at least the thread that finishes the last one sees it.
bool Team::arrive(Seat& seat, int index, std::uint64_t at) {
    const std::uint64_t tag = at + 1;
    if (seat.finished > 0) {
        std::atomic<std::uint64_t>& count = counts_[static_cast<std::size_t>(index / kSeatsPerCount)].finished;
        std::uint64_t old = count.load(std::memory_order_relaxed), sum;
        do {
            sum = (old >> kCountBits == tag ? old : tag << kCountBits) + seat.finished;
        } while (!count.compare_exchange_weak(old, sum, std::memory_order_seq_cst, std::memory_order_relaxed));
        seat.holds.store(false, std::memory_order_relaxed);
    } else if (seat.pieces > 0) {
        return false;
    }
    std::uint64_t finished = 0;
    for (int first = 0; first < size_; first += kSeatsPerCount) {
        const std::uint64_t count =
            counts_[static_cast<std::size_t>(first / kSeatsPerCount)].finished.load(std::memory_order_seq_cst);
        if (count >> kCountBits == tag) finished += count & kCountMask;
    }
    return finished == seat.pieces;
}

void Team::wait_for_helpers(std::uint64_t at) {
    if (stage_.spin(at)) return;
    const auto start = Clock::now();
    if (stage_.yield(at)) return;
    std::vector<Seat>::iterator late[4];
    std::size_t n = 0;
    for (auto seat = seats_.begin() + 1; seat < seats_.begin() + size_ && n < std::size(late); ++seat) {
        if (seat->holds.load(std::memory_order_relaxed)) late[n++] = seat;
    }
    stage_.sleep(at);
    const auto now = Clock::now();
    const double blame =
        std::chrono::duration<double>(now - start).count() - kNoBlame - kSlowness * seats_[0].longest_piece;
    if (blame <= 0) return;
    for (std::size_t i = 0; i < n; ++i) {
        Seat& seat = *late[i];
        // A helper does about as much as each of the others.
        const double earned = std::chrono::duration<double>(now - seat.costed).count() / size_;
        seat.cost = std::max(0.0, seat.cost - earned) + blame;
        seat.costed = now;
        if (seat.cost < kPatience) continue;
        seat.cost = 0;
        seat.dismissed.store(true, std::memory_order_relaxed);
    }
}

}  // namespace akunu::cpu
