// The GPU: its context, its limits, and the modules of kernels that it has loaded.
#pragma once

#include <unistd.h>

#include <list>
#include <string>

#include "cuda/host/driver.h"
#include "cuda/host/program.h"

namespace akunu::cuda {

struct Limits {
    std::string name, arch;
    std::uint64_t memory = 0, shared_bytes = 0;
    std::uint64_t cache_bytes = 0;  // of the second level
    unsigned multiprocessors = 0;
    unsigned cycles_of_kb = 0;  // in which a multiprocessor's share of the memory's bandwidth is a KB
    int driver_version = 0, compute_major = 0;
    int shared_base = 0;        // where a block's own shared memory begins
    bool cooperative = false;   // a launch's blocks may wait for one another
    bool has_display = false;   // which waits for launches, and the driver ends those that take seconds
    bool checks_races = false;  // kernels are made for racecheck of compute-sanitizer, with lines of their text
};
// Throws DeviceError where a question is not answered. AKUNU_CUDA_SHARED_BYTES and AKUNU_CUDA_ARCH stand for a smaller
// GPU than there is: what blocks may use, and PTX of an older architecture. AKUNU_CUDA_RACECHECK is `checks_races`.
Limits limits_of(const Driver& driver, CUdevice device);

// The primary context, current in every thread that calls `use`.
class Context {
  public:
    Context(const Driver& driver, CUdevice device);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    // Throws Error in a process that was forked after the device was opened.
    void use() const;
    // The same for what must not throw; false where nothing of the GPU's can be used any more.
    bool try_use() const noexcept { return is_here() && driver_.cuCtxSetCurrent(context_) == kSuccess; }
    CUdevice device() const { return device_; }
    // This GPU's kernels may use the other one's memory. Throws DeviceError where it does not reach it.
    void reach(const Context& other) const;
    // Whether this is the process that opened it.
    bool is_here() const noexcept { return getpid() == process_; }

  private:
    const pid_t process_ = getpid();
    const Driver& driver_;
    CUdevice device_;
    CUcontext context_ = nullptr;
};

// Kernels are compiled for what the tables of the process use, and kept until the device goes.
class Modules {
  public:
    Modules(const Driver& driver, const Limits& limits) : driver_(driver), limits_(limits) {}
    ~Modules();
    // Those that are made from now on are for a model that so many GPUs share.
    void set_cards(u32 cards) { cards_ = cards; }
    Modules(const Modules&) = delete;
    Modules& operator=(const Modules&) = delete;

    // A loaded interpreter that covers `needs`; where there is none, one for `all` is made. Null where `poll` ended
    // that.
    CUfunction interpreter(const Needs& needs, const Needs& all, const Poll& poll);

  private:
    struct Loaded {
        Needs needs;
        CUmodule module;
        CUfunction function;
    };
    const Driver& driver_;
    const Limits& limits_;
    u32 cards_ = 1;
    std::list<Loaded> loaded_;
};

}  // namespace akunu::cuda
