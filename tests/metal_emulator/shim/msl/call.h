// Used by generated code: a kernel's parameters from the executor's state.  Not instrumented: the state
// is the executor's, and it is written without TSan's knowledge.
#pragma once
#include "types.h"

namespace mslrt {
template <class V>
MSL_NO_SANITIZE inline V builtin_value(const uint32_t (&v)[3]) {
    constexpr int n = metal::detail::size_v<V>;
    if constexpr (n == 0)
        return static_cast<V>(v[0]);
    else {
        V r;
        for (int i = 0; i < n; ++i) r[i] = static_cast<metal::detail::elem_t<V>>(v[i]);
        return r;
    }
}

template <class P>
MSL_NO_SANITIZE inline P argument(const Binding& b) {
    Worker* w = msl_worker;
    Fiber* f = w->current;
    if constexpr (std::is_reference_v<P> || std::is_pointer_v<P>) {
        // A parameter switched off by a function constant is bound to nothing.
        void* p = b.kind == kBuffer ? w->args->buffer[b.index] : msl_threadgroup_dynamic(b.index);
        if constexpr (std::is_pointer_v<P>)
            return (P)p;
        else
            return *(std::remove_reference_t<P>*)p;
    } else {
        const uint32_t* group = w->args->group;
        const uint32_t in_grid[3] = {w->group_pos[0] * group[0] + f->pos[0], w->group_pos[1] * group[1] + f->pos[1],
                                     w->group_pos[2] * group[2] + f->pos[2]};
        uint32_t s[3] = {0, 0, 0};
        switch (b.kind) {
            case kThreadPositionInGrid:
                return builtin_value<P>(in_grid);
            case kThreadPositionInThreadgroup:
                return builtin_value<P>(f->pos);
            case kThreadgroupPositionInGrid:
                return builtin_value<P>(w->group_pos);
            case kThreadsPerThreadgroup:
                return builtin_value<P>(w->group_size);
            case kThreadgroupsPerGrid:
                return builtin_value<P>(w->groups);
            case kThreadsPerGrid:
                return builtin_value<P>(w->args->grid);
            case kDispatchThreadsPerThreadgroup:
                return builtin_value<P>(w->args->group);
            case kThreadIndexInThreadgroup:
                s[0] = f->tid;
                break;
            case kThreadIndexInSimdgroup:
                s[0] = f->lane;
                break;
            case kSimdgroupIndexInThreadgroup:
                s[0] = f->simd->index;
                break;
            case kSimdgroupsPerThreadgroup:
                s[0] = w->simd_count;
                break;
            case kThreadsPerSimdgroup:
                s[0] = kLanes;
                break;
            case kThreadIndexInQuadgroup:
                s[0] = f->lane & 3;
                break;
            case kQuadgroupIndexInThreadgroup:
                s[0] = f->tid / 4;
                break;
            case kBuffer:
            case kThreadgroup:
                break;
        }
        return builtin_value<P>(s);
    }
}

template <class... P, size_t... I>
MSL_NO_SANITIZE inline void call_with(void (*kernel_fn)(P...), const Binding* b, std::index_sequence<I...>) {
    kernel_fn(argument<P>(b[I])...);
    (void)b;
}
template <class... P>
MSL_NO_SANITIZE inline void call(void (*kernel_fn)(P...), const Binding* b) {
    call_with(kernel_fn, b, std::index_sequence_for<P...>{});
}

template <class P>
constexpr Param describe_one(const Binding& b, bool constant_space) {
    Param p{b, false, constant_space, 1, 0};
    if constexpr (std::is_pointer_v<P> || std::is_reference_v<P>) {
        using T = std::remove_pointer_t<std::remove_reference_t<P>>;
        p.writable = !std::is_const_v<T>;
        if constexpr (!std::is_void_v<T>) {
            p.align = alignof(T);
            p.size = std::is_reference_v<P> ? sizeof(T) : 0;
        }
    }
    return p;
}
template <class... P>
struct ParamTable {
    Param p[sizeof...(P) + 1];
};
template <class... P, size_t... I>
constexpr ParamTable<P...> describe_all(void (*)(P...), const Binding* b, const bool* constant_space,
                                        std::index_sequence<I...>) {
    return {{describe_one<P>(b[I], constant_space[I])..., Param{}}};
}
/// The table of a kernel's parameters: bindings from the text, the rest from the C++ types.
template <class... P>
constexpr auto describe(void (*fn)(P...), const Binding* b, const bool* constant_space) {
    return describe_all(fn, b, constant_space, std::index_sequence_for<P...>{});
}
}  // namespace mslrt
