#include "cpu/replay.h"

#include <algorithm>
#include <cmath>

#include "cpu/expert_pages.h"

namespace akunu::cpu {

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(20);

// The threads that finish soonest: each one more takes a share of the work, and makes every stage a little longer.
// A small model does not pay for a team that it cannot feed.
int team_for(double ns, std::size_t stages, int threads) {
    constexpr double kNsPerThread = 100;  // of a stage
    if (ns == 0) return threads;          // another kind of table
    return std::clamp(static_cast<int>(std::sqrt(ns / (static_cast<double>(stages) * kNsPerThread))), 1, threads);
}

template <typename Params>
std::size_t choices_of(const std::byte* params) {
    const auto& p = params_as<Params>(params);
    return std::size_t{p.rows} * p.chosen;
}

}  // namespace

void Replay::prepare(const Chain& chain, const Control& control, const Poll& poll, const Meanwhile& meanwhile,
                     std::span<double> seconds, int threads) {
    parts_.clear();
    commands_ = 0;
    has_paged_ = false;
    double ns = 0;
    std::size_t stages = 1;
    for (const Segment& segment : chain.segments) {
        const auto& program = static_cast<const CpuProgram&>(*segment.program);
        const std::size_t all = program.commands()->size(), n = std::min(all, chain.commands - commands_);
        if (n == 0) continue;
        parts_.push_back({program.commands(), commands_, commands_ + n, program.paged(), segment.args});
        has_paged_ |= !program.paged()->empty();
        commands_ += n;
        const auto add = [&](const Load& load) {
            ns += load.nanoseconds(segment.args);
            stages += load.stages();
        };
        n == all ? add(program.load()) : add(Load(std::span(*program.commands()).first(n)));
    }
    chain_ = chain;
    chain_.segments = {};
    control_ = &control;
    poll_ = &poll;
    meanwhile_ = &meanwhile;
    told_before_ = meanwhile ? chain.segments.front().program->table.commands.size() : 0;
    told_.set(0);
    seconds_ = seconds;
    stage_start_ = Clock::now();
    next_poll_ = stage_start_ + kPollInterval;
    times_done_ = 0;
    stop_.store(false, std::memory_order_relaxed);
    start(team_for(ns, stages, threads));
}

void Replay::begin() {
    if (told_before_ == 0) return;
    if (!(*meanwhile_)()) stop_.store(true, std::memory_order_relaxed);
    told_.set(1);
}

const Replay::Part& Replay::part_of(std::size_t command) const {
    auto part = parts_.begin();
    while (part->end <= command) ++part;
    return *part;
}

void Replay::set_params(const DispatchCmd& cmd, const Part& part, std::uint64_t n, std::byte* out) const {
    patched_params(cmd, chain_.args_at(part.args, static_cast<std::uint32_t>(n)), out);
}

std::uint64_t Replay::run_stage(std::uint64_t at, Worker& worker) {
    alignas(8) std::byte params[kMaxParamBytes];
    const std::uint64_t time = at / commands_;
    const Part& part = part_of(at % commands_);
    const std::vector<DispatchCmd>& commands = *part.commands;
    const std::size_t n = part.end - part.begin;  // a stage ends with its segment
    std::size_t i = at % commands_ - part.begin;
    do {
        const DispatchCmd& cmd = commands[i];
        set_params(cmd, part, time, params);
        worker.tag = ++at;
        reinterpret_cast<Kernel>(const_cast<void*>(cmd.kernel))(cmd, params, worker);
        ++i;
    } while (i < n && !commands[i].barrier && seconds_.empty());
    return at;
}

std::uint64_t Replay::stage_end(std::uint64_t at) const {
    const std::size_t in_step = at % commands_;
    const Part& part = part_of(in_step);
    std::size_t i = in_step + 1;
    while (i < part.end && !(*part.commands)[i - part.begin].barrier && seconds_.empty()) ++i;
    return at - in_step + i;
}

template <typename F>
void Replay::for_paged(std::uint64_t from, std::uint64_t to, const F& f) const {
    const std::size_t first = from % commands_, last = first + (to - from);  // of one step
    for (const Part& part : parts_) {
        for (const PagedCommand& c : *part.paged) {
            const std::size_t at = part.begin + c.at;
            if (at >= first && at < std::min(last, part.end)) f((*part.commands)[c.at], c, part);
        }
    }
}

bool Replay::end_stage(std::uint64_t at, std::uint64_t next) {
    const std::size_t n = commands_;
    if (has_paged_) {
        for_paged(at, next, [](const DispatchCmd&, const PagedCommand& c, const Part&) {
            for (ExpertPages* const pages : c.pages) {
                if (pages) pages->settle();
            }
        });
    }
    if (next == told_before_) told_.wait(0);
    if (!seconds_.empty()) {
        const auto now = Clock::now();
        seconds_[at % n] += std::chrono::duration<double>(now - stage_start_).count();
        stage_start_ = now;
    }
    if (next % n == 0) {
        times_done_ = static_cast<std::uint32_t>(next / n);
        const bool yield = __atomic_load_n(&control_->yield, __ATOMIC_RELAXED) != 0;
        if (times_done_ == chain_.times || control_->stop || yield) return false;
    }
    if (stop_.load(std::memory_order_relaxed)) return false;
    if (has_paged_) {
        for_paged(next, stage_end(next), [&](const DispatchCmd& cmd, const PagedCommand& c, const Part& part) {
            alignas(8) std::byte params[kMaxParamBytes];
            set_params(cmd, part, next / n, params);
            const std::size_t choices = cmd.op == Op::kExpertsGateUp ? choices_of<ExpertsGateUpParams>(params)
                                                                     : choices_of<ExpertsDownParams>(params);
            const std::span<const u32> ids(cmd.buffers[c.ids].as<u32>(), choices);
            for (std::size_t i = 0; i < c.pages.size(); ++i) {
                if (c.pages[i]) c.pages[i]->choose(ids, c.counted && i == 0);
            }
        });
    }
    return true;
}

void Replay::look_up() {
    if (!*poll_ || Clock::now() < next_poll_) return;
    next_poll_ = Clock::now() + kPollInterval;
    if ((*poll_)()) stop_.store(true, std::memory_order_relaxed);
}

}  // namespace akunu::cpu
