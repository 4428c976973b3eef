// The sanitizers' fiber and annotation calls; every function is empty in a plain build.
//
// Under TSan the executor itself is built without instrumentation (MSL_TSAN, no -fsanitize): only
// what kernels do is watched, and the only happens-before edges are the ones made here: dispatch
// start -> thread, barrier, thread -> dispatch end.
#pragma once
#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MSL_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#endif
#ifdef MSL_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace mslrt::san {
#ifdef MSL_TSAN
inline constexpr bool kTsan = true;
inline void* fiber_create() { return __tsan_create_fiber(0); }
inline void fiber_destroy(void* f) { __tsan_destroy_fiber(f); }
inline void* fiber_current() { return __tsan_get_current_fiber(); }
inline void fiber_switch(void* f) { __tsan_switch_to_fiber(f, __tsan_switch_to_fiber_no_sync); }
inline void acquire(void* p) {
    if (p) __tsan_acquire(p);
}
inline void release(void* p) {
    if (p) __tsan_release(p);
}
#else
inline constexpr bool kTsan = false;
inline void* fiber_create() { return nullptr; }
inline void fiber_destroy(void*) {}
inline void* fiber_current() { return nullptr; }
inline void fiber_switch(void*) {}
inline void acquire(void*) {}
inline void release(void*) {}
#endif
#ifdef MSL_ASAN
inline constexpr bool kAsan = true;
inline void poison(void* p, size_t n) { __asan_poison_memory_region(p, n); }
inline void unpoison(void* p, size_t n) { __asan_unpoison_memory_region(p, n); }
inline void start_switch(void** fake, const void* bottom, size_t n) { __sanitizer_start_switch_fiber(fake, bottom, n); }
inline void finish_switch(void* fake, const void** bottom, size_t* n) {
    __sanitizer_finish_switch_fiber(fake, bottom, n);
}
#else
inline constexpr bool kAsan = false;
inline void poison(void*, size_t) {}
inline void unpoison(void*, size_t) {}
inline void start_switch(void**, const void*, size_t) {}
inline void finish_switch(void*, const void**, size_t*) {}
#endif

/// memset that TSan does not see: the executor's own writes must not count as a kernel's.
inline void fill(void* p, int byte, size_t n) { asm volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(byte) : "memory"); }
inline void copy(void* to, const void* from, size_t n) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}
}  // namespace mslrt::san
