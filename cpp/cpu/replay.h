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
    void prepare(const Chain& chain, const Control& control, const Poll& poll, const Meanwhile& meanwhile,
                 std::span<double> seconds, int threads);
    // How many times all of the chain ran.
    std::uint32_t times_done() const { return times_done_; }

  private:
    void begin() override;
    std::uint64_t run_stage(std::uint64_t at, Worker& worker) override;
    bool end_stage(std::uint64_t at, std::uint64_t next) override;
    void look_up() override;

    // A segment, and which of its step's commands are its own. They are kept, since the programs may be gone while a
    // late helper looks.
    struct Part {
        std::shared_ptr<const std::vector<DispatchCmd>> commands;
        std::size_t begin, end;
        std::shared_ptr<const std::vector<PagedCommand>> paged;
        ReplayArgs args;
    };
    const Part& part_of(std::size_t command) const;
    // Copies a command's parameters, as they are the n-th time.
    void set_params(const DispatchCmd& cmd, const Part& part, std::uint64_t n, std::byte* out) const;
    // Calls f for those of the commands [from, to), counted from the first step on, whose experts stay in their file.
    template <typename F>
    void for_paged(std::uint64_t from, std::uint64_t to, const F& f) const;
    // Where the stage ends that begins with this command.
    std::uint64_t stage_end(std::uint64_t at) const;

    std::vector<Part> parts_;
    std::size_t commands_ = 0;  // of a step
    bool has_paged_ = false;
    Chain chain_;  // without its segments, whose memory is the caller's
    const Control* control_ = nullptr;
    const Poll* poll_ = nullptr;
    const Meanwhile* meanwhile_ = nullptr;
    std::uint64_t told_before_ = 0;  // the command that `meanwhile` has to be over before; 0: none
    Beacon told_;                    // 1: it is
    std::span<double> seconds_;
    Clock::time_point next_poll_, stage_start_;
    std::uint32_t times_done_ = 0;
    std::atomic<bool> stop_{false};
};

}  // namespace akunu::cpu
