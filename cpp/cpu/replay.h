// The program of a team that replays tables: a stage is the commands between two barriers.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/device.h"
#include "cpu/program.h"
#include "cpu/team.h"

namespace akunu::cpu {

class Replay final : public Team {
  public:
    using Team::Team;

    // What to run next, on up to `threads` threads. Only while nobody helps: a late helper may still look at the last
    // program. With `seconds` every command is a stage, whose time is added there.
    void prepare(Segments segments, const ReplayArgs& args, const Control& control, const Poll& poll,
                 const Meanwhile& meanwhile, std::span<double> seconds, int threads);
    std::uint32_t steps_done() const { return steps_done_; }

  private:
    void begin() override;
    std::uint64_t run_stage(std::uint64_t at, Worker& worker) override;
    bool end_stage(std::uint64_t at, std::uint64_t next) override;
    void look_up() override;

    // A step's segments, and behind which of its commands each ends. They are kept, since the programs may be gone
    // while a late helper looks.
    struct Segment {
        std::shared_ptr<const std::vector<DispatchCmd>> commands;
        std::size_t end;
        std::shared_ptr<const std::vector<PagedCommand>> paged;
    };
    // Calls f for those of the commands [from, to), counted from the first step on, whose experts stay in their file.
    template <typename F>
    void for_paged(std::uint64_t from, std::uint64_t to, const F& f) const;
    // Where the stage ends that begins with this command.
    std::uint64_t stage_end(std::uint64_t at) const;

    std::vector<Segment> segments_;
    std::size_t commands_ = 0;
    bool has_paged_ = false;
    ReplayArgs args_;
    const Control* control_ = nullptr;
    const Poll* poll_ = nullptr;
    const Meanwhile* meanwhile_ = nullptr;
    std::uint64_t told_before_ = 0;  // the command that `meanwhile` has to be over before; 0: none
    Beacon told_;                    // 1: it is
    std::span<double> seconds_;
    Clock::time_point next_poll_, stage_start_;
    std::uint32_t steps_done_ = 0;
    std::atomic<bool> stop_{false};
};

}  // namespace akunu::cpu
