// Atomics: relaxed operations on device and threadgroup memory, and fences.
#pragma once
#include "types.h"

namespace metal {
enum memory_order {
    memory_order_relaxed = __ATOMIC_RELAXED,
    memory_order_acquire = __ATOMIC_ACQUIRE,
    memory_order_release = __ATOMIC_RELEASE,
    memory_order_acq_rel = __ATOMIC_ACQ_REL,
    memory_order_seq_cst = __ATOMIC_SEQ_CST,
};
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

/// No implicit load or store, as in MSL: only the functions below touch it.
template <class T>
struct atomic {
    atomic() = default;
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;
    T value_;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;
typedef atomic<ulong> atomic_ulong;
typedef atomic<bool> atomic_bool;

namespace detail {
// P: a pointer to atomic<T> in whatever address space.
template <class P>
using atomic_t = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<P>()->value_)>>;
template <class P>
inline auto* cell(P p) {
    return (atomic_t<P>*)&p->value_;
}
template <class T>
constexpr bool is_rmw = std::is_same_v<T, int> || std::is_same_v<T, uint>;
}  // namespace detail
// The order is relaxed whatever is passed: Apple's compiler accepts no other here; fences give the rest.
#define MSL_RELAXED(order) (void)(order)
template <class P>
inline detail::atomic_t<P> atomic_load_explicit(P p, memory_order order) {
    MSL_RELAXED(order);
    detail::atomic_t<P> r;
    __atomic_load(detail::cell(p), &r, __ATOMIC_RELAXED);
    return r;
}
template <class P>
inline void atomic_store_explicit(P p, detail::atomic_t<P> x, memory_order order) {
    MSL_RELAXED(order);
    __atomic_store(detail::cell(p), &x, __ATOMIC_RELAXED);
}
template <class P>
inline detail::atomic_t<P> atomic_exchange_explicit(P p, detail::atomic_t<P> x, memory_order order) {
    MSL_RELAXED(order);
    detail::atomic_t<P> r;
    __atomic_exchange(detail::cell(p), &x, &r, __ATOMIC_RELAXED);
    return r;
}
template <class P>
inline bool atomic_compare_exchange_weak_explicit(P p, detail::atomic_t<P>* expected, detail::atomic_t<P> desired,
                                                  memory_order, memory_order) {
    return __atomic_compare_exchange(detail::cell(p), expected, &desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
#define MSL_ATOMIC(op, allowed, what)                                                                         \
    template <class P>                                                                                        \
    inline detail::atomic_t<P> atomic_fetch_##op##_explicit(P p, detail::atomic_t<P> x, memory_order order) { \
        using T = detail::atomic_t<P>;                                                                        \
        static_assert(allowed, what);                                                                         \
        MSL_RELAXED(order);                                                                                   \
        return __atomic_fetch_##op(detail::cell(p), x, __ATOMIC_RELAXED);                                     \
    }
MSL_ATOMIC(add, detail::is_rmw<T> || (std::is_same_v<T, float>), "atomic add: int, uint, float (device)")
MSL_ATOMIC(sub, detail::is_rmw<T> || (std::is_same_v<T, float>), "atomic sub: int, uint, float (device)")
MSL_ATOMIC(and, detail::is_rmw<T>, "atomic and: int, uint")
MSL_ATOMIC(or, detail::is_rmw<T>, "atomic or: int, uint")
MSL_ATOMIC(xor, detail::is_rmw<T>, "atomic xor: int, uint")
MSL_ATOMIC(max, detail::is_rmw<T>, "atomic max with a result: int, uint")
MSL_ATOMIC(min, detail::is_rmw<T>, "atomic min with a result: int, uint")
#undef MSL_ATOMIC
// 64-bit: only min and max without a result (Apple8 and later).
template <class P>
inline void atomic_max_explicit(P p, detail::atomic_t<P> x, memory_order) {
    static_assert(std::is_same_v<detail::atomic_t<P>, ulong>, "atomic_max: ulong");
    __atomic_fetch_max(detail::cell(p), x, __ATOMIC_RELAXED);
}
template <class P>
inline void atomic_min_explicit(P p, detail::atomic_t<P> x, memory_order) {
    static_assert(std::is_same_v<detail::atomic_t<P>, ulong>, "atomic_min: ulong");
    __atomic_fetch_min(detail::cell(p), x, __ATOMIC_RELAXED);
}
#undef MSL_RELAXED
enum class mem_flags : unsigned;
inline void atomic_thread_fence(mem_flags, memory_order order, thread_scope = thread_scope_device) {
    if (order != memory_order_relaxed) __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
}  // namespace metal
