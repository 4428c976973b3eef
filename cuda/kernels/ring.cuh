// Weights on their way: a ring of slots in shared memory. A warp of its own fills it, ahead of the commands and across
// the grid's barriers, since weights depend on nothing; the warps that multiply free a slot together.
//
// What is on its way is bounded: behind a queue of copies every barrier of the grid would wait.
#pragma once

#include "few_layout.h"
#include "walk.cuh"

namespace akunu::cuda {

constexpr BlockSizes kSizes = block_sizes(kSharedBytes);

// At the ring's beginning. Of slot i, full[i] passes when its bytes have come, empty[i] when all warps have read them.
struct RingBarriers {
    u64 full[kMostSlots], empty[kMostSlots];
};
static_assert(sizeof(RingBarriers) <= kRingHead, "slots begin behind it");
AKUNU_DEVICE RingBarriers& ring_barriers() {
    return *reinterpret_cast<RingBarriers*>(shared_memory() + block_state().launch.ring);
}

AKUNU_DEVICE void start_ring() {
    if constexpr (kChecksRaces) return;
    RingBarriers& ring = ring_barriers();
    for (u32 i = 0; i < block_state().launch.slots; ++i) {
        init_barrier(&ring.full[i], kCopyLanes);
        init_barrier(&ring.empty[i], kWarps);
    }
    publish_barriers();
}

// Says where a tile begins, in matrices one behind the other or in the first of a pair.
AKUNU_DEVICE const u8* tile_at(const Stream& s, u32 tile) {
    u64 matrix = s.at[0];
    if (!s.pairs && tile >= s.tiles[0]) {
        tile -= s.tiles[0];
        matrix = s.at[1];
        if (tile >= s.tiles[1]) {
            tile -= s.tiles[1];
            matrix = s.at[2];
        }
    }
    return reinterpret_cast<const u8*>(matrix) + u64(tile) * s.tile_bytes;
}

// The slots of a chain in the order in which row_tiles, byte_rows and few_rows take them: request(from, bytes) of each,
// until it says false. What a stream has is in registers, since how soon a copy follows the one before is what bounds
// the bandwidth.
template <typename F>
struct EachSlot {
    const F& request;

