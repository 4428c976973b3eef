// Runs the threads of one threadgroup as fibers on the calling OS thread.
#pragma once
#include <string>
#include <vector>

#include "msl_runtime.h"
#include "threadgroup_memory.h"

namespace mslrt {

class Executor : public Worker {
  public:
    Executor();
    ~Executor();
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;

    void begin_dispatch(const LibraryDesc& library, const KernelDesc& kernel, const Args& a,
                        const ConstantValue* values, uint32_t n_values, const MslOptions& options,
                        unsigned worker_index);
    /// False: it failed, see error().
    bool run_group(uint64_t linear_index);
    const std::string& error() const { return error_; }

    // Called from fibers.
    void simd_wait();
    void* simd_release();
    [[noreturn]] void diverged(uint64_t tag);
    void barrier(uint64_t tag, unsigned mem_flags);
    void* threadgroup_static(uint32_t id, size_t bytes);
    void* threadgroup_dynamic(uint32_t index);
    /// Ends the threadgroup with an error; the calling fiber never continues.
    [[noreturn]] void abandon(const std::string& why);
    [[noreturn]] void fiber_main();
    /// What a memory fault at this address means.
    std::string describe_fault(const void* address) const;

  private:
    uint32_t random();
    Fiber* pick(const Simd* preferred);
    void switch_to(Fiber* from, Fiber* to, bool finished);
    void renew_stack(Fiber& f);
    void prepare(Fiber& f);
    void start_group(uint64_t linear_index);
    void reap();
    void release_barrier();
    char* sync_object();
    void fail(const std::string& why);
    std::string stuck() const;
    void* get_stack();

    const LibraryDesc* library_ = nullptr;
    const KernelDesc* kernel_ = nullptr;
    std::vector<Fiber> fibers_;
    std::vector<Simd> simds_;
    std::vector<void*> stacks_;  // free ones
    void* zombie_ = nullptr;     // stack of the fiber that has just ended
    uint32_t threads_ = 0, live_ = 0, at_barrier_ = 0;
    uint64_t barrier_tag_ = 0;
    void* main_sp_ = nullptr;
    void* main_fake_ = nullptr;
    void* main_tsan_ = nullptr;
    const void* main_bottom_ = nullptr;
    size_t main_size_ = 0;
    uint64_t rng_ = 1;
    MslSchedule schedule_ = kMslFifo;
    uint32_t order_[kLanes] = {};  // priorities of the SIMD-groups
    bool failed_ = false;
    std::string error_;
    ThreadgroupMemory memory_;
    void *sync_in_ = nullptr, *sync_out_ = nullptr;
    std::vector<char> sync_;  // addresses for TSan's barrier objects
    size_t sync_used_ = 0;
    char* barrier_object_ = nullptr;
};

/// "simd_reduce at line 12"
std::string describe_tag(uint64_t tag);
}  // namespace mslrt
