// Barriers and SIMD-group functions.  Each is a rendezvous of the live lanes of a SIMD-group; the
// source line identifies it, so lanes that meet at different ones are reported as diverged.
#pragma once
#include "math.h"

namespace metal {
enum class mem_flags : unsigned {
    mem_none = 0,
    mem_device = 1,
    mem_threadgroup = 2,
    mem_texture = 4,
    mem_threadgroup_imageblock = 8
};
constexpr mem_flags operator|(mem_flags a, mem_flags b) {
    return static_cast<mem_flags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

namespace detail {
using mslrt::Fiber;
using mslrt::kLanes;
using mslrt::Simd;
// Numbers as in describe_tag() of the executor.
enum Op : uint64_t { kReduce = 1, kShuffle, kVote, kPrefix, kMatrix, kSimdBarrier, kBarrier };
constexpr uint64_t tag(Op op, int line) { return static_cast<uint64_t>(op) << 32 | static_cast<uint32_t>(line); }
MSL_NO_SANITIZE inline unsigned lane() { return mslrt::msl_worker->current->lane; }

template <class T>
[[gnu::always_inline]] inline T* slot(Simd* s, unsigned parity, unsigned lane) {
    static_assert(sizeof(T) <= mslrt::kSlotBytes, "value too large for a SIMD-group function");
    return reinterpret_cast<T*>(s->slot[parity] + lane * mslrt::kSlotBytes);
}
template <class T>
inline T poison() {
    T r;
    std::memset(&r, 0xFF, sizeof r);
    return r;
}

/// Publishes x; Finish leaves a value for all lanes in result.
template <class T, class R, class Finish>
MSL_NO_SANITIZE inline R reduce(T x, uint64_t tag, Finish finish) {
    Fiber* f = mslrt::msl_worker->current;
    Simd* s = f->simd;
    const unsigned p = s->generation & 1;
    *slot<T>(s, p, f->lane) = x;
    mslrt::arrive(s, f, tag, finish);
    return *reinterpret_cast<R*>(s->result[p]);
}
/// Tree reduction over the lanes that take part; the order of Apple GPUs is not documented.
template <class T, class Op>
struct Tree {
    MSL_NO_SANITIZE void operator()(Simd* s, unsigned p) const {
        T v[kLanes];
        bool on[kLanes];
        for (unsigned i = 0; i < kLanes; ++i) {
            on[i] = s->mask[p] >> i & 1;
            if (on[i]) v[i] = *slot<T>(s, p, i);
        }
        for (unsigned d = kLanes / 2; d; d /= 2)
            for (unsigned i = 0; i < d; ++i) {
                if (on[i] && on[i + d])
                    v[i] = static_cast<T>(Op{}(v[i], v[i + d]));
                else if (on[i + d]) {
                    v[i] = v[i + d];
                    on[i] = true;
                }
            }
        *reinterpret_cast<T*>(s->result[p]) = v[0];
    }
};
struct Nothing {
    void operator()(Simd*, unsigned) const {}
};
/// Publishes x, reads lane `from`; out of range or inactive gives poison, as it is undefined in MSL.
template <class T>
MSL_NO_SANITIZE inline T exchange(T x, unsigned from, uint64_t tag) {
    Fiber* f = mslrt::msl_worker->current;
    Simd* s = f->simd;
    const unsigned p = s->generation & 1;
    *slot<T>(s, p, f->lane) = x;
    mslrt::arrive(s, f, tag, Nothing{});
    if (from >= kLanes || !(s->mask[p] >> from & 1)) return poison<T>();
    return *slot<T>(s, p, from);
}
struct Ballot {
    MSL_NO_SANITIZE void operator()(Simd* s, unsigned p) const {
        uint64_t m = 0;
        for (unsigned i = 0; i < kLanes; ++i)
            if (s->mask[p] >> i & 1 && *slot<bool>(s, p, i)) m |= uint64_t{1} << i;
        *reinterpret_cast<uint64_t*>(s->result[p]) = m;
    }
};
inline uint64_t ballot(bool e, int line) { return reduce<bool, uint64_t>(e, tag(kVote, line), Ballot{}); }

struct Add {
    template <class T>
    T operator()(T a, T b) const {
        return a + b;
    }
};
struct Mul {
    template <class T>
    T operator()(T a, T b) const {
        return a * b;
    }
};
struct Max {
    template <class T>
    T operator()(T a, T b) const {
        return metal::max(a, b);
    }
};
struct Min {
    template <class T>
    T operator()(T a, T b) const {
        return metal::min(a, b);
    }
};
struct And {
    template <class T>
    T operator()(T a, T b) const {
        return a & b;
    }
};
struct Or {
    template <class T>
    T operator()(T a, T b) const {
        return a | b;
    }
};
struct Xor {
    template <class T>
    T operator()(T a, T b) const {
        return a ^ b;
    }
};

template <class T, class Op, bool kInclusive>
struct Scan {
    MSL_NO_SANITIZE void operator()(Simd* s, unsigned p) const {
        T total = std::is_same_v<Op, Mul> ? T(1) : T(0);
        for (unsigned i = 0; i < kLanes; ++i) {
            if (!(s->mask[p] >> i & 1)) continue;
            const T v = *slot<T>(s, p, i);
            const T next = static_cast<T>(Op{}(total, v));
            *slot<T>(s, p, i) = kInclusive ? next : total;
            total = next;
        }
    }
};
template <class T, class Op, bool kInclusive>
MSL_NO_SANITIZE inline T scan(T x, uint64_t tag) {
    Fiber* f = mslrt::msl_worker->current;
    Simd* s = f->simd;
    const unsigned p = s->generation & 1;
    *slot<T>(s, p, f->lane) = x;
    mslrt::arrive(s, f, tag, Scan<T, Op, kInclusive>{});
    return *slot<T>(s, p, f->lane);
}
/// Over the quad (four neighbours); the rendezvous is of the whole SIMD-group, stricter than MSL.
template <class T, class Op>
inline T quad(T x, int line) {
    const unsigned l = lane();
    T a = exchange(x, l ^ 1, tag(kShuffle, line));
    x = static_cast<T>(Op{}(x, a));
    a = exchange(x, l ^ 2, tag(kShuffle, line));
    return static_cast<T>(Op{}(x, a));
}
}  // namespace detail

#define MSL_LINE int line = __builtin_LINE()
inline void threadgroup_barrier(mem_flags f, MSL_LINE) {
    mslrt::msl_barrier(detail::tag(detail::kBarrier, line), static_cast<unsigned>(f));
}
MSL_NO_SANITIZE inline void simdgroup_barrier(mem_flags f, MSL_LINE) {
    mslrt::Fiber* me = mslrt::msl_worker->current;
    // mem_none orders execution, not memory
    void* released = f == mem_flags::mem_none ? nullptr : mslrt::msl_simd_release();
    mslrt::arrive(me->simd, me, detail::tag(detail::kSimdBarrier, line), detail::Nothing{});
    if (released) mslrt::msl_simd_acquire(released);
}

#define MSL_REDUCE(name, Op)                                                                               \
    template <class T>                                                                                     \
    inline T simd_##name(T x, MSL_LINE) {                                                                  \
        return detail::reduce<T, T>(x, detail::tag(detail::kReduce, line), detail::Tree<T, detail::Op>{}); \
    }                                                                                                      \
    template <class T>                                                                                     \
    inline T quad_##name(T x, MSL_LINE) {                                                                  \
        return detail::quad<T, detail::Op>(x, line);                                                       \
    }
