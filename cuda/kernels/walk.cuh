// Says where a block is in the chain and what share of the command it has; and the barrier of the grid.
#pragma once

#include "command.h"
#include "platform.cuh"
#include "tile_job.cuh"

namespace akunu::cuda {

// The head of shared memory has this command, the next one, room for reductions, and what is declared here.

// Whether what compute-sanitizer's racecheck follows orders accesses to shared memory (AKUNU_CUDA_RACECHECK in
// docs/cuda.md): atomics and barriers of warps and blocks, instead of barriers in shared memory, volatile words and
// votes.
constexpr bool kChecksRaces = AKUNU_RACECHECK != 0;

// Words that a thread changes while others look at them; by atomics where races are looked for, since these words grow.
AKUNU_DEVICE u32 look_at(const u32& v) {
    if constexpr (kChecksRaces) return atomic_max(const_cast<u32*>(&v), 0u);
    return *const_cast<const volatile u32*>(&v);
}
AKUNU_DEVICE void publish(u32& at, u32 v) {
    if constexpr (kChecksRaces) {
        atomic_max(&at, v);
    } else {
        *const_cast<volatile u32*>(&at) = v;
    }
}
// A time that each lane of a warp notes and reads: some lane's will do.
template <typename T>
AKUNU_DEVICE void note(T& at, T time) {
    if constexpr (kChecksRaces) {
        atomic_max(&at, time);
    } else {
        at = time;
    }
}
template <typename T>
AKUNU_DEVICE T noted(T& at) {
    if constexpr (kChecksRaces) return atomic_max(&at, T(0));
    return at;
}
// Between reads by a warp's lanes and a write by one of them, where otherwise a vote of the lanes is.
AKUNU_DEVICE void sync_readers() {
    if constexpr (kChecksRaces) sync_warp();
}

// A number that all lanes have, which the compiler then knows: a branch on it parts none.
AKUNU_DEVICE u32 same_in_warp(u32 v) { return largest_of_warp(v); }

// A barrier of the threads that run commands.
AKUNU_DEVICE void sync_block() { sync_some<1>(kThreads); }
// A barrier with the warps that load the tiles of many rows, too: while a command runs, and between two commands.
// Where races are looked for, all of the block's warps come.
template <unsigned kBarrier>
AKUNU_DEVICE void sync_most(u32 threads) {
    if constexpr (kChecksRaces) {
        sync_warp();
        sync_all();
    } else {
        sync_some<kBarrier>(threads);
    }
}
AKUNU_DEVICE void sync_with_loaders() { sync_most<2>(kThreads + kLoaders); }
AKUNU_DEVICE void sync_next() { sync_most<7>(kThreads + kLoaders - 32); }
// A barrier of the preparing warp and the last loading warp, which does something else where no tiles are loaded.
AKUNU_DEVICE void sync_last_loader() { sync_some<9>(64); }
constexpr u32 kTeamBarrier = 3;    // the first of those of a block's parts
constexpr u32 kPassedBarrier = 8;  // see GridBarrier
// Where races are looked for: one with the warp that fills the ring, and one with those that load tiles.
AKUNU_DEVICE void sync_slot() { sync_some<10>(kThreads + 32); }
AKUNU_DEVICE void sync_stage() { sync_some<11>(kThreads + kLoaders); }

// Other commands; one row times weights that come through the ring, or the same where the block has no share of it; a
// few such rows; those whose tiles are brought; and attention in decoding. One row and attention are found at once,
// since a layer's time is that of few of its instructions.
enum Way : u32 { kOtherWay, kOneRow, kNoShare, kFewOfRing, kManyRows, kDecoding };

// A place in the chain: a command of a segment, in a step, of which so many commands ran before.
struct ChainPlace {
    u32 step, segment, command, begun;
};
// A block's share of a command.
struct alignas(16) Walk {
    u32 begins;   // 1: a step, or the chain's end, behind a barrier of the grid
    u32 waits;    // 1: at a barrier of the grid
    u32 readers;  // of weights that come through the ring: one more than each, eight bits for a stream; 0: none do
    u32 way;      // how it runs: Way
    u32 first;    // of the command's units a block takes first, first + blocks, ...
    u32 turn;     // where the next command's units begin, so that blocks of a stage follow one another
    u32 last;     // 1: ends its step
    u32 number;   // counted over the commands of all launches
#if AKUNU_CARDS > 1
    u32 sums;  // that cards have made in the launch, the command's own too
#endif
    u64 *taken, *left;  // words of the command before it, and its own; null: there are none
    ChainPlace at, next;
};

// Decode attention: what is the same for all layers of a step is found out once. How rows and KV heads are dealt to
// teams of a block's warps,
struct DecodeShape {
    u32 units, splits, halvings;  // splits of keys; parts of a group's heads are two to the power of halvings
    u32 team_shift;               // a team has two to the power of it warps
    u32 group, parts;             // query heads that are taken together, and such parts of a KV head's group
};
// and a team's unit: some query heads of a KV head, and a row's keys [first, end), behind which are `own` of this step:
// those of rows just before it of its sequence, and the row's own.
struct DecodeUnit {
    u32 unit;  // one more than its number; 0: none
    u32 there, slot, position, row, kv, part, first_head, end_head, split, splits, first, end, own;
    u32 page, page_before;  // of the row's own key, and where it is needed the one before
};

// The adapter of a launch's only row, once it is known.
struct LaunchAdapter {
    u32 known;
    AdapterChoice choice;
};

// A slot of the ring, and how often its barriers have passed, odd or even.
struct RingPlace {
    u32 slot, phase;
    AKUNU_DEVICE void advance(u32 slots) {
        if (++slot < slots) return;
        slot = 0;
        phase ^= 1;
    }
};

// State that the threads of a block share, at the head's end.
struct BlockState {
    Launch launch;
    u32 failure;  // LaunchError
    u32 ticket;
#if AKUNU_CARDS > 1
    u32 waits_since[kBlockThreads / 32];  // of warps that have waited for long, in microseconds of 1,024 ns
#else
    u64 waits_since[kBlockThreads / 32];  // of warps that have waited for long
#endif
    u32 done;       // steps
    u32 ended;      // 1: no more weights are wanted
    u32 loads;      // the command's slot whose tiles are brought
    u32 requested;  // slots of the ring that were asked for so far
    DecodeShape decode;
    DecodeUnit unit[kWarps / 2];  // of teams
    u32 pages[kWarps][4];         // of the keys that a warp takes first of its team's unit
    u32 slot[kWarps];             // of the command that a warp is at
    RingPlace read[kWarps];       // what a warp reads next
#if AKUNU_ADAPTERS
    LaunchAdapter adapter;
#endif
    Walk walk[2];           // of the commands in shared memory
    TileJob job[2][2];      // and what they multiply that comes through the ring
    LaunchSegment segment;  // of the command that was prepared last
};
AKUNU_DEVICE BlockState& block_state() {
    return *reinterpret_cast<BlockState*>(shared_memory() + kSharedHead - sizeof(BlockState));
}

// Two of the warps that load tiles have more to do, one command ahead of the others: see `run_loaders`.
constexpr u32 kBarrierWarp = kWarps + 1, kPreparer = kWarps + 2;
// The warp that fills the ring goes its own way, but where races are looked for.
constexpr u32 kLastOther = kChecksRaces ? kWarps - 1 : kWarps;

// Whether a thread's warp, which has polled so many times, has waited for too long, or some other block has.
constexpr u32 kManyLooks = 1024;
AKUNU_DEVICE bool has_waited_long(u32 looks) {
    const Launch& launch = block_state().launch;
    auto& since = block_state().waits_since[warp_id()];
#if AKUNU_CARDS > 1
    if (looks == kManyLooks) note(since, u32(nanoseconds() >> 10));
    const auto waited = [&] { return u64(u32(nanoseconds() >> 10) - noted(since)) << 10; };
#else
    if (looks == kManyLooks) note(since, u64(nanoseconds()));
    const auto waited = [&] { return nanoseconds() - noted(since); };
#endif
    if (load_acquire(&launch.barrier->error) == kNoError) {
        if (waited() <= launch.timeout_ns) return false;
        launch.barrier->error = kTimedOut;
    }
    return true;
}
AKUNU_DEVICE bool gives_up(u32 looks) { return looks % kManyLooks == 0 && has_waited_long(looks); }
// One lane waits until a barrier in shared memory has passed. Waiting in vain is an error, as everywhere.
AKUNU_DEVICE void wait_for_phase(const u64* barrier, u32 phase) {
    for (u32 looks = 1; !has_passed(barrier, phase); ++looks) {
        if (!gives_up(looks)) continue;
        publish(block_state().failure, kTimedOut);
        return;
    }
}

// A grid's barrier, kept in shared memory. A block arrives behind `sync_next`; what follows `wait` sees all that blocks
// wrote before they arrived. It fails where some block does not come in time.
//
// A warp of its own, the barrier's warp, tells the other blocks and looks for them, which takes as long as two reads of
// the second-level cache and a fence: meanwhile those that run commands set up the next one.
struct GridBarrier {
    u32* arrived;
    u64* passed_at;  // null, or where the first block leaves the time
    u32 blocks;
    u32 wanted;  // arrivals at all barriers so far

