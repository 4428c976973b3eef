// Parameters of the kernel that moves positions within a KV cache, or from one to another.
#pragma once

#include "kv_layout.h"

#ifndef __METAL_VERSION__
namespace akunu::metal {
#endif

enum KvMoveSizes : u32 { kMoveSimds = 8 };

// to[to_position + i] = from[from_position + i] for i in [0, count). Keys are turned by RoPE's angles of `turn`
// positions, which is to_position - from_position where a text moves to other positions, and 0 where it is a copy.
struct KvMoveParams {
    u32 from_position;
    u32 to_position;
    u32 count;
    u32 head_dim;
    u32 from_context;  // positions that each cache holds
    u32 to_context;
    int turn;
    u32 rope_dim;
    u32 style;  // RopeStyle
};

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#endif
