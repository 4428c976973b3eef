#include "cpu/replay.h"

#include <algorithm>
#include <cmath>

namespace akunu::cpu {

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(20);

// Nanoseconds that one thread needs for a command's weights or keys, about: where the work of a model is.
double work(const DispatchCmd& cmd, const ReplayArgs& args) {
    constexpr double kBytesPerNs = 16, kRowsAtOnce = 4;
    const Cost c = op_info(cmd.op).cost(cmd);
    const bool of_logits = cmd.n_patches > 0 && cmd.patches[0].source == PatchSource::kLogits;
    const double rows = of_logits ? args.logits : args.rows, tiles = std::max(1.0, rows / kRowsAtOnce);
    const double experts =
        c.chosen ? std::max(expert_bytes(c, rows), rows * c.chosen * c.bytes_per_expert / kRowsAtOnce) : 0;
    return ((c.weights + c.kv_per_key * args.keys) * tiles + experts) / kBytesPerNs;
}

// The threads that finish soonest: each one more takes a share of the work, and makes every stage a little longer.
// A small model does not pay for a team that it cannot feed.
int team_for(std::span<const DispatchCmd> commands, const ReplayArgs& args, int threads) {
    constexpr double kNsPerThread = 100;  // of a stage
    double ns = 0, stages = 1;
    for (const DispatchCmd& cmd : commands) {
        ns += work(cmd, args);
        stages += cmd.barrier;
    }
    if (ns == 0) return threads;  // another kind of table
    return std::clamp(static_cast<int>(std::sqrt(ns / (stages * kNsPerThread))), 1, threads);
}

}  // namespace

void Replay::prepare(Segments segments, const ReplayArgs& args, const Control& control, const Poll& poll,
                     const Meanwhile& meanwhile, std::span<double> seconds, int threads) {
    commands_.clear();
    for (const Program* segment : segments) {
        const std::size_t first = commands_.size();
        const auto& commands = segment->table.commands;
        commands_.insert(commands_.end(), commands.begin(), commands.end());
        if (first < commands_.size()) commands_[first].barrier = true;
    }
    if (commands_.size() > args.commands) commands_.resize(args.commands);
    args_ = args;
    control_ = &control;
    poll_ = &poll;
    meanwhile_ = &meanwhile;
    told_before_ = meanwhile ? segments.front()->table.commands.size() : 0;
    told_.set(0);
    seconds_ = seconds;
    stage_start_ = Clock::now();
    next_poll_ = stage_start_ + kPollInterval;
    steps_done_ = 0;
    stop_.store(false, std::memory_order_relaxed);
    start(team_for(commands_, args, threads));
}

void Replay::begin() {
    if (told_before_ == 0) return;
    if (!(*meanwhile_)()) stop_.store(true, std::memory_order_relaxed);
    told_.set(1);
}

std::uint64_t Replay::run_stage(std::uint64_t at, Worker& worker) {
    alignas(8) std::byte params[kMaxParamBytes];
    const std::size_t n = commands_.size();
    const auto step = static_cast<std::uint32_t>(at / n);
    std::size_t i = at % n;
    do {
        const DispatchCmd& cmd = commands_[i];
        patched_params(cmd, args_, step, params);
        worker.tag = ++at;
        reinterpret_cast<Kernel>(const_cast<void*>(cmd.kernel))(cmd, params, worker);
        ++i;
    } while (i < n && !commands_[i].barrier && seconds_.empty());
    return at;
}

bool Replay::end_stage(std::uint64_t at, std::uint64_t next) {
    const std::size_t n = commands_.size();
    if (next == told_before_) told_.wait(0);
    if (!seconds_.empty()) {
        const auto now = Clock::now();
        seconds_[at % n] += std::chrono::duration<double>(now - stage_start_).count();
        stage_start_ = now;
    }
    if (next % n == 0) {
        steps_done_ = static_cast<std::uint32_t>(next / n);
        const bool yield = __atomic_load_n(&control_->yield, __ATOMIC_RELAXED) != 0;
        if (steps_done_ == args_.steps || control_->stop || yield) return false;
    }
    return !stop_.load(std::memory_order_relaxed);
}

void Replay::look_up() {
    if (!*poll_ || Clock::now() < next_poll_) return;
    next_poll_ = Clock::now() + kPollInterval;
    if ((*poll_)()) stop_.store(true, std::memory_order_relaxed);
}

}  // namespace akunu::cpu