    AKUNU_DEVICE void wait() const { sync_some<kPassedBarrier>(kThreads + 32); }
    // By the barrier's warp. What failed is shown once all have come to wait: they have looked for it behind
    // `sync_next`, and all must have seen the same.
    AKUNU_DEVICE void pass() {
        bool failed = false;
        if (lane_id() == 0) {
            arrive_release(arrived);
            const u32 all = wanted += blocks;
            for (u32 looks = 1; load_acquire(arrived) < all && !failed; ++looks) {
                spin_pause();
                failed = gives_up(looks);
            }
            if (passed_at && block_id() == 0) *passed_at++ = nanoseconds();
        }
        wait();
        if (failed) publish(block_state().failure, kTimedOut);
    }
};
static_assert(2 * sizeof(Command) + kWarps * 8 + sizeof(GridBarrier) + sizeof(BlockState) <= kSharedHead,
              "all fit the head");
AKUNU_DEVICE GridBarrier& grid_barrier() {
    return *reinterpret_cast<GridBarrier*>(shared_memory() + 2 * sizeof(Command) + kWarps * 8);
}
// Of a place in the segment that is kept.
AKUNU_DEVICE bool ends_segment(const ChainPlace& at) { return at.command + 1 == block_state().segment.n_commands; }
AKUNU_DEVICE bool ends_step(const Launch& launch, const ChainPlace& at) {
    return ends_segment(at) && at.segment + 1 == launch.n_segments;
}
AKUNU_DEVICE ChainPlace place_behind(const Launch& launch, const ChainPlace& at) {
    if (ends_step(launch, at)) return {at.step + 1, 0, 0, 0};
    if (ends_segment(at)) return {at.step, at.segment + 1, 0, at.begun + 1};
    return {at.step, at.segment, at.command + 1, at.begun + 1};
}

AKUNU_DEVICE Command& command_in(u32 slot) { return reinterpret_cast<Command*>(shared_memory())[slot]; }

// For a command whose weights could come through the ring.
AKUNU_DEVICE u32 ring_rows(const Command& c) {
    return c.op == kOpMatmul                             ? reinterpret_cast<const MatmulParams*>(c.params)->rows
           : c.op == kOpGateUp                           ? reinterpret_cast<const GateUpParams*>(c.params)->rows
           : c.op == kOpNormQkv || c.op == kOpNormGateUp ? c.params[kNormedRowsWord]
                                                         : 1;
}
AKUNU_DEVICE bool rows_take_ring(u32 rows) { return rows - 1 < kFewRows; }
// The readers of its weights that do. The host has said which could; of those with many rows none do.
AKUNU_DEVICE u32 ring_readers(const Launch& launch, const Command& c) {
    if (c.streams == 0 || !rows_take_ring(ring_rows(c)) || launch.slots == 0) return 0;
    return (c.weights[0].reader + 1) | (c.streams == 2 ? (c.weights[2].reader + 1) << 8 : 0);
}
AKUNU_DEVICE bool has_many_rows(const Command& c) {
    return (c.op == kOpMatmul || c.op == kOpGateUp) && c.half_input && ring_rows(c) > kTileOfRows;
}

// Blocks from the first of a command's units to that of the next one's, if that does not wait.
constexpr u32 kTurn = 64;
// One thread derives the block's share of the command in a slot from that of the command before it.
AKUNU_DEVICE void enter(const Launch& launch, u32 slot) {
    const Walk& before = block_state().walk[1 - slot];
    const Command& c = command_in(slot);
    Walk& now = block_state().walk[slot];
    now.at = before.next;
    now.next = place_behind(launch, now.at);
    now.begins = now.at.segment == 0 && now.at.command == 0;
    const bool by_words = block_state().segment.rows <= c.reads_words && launch.slots != 0 && !launch.times;
    now.waits = !now.begins && (now.at.command == 0 || launch.times || (c.barrier && !by_words));
    now.number = before.number + 1;
#if AKUNU_CARDS > 1
    now.sums = before.sums + (c.op == kOpAllReduce || c.reduces);
#endif
    const auto words = [&](u32 number) { return launch.words + number % kWordBuffers * kMostWords; };
    now.taken = by_words ? words(before.number) : nullptr;
    now.left = block_state().segment.rows <= c.writes_words && launch.slots != 0 ? words(now.number) : nullptr;
    const u32 turn = now.begins || now.waits || by_words ? 0 : before.turn;
    now.first = block_id() + (block_id() < turn ? grid_blocks() : 0) - turn;
    now.turn = turn + kTurn;
    while (now.turn >= grid_blocks()) now.turn -= grid_blocks();
    now.readers = ring_readers(launch, c);
    now.way = now.readers != 0             ? ring_rows(c) == 1 ? kOneRow : kFewOfRing
              : has_many_rows(c)           ? kManyRows
              : c.op == kOpDecodeAttention ? kDecoding
                                           : kOtherWay;
    now.last = ends_step(launch, now.at);
    u32 idle = 1;
    for (u32 i = 0; i < c.streams && now.readers != 0; ++i) {
        TileJob& job = block_state().job[slot][i];
        job = tile_job(c, i, now.left, now.number);
#if AKUNU_CARDS > 1
        job.sum = c.reduces ? now.sums : 0;
#endif
        idle &= job.begin == job.end;
    }
#if AKUNU_ADAPTERS
    // A block without tiles may have rows of adapters' A.
    if (now.way == kOneRow && c.buffers[kAdapterChoices] != 0) {
        const u32* const ranks = reinterpret_cast<const AdaptedParams*>(c.params + kAdaptedWord)->max_rank;
        const TileJob& job = block_state().job[slot][0];
        idle &= share_place(job.pairs, job.k, 0) >= ranks[0] + ranks[1] + ranks[2];
    }
#endif
    // Words of earlier commands are for those who have something to do with them: others may come when they are gone.
    if (now.way == kOneRow && idle) now.way = kNoShare;
}

// By the warp that prepares, while the command before it runs: a command comes to shared memory, its patches are
// applied, and what it is to the block is found out.
AKUNU_DEVICE void prepare(u32 slot) {
    static_assert(sizeof(Command) / 16 <= 32, "a warp copies a command");
    const Launch& launch = block_state().launch;
    const ChainPlace at = block_state().walk[1 - slot].next;
    const u32 lane = lane_id();
    Command& c = command_in(slot);
    LaunchSegment& segment = block_state().segment;
    if (at.command == 0) {  // for all lanes
        static_assert(sizeof(LaunchSegment) / 8 <= 32, "a warp copies a segment");
        if (lane < sizeof(LaunchSegment) / 8) {
            reinterpret_cast<u64*>(&segment)[lane] = reinterpret_cast<const u64*>(launch.segments + at.segment)[lane];
        }
        sync_warp();
    }
    if (lane < sizeof(Command) / 16) {
        reinterpret_cast<uint4*>(&c)[lane] = reinterpret_cast<const uint4*>(segment.commands + at.command)[lane];
    }
    sync_warp();
    if (lane < c.n_patches) {
        const u32 patch = c.patch_value[lane], source = patch & kPatchSourceMask;
        const u32 value = source == kPatchRows     ? segment.rows
                          : source == kPatchLogits ? segment.logits
                          : source == kPatchStep   ? segment.step + at.step * launch.more_steps
                                                   : segment.keys + at.step * launch.more_keys;
        c.params[c.patch_field[lane]] = value * (1 + (patch >> kPatchTimesShift));
    }
    sync_warp();
    if (lane == 0) enter(launch, slot);
}

}  // namespace akunu::cuda
