#include "executor.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

#include "fiber_switch.h"
#include "guard.h"
#include "sanitizer.h"

using namespace mslrt;
extern "C" __thread Worker* msl_worker __attribute__((tls_model("initial-exec"))) = nullptr;

namespace mslrt {
namespace {
constexpr size_t kStack = san::kAsan || san::kTsan ? 256 << 10 : 64 << 10;
constexpr size_t kPage = 4096;
// TSan forgets a stack's history down to this depth when a new fiber takes it over.
constexpr size_t kStackReset = 32 << 10;
constexpr size_t kSyncBytes = 1 << 20;
// Stacks a multiple of a page apart would have their tops, which are all that most fibers use, in the same few sets of
// the first-level cache: each begins so much lower than the one before it, a SIMD-group's all elsewhere.
constexpr size_t kStagger = san::kTsan ? 0 : 5 * 64;

Executor* self() { return static_cast<Executor*>(msl_worker); }

unsigned nth_bit(uint32_t mask, unsigned n) {
    while (n--) mask &= mask - 1;
    return static_cast<unsigned>(__builtin_ctz(mask));
}

extern "C" [[noreturn]] void msl_fiber_entry() { self()->fiber_main(); }
}  // namespace

std::string describe_tag(uint64_t tag) {
    static const char* const kNames[] = {"?",           "simd_reduce",      "simd_shuffle",      "simd_vote",
                                         "simd_prefix", "simdgroup_matrix", "simdgroup_barrier", "threadgroup_barrier"};
    return std::string(kNames[(tag >> 32) & 7]) + " at line " + std::to_string(static_cast<uint32_t>(tag));
}

// Reserved ahead: nothing may allocate inside a fiber, TSan would see the allocator's accesses.
Executor::Executor() { stacks_.reserve(4096); }

Executor::~Executor() {
    for (Fiber& f : fibers_)
        if (f.stack) stacks_.push_back(f.stack);
    for (void* s : stacks_) munmap(static_cast<char*>(s) - kPage, kStack + kPage);
}

uint32_t Executor::random() {
    rng_ ^= rng_ << 13;
    rng_ ^= rng_ >> 7;
    rng_ ^= rng_ << 17;
    return static_cast<uint32_t>(rng_ >> 32);
}

void Executor::fail(const std::string& why) {
    if (!failed_) error_ = why;
    failed_ = true;
}

void* Executor::get_stack() {
    if (!stacks_.empty()) {
        void* s = stacks_.back();
        stacks_.pop_back();
        return s;
    }
    void* m = mmap(nullptr, kStack + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) throw std::bad_alloc();
    mprotect(m, kPage, PROT_NONE);
    return static_cast<char*>(m) + kPage;
}

void Executor::begin_dispatch(const LibraryDesc& library, const KernelDesc& kernel, const Args& a,
                              const ConstantValue* values, uint32_t n_values, const MslOptions& options,
                              unsigned worker_index) {
    library_ = &library;
    kernel_ = &kernel;
    args = &a;
    schedule_ = static_cast<MslSchedule>(options.schedule);
    rng_ = (options.seed + 1) * 0x9E3779B97F4A7C15ull + worker_index * 0xD1B54A32D192ED03ull + 1;
    failed_ = false;
    error_.clear();
    current = nullptr;
    sync_in_ = options.sync_in;
    sync_out_ = options.sync_out;
    main_bottom_ = nullptr;
    memory_.begin_dispatch();
    if (san::kTsan) {
        if (sync_.empty()) sync_.resize(kSyncBytes);
        main_tsan_ = san::fiber_current();
    }
    msl_specialize(&library, values, n_values);
    for (int i = 0; i < 3; ++i) groups[i] = (a.grid[i] + a.group[i] - 1) / a.group[i];
}

// ---- scheduling ------------------------------------------------------------------------------

/// The fiber to run next, nullptr when none can.
Fiber* Executor::pick(const Simd* preferred) {
    if (failed_) return nullptr;
    const Simd* s = preferred;
    if (schedule_ != kMslFifo || !s || !s->runnable) {
        s = nullptr;
        const unsigned start = schedule_ == kMslUniform ? random() % simd_count : preferred ? preferred->index : 0;
        for (unsigned i = 0; i < simd_count && !s; ++i) {
            const Simd& c = simds_[schedule_ == kMslPriority ? order_[i] : (start + i) % simd_count];
            if (c.runnable) s = &c;
        }
        if (!s) return nullptr;
    }
    const uint32_t r = s->runnable;
    const unsigned lane = schedule_ == kMslFifo ? static_cast<unsigned>(__builtin_ctz(r))
                          : schedule_ == kMslPriority
                              ? 31u - static_cast<unsigned>(__builtin_clz(r))
                              : nth_bit(r, random() % static_cast<unsigned>(__builtin_popcount(r)));
    return &fibers_[s->index * kLanes + lane];
}

/// TSan: a stack whose shadow does not remember the fiber that had it before.
void Executor::renew_stack(Fiber& f) {
    if (!f.stack) {
        f.stack = get_stack();
        return;
    }
    mmap(static_cast<char*>(f.stack) + kStack - kStackReset, kStackReset, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void Executor::prepare(Fiber& f) {
    if (!f.stack) f.stack = get_stack();
    const size_t lower = reinterpret_cast<uintptr_t>(f.stack) / (kStack + kPage) % kLanes * kStagger;
    void** sp = reinterpret_cast<void**>(static_cast<char*>(f.stack) + kStack - lower);
    *--sp = nullptr;  // the ABI's alignment at a function's entry
    *--sp = reinterpret_cast<void*>(&msl_fiber_entry);
    for (int i = 0; i < 6; ++i) *--sp = nullptr;
    f.sp = sp;
    f.started = true;
}

/// Leaves `from` (nullptr: the executor's own stack) and continues `to` (likewise).
void Executor::switch_to(Fiber* from, Fiber* to, bool finished) {
    current = to;
    if (to && !to->started) prepare(*to);
    san::start_switch(finished ? nullptr
                      : from   ? &from->fake
                               : &main_fake_,
                      to ? to->stack : main_bottom_, to ? kStack : main_size_);
    san::fiber_switch(to ? to->tsan : main_tsan_);
    msl_switch(from ? &from->sp : &main_sp_, to ? to->sp : main_sp_);
    const void* bottom = nullptr;
    size_t size = 0;
    san::finish_switch(from ? from->fake : main_fake_, &bottom, &size);
}

void Executor::reap() {
    if (zombie_) stacks_.push_back(zombie_);
    zombie_ = nullptr;
}

void Executor::fiber_main() {
    const void* bottom = nullptr;
    size_t size = 0;
    san::finish_switch(nullptr, &bottom, &size);
    if (!main_bottom_) {
        main_bottom_ = bottom;
        main_size_ = size;
    }
    for (;;) {
        reap();
        san::acquire(sync_in_);
        kernel_->entry();
        san::release(sync_out_);
        Fiber* f = current;
        Simd* s = f->simd;
        s->live &= ~(1u << f->lane);
        s->runnable &= ~(1u << f->lane);
        live_--;
        if (s->arrived && s->arrived == s->live) {  // the others were waiting only for this lane
            const unsigned parity = s->generation & 1;
            s->mask[parity] = s->arrived;
            s->finish(s, parity);
            s->arrived = 0;
            s->generation++;
            s->runnable = s->live;
        }
        Fiber* next = pick(s);
        if (!san::kTsan && !san::kAsan && next && !next->started) {
            // A fiber that never blocked hands its stack to the next one.
            if (next->stack) stacks_.push_back(next->stack);
            next->stack = std::exchange(f->stack, nullptr);
            next->started = true;
            current = next;
            continue;
        }
        if (!san::kTsan) zombie_ = std::exchange(f->stack, nullptr);
        switch_to(f, next, true);
        __builtin_unreachable();
    }
}

// ---- rendezvous ------------------------------------------------------------------------------

void Executor::abandon(const std::string& why) {
    fail(why);
    switch_to(current, nullptr, false);
    __builtin_unreachable();
}

void Executor::simd_wait() {
    Fiber* f = current;
    f->simd->runnable &= ~(1u << f->lane);
    switch_to(f, pick(f->simd), false);
    reap();
}

void* Executor::simd_release() {
    if (!san::kTsan) return nullptr;
    Simd* s = current->simd;
    if (s->arrived == 0) s->order = sync_object();
    san::release(s->order);
    return s->order;
}

char* Executor::sync_object() {
    char* object = sync_.data() + sync_used_;
    sync_used_ = (sync_used_ + 8) % sync_.size();
    return object;
}

void Executor::diverged(uint64_t tag) {
    abandon("SIMD-group diverged: lane " + std::to_string(current->lane) + " at " + describe_tag(tag) +
            " while others wait at " + describe_tag(current->simd->tag));
}

void Executor::release_barrier() {
    at_barrier_ = 0;
    barrier_object_ = nullptr;
    for (unsigned i = 0; i < simd_count; ++i) simds_[i].runnable = simds_[i].live;
}

void Executor::barrier(uint64_t tag, unsigned mem_flags) {
    Fiber* f = current;
    if (!at_barrier_)
        barrier_tag_ = tag;
    else if (barrier_tag_ != tag)
        abandon("threads wait at different barriers: " + describe_tag(tag) + " and " + describe_tag(barrier_tag_));
    void* object = nullptr;
    if (san::kTsan) {
        if (!barrier_object_) barrier_object_ = sync_object();
        object = mem_flags ? barrier_object_ : nullptr;  // mem_none orders execution, not memory
        san::release(object);
    }
    if (++at_barrier_ == live_) {
        if (live_ != threads_)
            abandon(describe_tag(tag) + " reached by " + std::to_string(live_) + " of " + std::to_string(threads_) +
                    " threads (the others have returned)");
        release_barrier();
        if (schedule_ != kMslFifo) {  // do not always let the last one run on
            Fiber* next = pick(f->simd);
            if (next != f) switch_to(f, next, false);
        }
    } else {
        f->simd->runnable &= ~(1u << f->lane);
        switch_to(f, pick(f->simd), false);
    }
    san::acquire(object);
    reap();
}

void* Executor::threadgroup_static(uint32_t id, size_t bytes) {
    std::string error;
    void* p = memory_.static_variable(id, bytes, error);
    if (!p) abandon(error);
    return p;
}

void* Executor::threadgroup_dynamic(uint32_t index) {
    std::string error;
    void* p = memory_.dynamic_argument(index, args->threadgroup_length[index], error);
    if (!p) abandon(error);
    return p;
}

// ---- one threadgroup -------------------------------------------------------------------------

void Executor::start_group(uint64_t linear_index) {
    uint32_t total = 1;
    const uint64_t pos[3] = {linear_index % groups[0], linear_index / groups[0] % groups[1],
                             linear_index / groups[0] / groups[1]};
    for (int i = 0; i < 3; ++i) {
        group_pos[i] = static_cast<uint32_t>(pos[i]);
        const uint32_t left = args->grid[i] - group_pos[i] * args->group[i];
        group_size[i] = left < args->group[i] ? left : args->group[i];
        total *= group_size[i];
    }
    threads_ = live_ = total;
    at_barrier_ = 0;
    barrier_object_ = nullptr;
    simd_count = (total + kLanes - 1) / kLanes;
    if (fibers_.size() < simd_count * kLanes) {
        fibers_.resize(simd_count * kLanes);
        simds_ = std::vector<Simd>(simd_count);
    }
    for (uint32_t i = 0; i < simd_count; ++i) {
        Simd& s = simds_[i];
        const uint32_t lanes = total - i * kLanes;
        s.index = i;
        s.live = s.runnable = lanes >= kLanes ? ~0u : (1u << lanes) - 1;
        s.arrived = s.generation = 0;
        order_[i] = i;
    }
    if (schedule_ == kMslPriority)
        for (uint32_t i = simd_count; i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
    // Before the fibers exist: TSan counts a mapping as a write of the thread that makes it, and a
    // fiber begins with what its creator knows.
    memory_.begin_group();
    for (uint32_t t = 0; t < total; ++t) {
        Fiber& f = fibers_[t];
        if (san::kTsan) renew_stack(f);
        f.simd = &simds_[t / kLanes];
        f.lane = t % kLanes;
        f.tid = t;
        f.pos[0] = t % group_size[0];
        f.pos[1] = t / group_size[0] % group_size[1];
        f.pos[2] = t / group_size[0] / group_size[1];
        f.started = false;
        f.tsan = san::fiber_create();
    }
}

std::string Executor::stuck() const {
    if (at_barrier_ == live_ && live_ < threads_)
        return describe_tag(barrier_tag_) + " reached by " + std::to_string(live_) + " of " + std::to_string(threads_) +
               " threads (the others have returned)";
    std::string m =
        "deadlock: " + std::to_string(live_) + " threads live, " + std::to_string(at_barrier_) + " at a barrier";
    if (at_barrier_) m += " (" + describe_tag(barrier_tag_) + ")";
    for (uint32_t i = 0; i < simd_count; ++i)
        if (simds_[i].arrived) {
            m += ", lanes of SIMD-group " + std::to_string(i) + " at " + describe_tag(simds_[i].tag);
            break;
        }
    return m;
}

bool Executor::run_group(uint64_t linear_index) {
    start_group(linear_index);
    msl_worker = this;
    {
        // Apple GPUs flush F32 denormals; conversions from and to half are not affected by these bits.
        const FlushDenormals flush;
        switch_to(nullptr, pick(nullptr), false);
    }
    msl_worker = nullptr;
    reap();
    if (san::kTsan)
        for (uint32_t t = 0; t < threads_; ++t) san::fiber_destroy(fibers_[t].tsan);
    if (!failed_ && live_) fail(stuck());
    if (const std::string m = memory_.check(); !m.empty()) fail(m);
    if (failed_) {
        for (Fiber& f : fibers_) {
            if (!f.stack) continue;
            san::unpoison(f.stack, kStack);
            if (!san::kTsan) stacks_.push_back(std::exchange(f.stack, nullptr));
        }
        error_ = "threadgroup (" + std::to_string(group_pos[0]) + "," + std::to_string(group_pos[1]) + "," +
                 std::to_string(group_pos[2]) + "): " + error_;
    }
    return !failed_;
}

std::string Executor::describe_fault(const void* address) const {
    const char* a = static_cast<const char*>(address);
    std::string where = "thread " + std::to_string(current ? current->tid : 0) + ": ";
    const char* stack = current ? static_cast<const char*>(current->stack) : nullptr;
    if (stack && a < stack && a >= stack - kPage) return where + "stack overflow (64 KB)";
    constexpr ptrdiff_t kNear = 1 << 20;
    for (uint32_t i = 0; i < kernel_->n_params; ++i) {
        const Binding& b = kernel_->params[i].binding;
        if (b.kind != kBuffer || !args->buffer[b.index]) continue;
        const char* p = static_cast<const char*>(args->buffer[b.index]);
        const char* end = p + args->length[b.index];
        const std::string name = " buffer " + std::to_string(b.index) + " '" + b.name + "' of " +
                                 std::to_string(args->length[b.index]) + " bytes";
        if (a >= end && a - end < kNear) return where + "access " + std::to_string(a - end) + " bytes behind" + name;
        if (a < p && p - a < kNear) return where + "access " + std::to_string(p - a) + " bytes before" + name;
    }
    char hex[32];
    snprintf(hex, sizeof hex, "%p", address);
    return where + "access to invalid address " + hex;
}
}  // namespace mslrt

extern "C" {
void msl_simd_wait() { self()->simd_wait(); }
void msl_diverged(uint64_t tag) { self()->diverged(tag); }
void* msl_simd_release() { return self()->simd_release(); }
void msl_simd_acquire(void* released) { san::acquire(released); }
void msl_barrier(uint64_t tag, unsigned flags) { self()->barrier(tag, flags); }
void* msl_threadgroup_static(uint32_t id, size_t bytes) { return self()->threadgroup_static(id, bytes); }
void* msl_threadgroup_dynamic(uint32_t index) { return self()->threadgroup_dynamic(index); }
}