MSL_REDUCE(sum, Add)
MSL_REDUCE(product, Mul)
MSL_REDUCE(max, Max)
MSL_REDUCE(min, Min)
MSL_REDUCE(and, And)
MSL_REDUCE(or, Or)
MSL_REDUCE(xor, Xor)
#undef MSL_REDUCE
template <class T>
inline T simd_prefix_inclusive_sum(T x, MSL_LINE) {
    return detail::scan<T, detail::Add, true>(x, detail::tag(detail::kPrefix, line));
}
template <class T>
inline T simd_prefix_exclusive_sum(T x, MSL_LINE) {
    return detail::scan<T, detail::Add, false>(x, detail::tag(detail::kPrefix, line));
}
template <class T>
inline T simd_prefix_inclusive_product(T x, MSL_LINE) {
    return detail::scan<T, detail::Mul, true>(x, detail::tag(detail::kPrefix, line));
}
template <class T>
inline T simd_prefix_exclusive_product(T x, MSL_LINE) {
    return detail::scan<T, detail::Mul, false>(x, detail::tag(detail::kPrefix, line));
}

#define MSL_SHUFFLE detail::tag(detail::kShuffle, line)
template <class T>
inline T simd_shuffle(T x, ushort lane, MSL_LINE) {
    return detail::exchange(x, lane, MSL_SHUFFLE);
}
template <class T>
inline T simd_broadcast(T x, ushort lane, MSL_LINE) {
    return detail::exchange(x, lane, MSL_SHUFFLE);
}
template <class T>
inline T simd_shuffle_xor(T x, ushort mask, MSL_LINE) {
    return detail::exchange(x, detail::lane() ^ mask, MSL_SHUFFLE);
}
template <class T>
inline T simd_shuffle_down(T x, ushort delta, MSL_LINE) {
    return detail::exchange(x, detail::lane() + delta, MSL_SHUFFLE);
}
template <class T>
inline T simd_shuffle_up(T x, ushort delta, MSL_LINE) {
    return detail::exchange(x, detail::lane() - delta, MSL_SHUFFLE);
}
template <class T>
inline T simd_shuffle_rotate_down(T x, ushort delta, MSL_LINE) {
    return detail::exchange(x, (detail::lane() + delta) % 32, MSL_SHUFFLE);
}
template <class T>
inline T simd_shuffle_rotate_up(T x, ushort delta, MSL_LINE) {
    return detail::exchange(x, (detail::lane() - delta) % 32, MSL_SHUFFLE);
}
template <class T>
inline T simd_shuffle_and_fill_down(T x, T fill, ushort delta, MSL_LINE) {
    const T from_x = detail::exchange(x, (detail::lane() + delta) % 32, MSL_SHUFFLE),
            from_fill = detail::exchange(fill, (detail::lane() + delta) % 32, MSL_SHUFFLE);
    return detail::lane() + delta < 32 ? from_x : from_fill;
}
template <class T>
inline T simd_shuffle_and_fill_up(T x, T fill, ushort delta, MSL_LINE) {
    const T from_x = detail::exchange(x, (detail::lane() - delta) % 32, MSL_SHUFFLE),
            from_fill = detail::exchange(fill, (detail::lane() - delta) % 32, MSL_SHUFFLE);
    return detail::lane() >= delta ? from_x : from_fill;
}
template <class T>
inline T quad_broadcast(T x, ushort lane, MSL_LINE) {
    return detail::exchange(x, (detail::lane() & ~3u) + lane, MSL_SHUFFLE);
}
template <class T>
inline T quad_shuffle(T x, ushort lane, MSL_LINE) {
    return detail::exchange(x, (detail::lane() & ~3u) + lane, MSL_SHUFFLE);
}
template <class T>
inline T quad_shuffle_xor(T x, ushort mask, MSL_LINE) {
    return detail::exchange(x, detail::lane() ^ (mask & 3), MSL_SHUFFLE);
}
template <class T>
inline T quad_shuffle_down(T x, ushort delta, MSL_LINE) {
    const unsigned l = detail::lane();
    return detail::exchange(x, (l & 3) + delta < 4 ? l + delta : 99, MSL_SHUFFLE);
}
template <class T>
inline T quad_shuffle_up(T x, ushort delta, MSL_LINE) {
    const unsigned l = detail::lane();
    return detail::exchange(x, (l & 3) >= delta ? l - delta : 99, MSL_SHUFFLE);
}
#undef MSL_SHUFFLE

