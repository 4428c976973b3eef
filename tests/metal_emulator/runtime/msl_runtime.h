// The executor's C interface: used by the fake Metal device and, through ctypes, by harness.py.
#pragma once
#include "msl_abi.h"

extern "C" {
enum MslSchedule : uint32_t {
    kMslFifo = 0,      // lanes and threadgroups in order
    kMslPriority = 1,  // seeded: one SIMD-group runs as far as it can before a lower one moves
    kMslUniform = 2,   // seeded: any runnable lane next
};

struct MslOptions {
    uint64_t seed;
    uint32_t schedule;
    uint32_t workers;  // OS threads; 0: one per core
    // ThreadSanitizer only: objects whose release/acquire order this dispatch with its
    // neighbours; null: it is ordered after and before whatever its caller does.
    void* sync_in;
    void* sync_out;
};

/// Runs one dispatch to its end.  Returns 0, or 1 with a message in err.
int msl_dispatch(const mslrt::LibraryDesc*, const mslrt::KernelDesc*, const mslrt::Args*, const mslrt::ConstantValue*,
                 uint32_t n_constants, const MslOptions*, char* err, size_t err_len);
/// Sets the function constants of a library on the calling OS thread.
void msl_specialize(const mslrt::LibraryDesc*, const mslrt::ConstantValue*, uint32_t n_constants);

/// Memory that ends at an unreadable page (plain build), or at an ASan red zone; 16-byte aligned.
/// fill: the byte it is filled with.
void* msl_guarded_alloc(size_t bytes, int fill);
/// Bytes written into the up to 15 bytes of slack around the block: 0, or the offset + 1 of the
/// first one relative to the block's start (negative: before it).
int64_t msl_guarded_check(void*);
void msl_guarded_free(void*);
/// ThreadSanitizer's acquire and release on an object of a sequence of dispatches; else nothing.
void msl_sync_acquire(void*);
void msl_sync_release(void*);
/// "plain", "asan" or "tsan".
const char* msl_runtime_kind();
}