    // Requests the bytes [from, end) of a tile, or of a pair.
    AKUNU_DEVICE bool tile(const Stream& s, u32 tile, u32 from, u32 end) const {
        const u8* bytes = tile_at(s, tile);
        for (u32 half = 0; half <= s.pairs; ++half) {
            for (u32 done = from; done < end; done += s.slot_bytes) {
                const u32 left = end - done;
                if (!request(bytes + done, left < s.slot_bytes ? left : s.slot_bytes)) return false;
            }
            bytes += s.at[1] - s.at[0];
        }
        return true;
    }
    AKUNU_DEVICE bool share(const Stream& s, u32 rows) const {
        const u32 tiles = s.pairs ? s.tiles[0] : s.tiles[0] + s.tiles[1] + s.tiles[2];
        if (rows - 2 < kByteRows - 1 && s.byte_slot_bytes != 0) return byte_share(s, tiles);
        const Share mine = share_of(tiles, s.pairs, s.k, s.behind);
        const u32 chunk = rows == 1 ? s.k : few_chunk(kSizes, rows, s.k), pass = few_pass(kSizes, s.pairs);
        const u32 bytes = chunk >= s.k ? s.tile_bytes : s.tile_bytes / (s.k / kStepInputs) * (chunk / kStepInputs);
        for (u32 first = mine.begin; first < mine.end; first += pass) {
            for (u32 from = 0; from < s.tile_bytes; from += bytes) {
                const u32 left = s.tile_bytes - from, to = from + (left < bytes ? left : bytes);
                for (u32 i = first; i < mine.end && i < first + pass; ++i) {
                    if (!tile(s, i, from, to)) return false;
                }
            }
        }
        return true;
    }
    // Of what byte_rows takes: the block's tiles, and its part of their inputs, in chunks; the slots of some tiles come
    // in turn. Those of pairs are counted one by one.
    AKUNU_DEVICE bool byte_share(const Stream& s, u32 all) const {
        const bool split = s.split > 1;
        const SplitShare mine =
            split ? split_share(all, s.split) : SplitShare{0, share_of(all, s.pairs, s.k, s.behind)};
        const u32 step_bytes = s.tile_bytes / (s.k / kStepInputs), pass = byte_pass(kSizes, s.pairs);
        const auto bytes_of = [&](u32 inputs) { return inputs / kStepInputs * step_bytes; };
        const u32 begin = split ? bytes_of(split_begin(s.k, s.split, mine.part)) : 0;
        const u32 end = split ? bytes_of(split_begin(s.k, s.split, mine.part + 1)) : s.tile_bytes;
        const u32 chunk = bytes_of(byte_chunk(kSizes, longest_part(s.k, s.split)));
        for (u32 first = mine.tiles.begin; first < mine.tiles.end; first += pass) {
            const u32 left_tiles = mine.tiles.end - first;
            const u32 behind = (first + (left_tiles < pass ? left_tiles : pass)) << s.pairs;
            for (u32 from = begin; from < end; from += chunk) {
                const u32 left = end - from, to = from + (left < chunk ? left : chunk);
                for (u32 i = first << s.pairs; i < behind; i += kSizes.byte_tiles) {
                    const bool both = kSizes.byte_tiles == 2 && i + 1 < behind;
                    if (!byte_tiles(s, i, both, from, to)) return false;
                }
            }
        }
        return true;
    }
    // Requests the bytes [from, end) of tile i, and of the next one.
    AKUNU_DEVICE bool byte_tiles(const Stream& s, u32 i, bool both, u32 from, u32 end) const {
        const u64 apart = s.at[1] - s.at[0];
        const u8* const first = tile_at(s, i >> s.pairs) + (i & s.pairs) * apart;
        const u8* const second = !both ? nullptr : s.pairs ? first + apart : tile_at(s, i + 1);
        for (u32 done = from; done < end; done += s.byte_slot_bytes) {
            const u32 left = end - done, bytes = left < s.byte_slot_bytes ? left : s.byte_slot_bytes;
            if (!request(first + done, bytes)) return false;
            if (both && !request(second + done, bytes)) return false;
        }
        return true;
    }
    AKUNU_DEVICE bool step() const {
        const Launch& launch = block_state().launch;
        for (u32 i = 0; i < launch.n_segments; ++i) {
            const LaunchSegment segment = launch.segments[i];
            for (u32 k = 0; k < segment.n_streams; ++k) {
                const Stream s = segment.streams[k];
                const u32 rows = s.rows_from == kPatchRows     ? segment.rows
                                 : s.rows_from == kPatchLogits ? segment.logits
                                                               : s.rows;
                if (rows_take_ring(rows) && !share(s, rows)) return false;
            }
        }
        return true;
    }
};
template <typename F>
AKUNU_DEVICE void each_slot(const F& request) {
    for (u32 step = 0; step < block_state().launch.steps; ++step) {
        if (!EachSlot<F>{request}.step()) return;
    }
}

// The warp behind those that run commands copies the weights of all steps, in the order in which they are read.
AKUNU_DEVICE_CALL void fill_ring() {
    if (lane_id() >= kCopyLanes || block_state().launch.slots == 0) return;
    RingBarriers* const barriers = &ring_barriers();
    u8* const memory = shared_memory() + block_state().launch.ring + kRingHead;
    const u32 slots = block_state().launch.slots, slot_bytes = block_state().launch.slot_bytes,
              window = block_state().launch.window;
    RingPlace to{}, oldest{};  // of what is on its way
    u32 on_way = 0, requested = 0;
    const auto land = [&] {
        wait_for_phase(&barriers->full[oldest.slot], oldest.phase);
        oldest.advance(slots);
        --on_way;
    };
    each_slot([&](const u8* from, u32 bytes) {
        if (on_way == window) land();
        while (!has_passed(&barriers->empty[to.slot], to.phase ^ 1)) {
            if (look_at(block_state().ended)) return false;
        }
        copy_arriving(memory + to.slot * slot_bytes, from, bytes, &barriers->full[to.slot]);
        publish(block_state().requested, ++requested);
        to.advance(slots);
        ++on_way;
        return true;
    });
    while (on_way != 0) land();  // no copy outlives its block
}

// Where races are looked for the same warp goes from command to command with the others, and copies a slot of the one
// that runs when all who read it ask for it, between two barriers with them.
struct CheckedRing {
    RingPlace to;
    u32 stream;  // of the segment's, the command's first

