// Threads that run one program together: a lead, who called, and helpers that join and leave as they can.
//
// A program is stages; a stage is commands that need not wait for each other, and ends when all pieces of their work
// are finished. Threads claim pieces, first those of their own seat (the same rows each time, which lie in their
// caches), then what others have left. Nobody waits for a thread that is not there: a stage is over when its pieces
// are, and whoever finishes the last one begins the next stage. A thread that the system has taken off its processor
// holds the others only if it has a piece; the lead sends home a helper that does so too often.
//
// Claims and counts carry the tag of what they belong to, so a thread that comes late, with a command that is long
// over, finds nothing to claim.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "cpu/beacon.h"
#include "cpu/kernel.h"
#include "cpu/memory.h"

namespace akunu::cpu {

struct alignas(64) Seat {
    std::atomic<std::uint64_t> claimed{0};  // of the pieces that lie at this seat: tag and count
    // What belongs to the thread that sits here.
    alignas(64) std::uint64_t pieces = 0, finished = 0;  // of this stage: all, and its own
    double longest_piece = 0;                            // of this stage, in seconds, about
    std::atomic<bool> holds{false};                      // may have an unfinished piece
    std::atomic<bool> dismissed{false};
    bool taken = false;  // under the pool's lock
    // What this helper has cost lately; the lead's.
    double cost = 0;
    Clock::time_point costed{};
};

class Team {
  public:
    // `seats` is the most that `start` may ask for.
    explicit Team(int seats);
    virtual ~Team() = default;
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int size() const { return size_; }

    // Runs the program on the calling thread, with those who join, to its end.
    void lead();
    // Helps from a seat until the program ends, or `surplus` says that there are too many threads.
    void help(int seat, std::byte* scratch, const std::atomic<bool>& surplus);

    // For the pool, under its lock. A seat for worker `wish`, its own one if that is free; 0 when there is none.
    int take_seat(int wish);
    // Whether that helper has been sent home.
    bool leave_seat(int seat);
    int helpers() const { return helpers_.load(std::memory_order_acquire); }

  protected:
    // Before each program, while nobody else is there.
    void start(int size);

    // Called by the lead when helpers may have begun.
    virtual void begin() {}

    // Runs the commands of the stage that begins with number `at`; returns where the next one begins.
    virtual std::uint64_t run_stage(std::uint64_t at, Worker& worker) = 0;
    // Called by one thread when the stage [at, next) is over. False ends the program.
    virtual bool end_stage(std::uint64_t at, std::uint64_t next) = 0;
    // Called by the lead before each stage.
    virtual void look_up() {}

  private:
    friend class Claims;

    void work(int index, std::byte* scratch, const std::atomic<bool>* surplus);
    // Waits for the end of the stage [at, next).
    std::uint64_t meet(int index, std::uint64_t at, std::uint64_t next);
    bool arrive(Seat& seat, int index, std::uint64_t at);
    void wait_for_helpers(std::uint64_t at);

    // Finished pieces, for seats that share a line: tag and count.
    struct alignas(64) Count {
        std::atomic<std::uint64_t> finished{0};
    };

    mutable std::vector<Seat> seats_;
    std::vector<Count> counts_;
    int size_ = 1;
    std::atomic<int> helpers_{0};
    Mapping scratch_;  // the lead's
    alignas(64) std::atomic<std::uint64_t> ending_{0};
    Beacon stage_;  // number of the stage's first command
};

}  // namespace akunu::cpu
