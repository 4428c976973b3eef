// What a translated kernel library and the executor agree on.  Included by the shim (compiled
// into every kernel library), so it holds plain data, no C++ library types but the header-only ones.
#pragma once
#include <cstddef>
#include <cstdint>

#define MSL_NO_SANITIZE __attribute__((no_sanitize("thread", "address", "undefined")))

namespace mslrt {

constexpr unsigned kLanes = 32;       // threads of a SIMD-group
constexpr unsigned kSlotBytes = 64;   // the largest value a lane can exchange (ulong4, float4x4)
constexpr unsigned kMaxBuffers = 31;  // Metal's buffer argument table

/// State of one SIMD-group.  A collective (simd_sum, ...) is a rendezvous of its live lanes: each
/// publishes into its slot, the last one to arrive computes.  Slots alternate by generation, so a
/// lane may already publish for the next collective while others still read this one's result.
struct Simd {
    uint32_t live = 0;      // lanes that have not returned
    uint32_t runnable = 0;  // lanes that may be switched to
    uint32_t arrived = 0;   // lanes waiting at the current collective
    uint32_t generation = 0;
    uint64_t tag = 0;           // which collective: operation << 32 | source line
    uint32_t mask[2] = {0, 0};  // lanes that took part, per generation parity
    void (*finish)(Simd*, unsigned parity) = nullptr;
    uint32_t index = 0;
    void* order = nullptr;  // TSan's object of the barrier under way
    alignas(64) unsigned char slot[2][kLanes * kSlotBytes];
    alignas(64) unsigned char result[2][512];
};

/// One MSL thread: a stackful fiber.
struct Fiber {
    void* sp = nullptr;
    Simd* simd = nullptr;
    uint32_t lane = 0, tid = 0;   // lane in the SIMD-group, linear index in the threadgroup
    uint32_t pos[3] = {0, 0, 0};  // thread position in the threadgroup
    void* stack = nullptr;
    bool started = false;
    void* fake = nullptr;  // ASan's fake stack
    void* tsan = nullptr;  // TSan's fiber
};

/// Bindings and geometry of one dispatch.
struct Args {
    void* buffer[kMaxBuffers];
    uint64_t length[kMaxBuffers];              // bytes from the bound offset to the end
    uint32_t threadgroup_length[kMaxBuffers];  // dynamic threadgroup memory, bytes
    uint32_t grid[3], group[3];                // threads in the grid, threads per threadgroup
};

/// What the kernel sees of the executor that runs it.
struct Worker {
    Fiber* current = nullptr;
    const Args* args = nullptr;
    uint32_t group_pos[3], group_size[3], groups[3], simd_count = 0;  // group_size: maybe partial
};

extern "C" {
extern __thread Worker* msl_worker __attribute__((tls_model("initial-exec")));
void msl_simd_wait();                          // parks the lane until the collective is over
[[noreturn]] void msl_diverged(uint64_t tag);  // lanes of one SIMD-group at two collectives
void msl_barrier(uint64_t tag, unsigned mem_flags);
void* msl_simd_release();  // what this lane wrote, for those that meet it next; nullptr without TSan
void msl_simd_acquire(void* released);
void* msl_threadgroup_static(uint32_t id, size_t bytes);
void* msl_threadgroup_dynamic(uint32_t index);
}

// Kinds of kernel parameters; the preprocessor emits these names.
enum Kind : uint8_t {
    kBuffer,
    kThreadgroup,
    kThreadPositionInGrid,
    kThreadPositionInThreadgroup,
    kThreadgroupPositionInGrid,
    kThreadIndexInThreadgroup,
    kThreadIndexInSimdgroup,
    kSimdgroupIndexInThreadgroup,
    kSimdgroupsPerThreadgroup,
    kThreadsPerThreadgroup,
    kThreadgroupsPerGrid,
    kThreadsPerGrid,
    kThreadsPerSimdgroup,
    kDispatchThreadsPerThreadgroup,
    kThreadIndexInQuadgroup,
    kQuadgroupIndexInThreadgroup,
};

/// From the source text.
struct Binding {
    Kind kind;
    uint8_t index;
    const char* name;
    bool (*enabled)();  // [[function_constant(X)]] on a parameter; nullptr: always bound
};

/// Binding plus what the C++ type of the parameter tells.
struct Param {
    Binding binding;
    bool writable;   // a pointer or reference to non-const
    bool constant;   // constant address space
    uint32_t align;  // of the pointee
    uint32_t size;   // of the referee; 0 for pointers, whose extent is not declared
};

struct KernelDesc {
    const char* name;
    void (*entry)();
    const Param* params;
    uint32_t n_params;
    uint32_t max_threads;  // [[max_total_threads_per_threadgroup]], 0: none
    const char* required;  // indices of function constants it cannot do without: " 0 3 "
};
struct ConstantDesc {
    const char* name;
    const char* type;
    uint32_t index, size;
    void* (*address)();  // of this OS thread's copy
    bool* (*defined)();
};
struct LibraryDesc {
    uint32_t abi;
    const KernelDesc* kernels;      // ends with name == nullptr
    const ConstantDesc* constants;  // ends with name == nullptr
    void (*derive)();               // evaluates constants computed from function constants
};
constexpr uint32_t kAbi = 3;

/// One value given by MTLFunctionConstantValues.
struct ConstantValue {
    uint32_t index, size;
    uint8_t data[16];
};

/// Publishes nothing itself: the caller has written its slot.  Returns the parity to read from.
template <class Finish>
MSL_NO_SANITIZE inline unsigned arrive(Simd* s, Fiber* f, uint64_t tag, Finish) {
    const unsigned parity = s->generation & 1;
    if (!s->arrived) {
        s->tag = tag;
        s->finish = [](Simd* z, unsigned p) { Finish{}(z, p); };
    } else if (s->tag != tag) {
        msl_diverged(tag);
    }
    s->arrived |= 1u << f->lane;
    if (s->arrived == s->live) {
        s->mask[parity] = s->arrived;
        Finish{}(s, parity);
        s->arrived = 0;
        s->generation++;
        s->runnable = s->live;
    } else {
        msl_simd_wait();
    }
    return parity;
}
}  // namespace mslrt