    AKUNU_DEVICE void fill(u32 slot) {
        const Launch& launch = block_state().launch;
        const Walk& now = block_state().walk[slot];
        const Command& c = command_in(slot);
        if (now.at.command == 0) stream = 0;
        const Stream* const streams = launch.segments[now.at.segment].streams + stream;
        stream += c.streams;
        if (now.readers == 0) return;
        const auto copy = [&](const u8* from, u32 bytes) {
            u8* const slot_memory = shared_memory() + launch.ring + kRingHead + to.slot * launch.slot_bytes;
            sync_slot();
            for (u32 i = lane_id() * 16; i < bytes; i += 512) copy_async16(slot_memory + i, from + i);
            wait_for_copies();
            sync_slot();
            to.advance(launch.slots);
            return true;
        };
        for (u32 i = 0; i < c.streams; ++i) EachSlot<decltype(copy)>{copy}.share(streams[i], ring_rows(c));
    }
};

// By a warp that has nothing else to do where no command has many rows: what comes after the ring's slots is fetched to
// the second-level cache meanwhile, some slots ahead of it, as fast as the memory can: so it need not pause where the
// ring is full.
AKUNU_DEVICE_CALL void fetch_ahead() {
    const u32 ahead = block_state().launch.ahead, cycles_of_kb = block_state().launch.cycles_of_kb;
    if (lane_id() == 0 && ahead != 0) {
        u32 slot = 0, last = cycles();
        each_slot([&](const u8* from, u32 bytes) {
            for (;; sleep_shortly()) {
                const u32 requested = look_at(block_state().requested);
                if (slot < requested) break;
                if (slot < requested + ahead && cycles() - last >= bytes / 1024 * cycles_of_kb) {
                    last = cycles();
                    fetch_to_cache(from, bytes);
                    break;
                }
                if (look_at(block_state().ended)) return false;
            }
            ++slot;
            return true;
        });
    }
    sync_warp();
}

// The slot that a warp reads next, which it keeps in shared memory from one command to the next.
struct RingReader {
    u32 ring, slots, slot_bytes;
    RingPlace at;

    AKUNU_DEVICE explicit RingReader(u32 warp)
        : ring(block_state().launch.ring),
          slots(block_state().launch.slots),
          slot_bytes(block_state().launch.slot_bytes),
          at(block_state().read[warp]) {}
    AKUNU_DEVICE void keep(u32 warp, u32 lane) const {
        sync_readers();
        if (lane == 0) block_state().read[warp] = at;
        sync_readers();
    }
    AKUNU_DEVICE u64* full() const { return reinterpret_cast<u64*>(shared_memory() + ring) + at.slot; }
    // Waits for the slot, and says where in shared memory it is. Fails as the barrier of the grid does.
    AKUNU_DEVICE u32 wait() const {
        if constexpr (kChecksRaces) {
            sync_slot();
            sync_slot();
        } else {
            if (!all_of_warp(has_passed(full(), at.phase))) wait_long();
        }
        return ring + kRingHead + at.slot * slot_bytes;
    }
    AKUNU_DEVICE void wait_long() const {
        u64 start = 0;
        for (u32 spins = 1; !all_of_warp(has_passed(full(), at.phase)); ++spins) {
            if (spins % 64 != 0) continue;
            if (start == 0) start = nanoseconds();
            if (nanoseconds() - start > block_state().launch.timeout_ns) {
                block_state().launch.barrier->error = kTimedOut;
                publish(block_state().failure, kTimedOut);
            }
            if (any_of_warp(look_at(block_state().failure) != kNoError)) break;
        }
    }
    // Reports that the warp has read the slot.
    AKUNU_DEVICE void free(u32 lane) {
        sync_warp();
        if (!kChecksRaces && lane == 0) arrive_at(full() + kMostSlots);
        at.advance(slots);
    }
    // Reports two slots, of which the warp waited for the first before it went on to the second.
    AKUNU_DEVICE void free_two(u32 lane, u64* first) {
        sync_warp();
        if (!kChecksRaces && lane == 0) {
            arrive_at(first + kMostSlots);
            arrive_at(full() + kMostSlots);
        }
        at.advance(slots);
    }
};

}  // namespace akunu::cuda
