// The sequences of a step: rows of one stand together.
#pragma once

#include "block.cuh"
#include "core/step_state.h"

namespace akunu::cuda {

struct SequenceRows {
    u32 first, rows;
};

// By a warp, which looks at 32 rows at a time.
struct Sequences {
    const Row* all;
    u32 rows;
    AKUNU_DEVICE u32 begins(u32 from) const {
        const u32 i = from + lane_id();
        return vote(i < rows && (i == 0 || all[i].slot != all[i - 1].slot));
    }
    AKUNU_DEVICE u32 count() const {
        u32 n = 0;
        for (u32 from = 0; from < rows; from += 32) n += ones_in(begins(from));
        return n;
    }
    // The rows of sequence i.
    AKUNU_DEVICE SequenceRows at(u32 i) const {
        u32 from = 0, bits = begins(0);
        for (u32 n = ones_in(bits); n <= i; n = ones_in(bits)) {
            i -= n;
            from += 32;
            bits = begins(from);
        }
        for (; i > 0; --i) bits &= bits - 1;
        const u32 first = from + trailing_zeros(bits);
        for (bits &= bits - 1; bits == 0;) {
            from += 32;
            if (from >= rows) return {first, rows - first};
            bits = begins(from);
        }
        return {first, from + trailing_zeros(bits) - first};
    }
};

}  // namespace akunu::cuda
