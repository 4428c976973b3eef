#include "cpu/replay.h"

namespace akunu::cpu {

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(20);

}  // namespace

void Replay::prepare(const DispatchTable& table, const ReplayArgs& args, const Control& control,
                     const std::function<bool()>& poll, std::span<double> seconds, int threads) {
    commands_ = table.commands;
    args_ = args;
    control_ = &control;
    poll_ = &poll;
    seconds_ = seconds;
    stage_start_ = Clock::now();
    next_poll_ = stage_start_ + kPollInterval;
    steps_done_ = 0;
    stop_.store(false, std::memory_order_relaxed);
    start(threads);
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
    if (!seconds_.empty()) {
        const auto now = Clock::now();
        seconds_[at % n] += std::chrono::duration<double>(now - stage_start_).count();
        stage_start_ = now;
    }
    if (next % n == 0) {
        steps_done_ = static_cast<std::uint32_t>(next / n);
        if (steps_done_ == args_.steps || control_->stop) return false;
    }
    return !stop_.load(std::memory_order_relaxed);
}

void Replay::look_up() {
    if (!*poll_ || Clock::now() < next_poll_) return;
    next_poll_ = Clock::now() + kPollInterval;
    if ((*poll_)()) stop_.store(true, std::memory_order_relaxed);
}

}  // namespace akunu::cpu