namespace detail {
template <class T>
struct First {
    MSL_NO_SANITIZE void operator()(Simd* s, unsigned p) const {
        *reinterpret_cast<T*>(s->result[p]) = *slot<T>(s, p, static_cast<unsigned>(__builtin_ctz(s->mask[p])));
    }
};
}  // namespace detail
template <class T>
inline T simd_broadcast_first(T x, MSL_LINE) {
    return detail::reduce<T, T>(x, detail::tag(detail::kShuffle, line), detail::First<T>{});
}

struct simd_vote {
    typedef uint64_t vote_t;
    explicit constexpr simd_vote(vote_t v = 0) : v_(v) {}
    explicit operator vote_t() const { return v_; }
    bool all() const { return v_ == 0xFFFFFFFFull; }
    bool any() const { return v_ != 0; }

  private:
    vote_t v_;
};
inline simd_vote simd_ballot(bool e, MSL_LINE) { return simd_vote(detail::ballot(e, line)); }
inline simd_vote simd_active_threads_mask(MSL_LINE) { return simd_vote(detail::ballot(true, line)); }
inline bool simd_any(bool e, MSL_LINE) { return detail::ballot(e, line) != 0; }
inline bool simd_all(bool e, MSL_LINE) { return detail::ballot(!e, line) == 0; }
inline bool simd_is_first(MSL_LINE) {
    return static_cast<unsigned>(__builtin_ctzll(detail::ballot(true, line))) == detail::lane();
}
}  // namespace metal
