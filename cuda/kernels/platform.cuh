// What the kernels take from CUDA: threads, barriers, shuffles, atomics, loads, conversions, the tensor cores. The
// emulator of tests/cuda has a file of the same name, so that the same sequences run on a CPU.
#pragma once

#define AKUNU_DEVICE __device__ __forceinline__
#define AKUNU_DEVICE_CALL __device__ __noinline__
#define AKUNU_UNROLL _Pragma("unroll")
#define AKUNU_UNROLL_TWICE _Pragma("unroll 2")
#define AKUNU_UNROLL_EIGHT _Pragma("unroll 8")
#define AKUNU_NO_UNROLL _Pragma("unroll 1")

namespace akunu::cuda {

typedef unsigned char u8;
typedef unsigned short u16;

AKUNU_DEVICE unsigned thread_id() { return threadIdx.x; }
// The same, asked for anew: what follows from it is kept for as long as it is used, and not for the whole launch.
AKUNU_DEVICE unsigned thread_id_anew() {
    unsigned id;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(id));
    return id;
}
AKUNU_DEVICE unsigned lane_id() { return threadIdx.x % 32; }
AKUNU_DEVICE unsigned warp_id() { return threadIdx.x / 32; }
AKUNU_DEVICE unsigned block_id() { return blockIdx.x; }
AKUNU_DEVICE unsigned grid_blocks() { return gridDim.x; }
constexpr unsigned kSharedBase = AKUNU_SHARED_BASE;
constexpr unsigned kSharedBytes = AKUNU_SHARED_BYTES;  // of a block
// As the host says: to ask where it begins takes as long as a read, each time.
AKUNU_DEVICE unsigned char* shared_memory() {
    return static_cast<unsigned char*>(__cvta_shared_to_generic(AKUNU_SHARED_BASE));
}
AKUNU_DEVICE bool shared_memory_is_there() {
    extern __shared__ __align__(128) unsigned char memory[];
    return __cvta_generic_to_shared(memory) == AKUNU_SHARED_BASE;
}

// What a kernel is given, where all of the grid finds it.
template <typename T>
AKUNU_DEVICE const T& grid_constant(const T& given) {
    return given;
}

AKUNU_DEVICE void sync_all() { __syncthreads(); }
// By some threads of a block. Such a barrier counts warps: a warp whose threads came one by one would count as several.
template <unsigned kBarrier>
AKUNU_DEVICE void sync_some(unsigned threads) {
    __syncwarp();
    asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "r"(threads) : "memory");
}
AKUNU_DEVICE void sync_some(unsigned barrier, unsigned threads) {
    __syncwarp();
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
AKUNU_DEVICE void sync_warp() { __syncwarp(); }

template <typename T>
AKUNU_DEVICE T shuffle_xor(T v, unsigned mask) {
    return __shfl_xor_sync(0xFFFFFFFFu, v, mask);
}

// What the lane `from` has.
template <typename T>
AKUNU_DEVICE T shuffle(T v, unsigned from) {
    return __shfl_sync(0xFFFFFFFFu, v, from);
}

AKUNU_DEVICE unsigned largest_of_warp(unsigned v) { return __reduce_max_sync(0xFFFFFFFFu, v); }

// Of all lanes, which come together. The compiler knows that the answer is theirs: a branch on it parts none.
AKUNU_DEVICE bool any_of_warp(bool v) { return __any_sync(0xFFFFFFFFu, v) != 0; }
AKUNU_DEVICE bool all_of_warp(bool v) { return __all_sync(0xFFFFFFFFu, v) != 0; }

// A bit for each lane.
AKUNU_DEVICE unsigned vote(bool v) { return __ballot_sync(0xFFFFFFFFu, v); }

AKUNU_DEVICE unsigned ones_in(unsigned v) { return unsigned(__popc(v)); }
// Of a number that is not 0.
AKUNU_DEVICE unsigned leading_zeros(unsigned v) { return unsigned(__clz(int(v))); }
AKUNU_DEVICE unsigned trailing_zeros(unsigned v) { return unsigned(__ffs(int(v))) - 1; }

// In shared memory or the device's.
AKUNU_DEVICE unsigned atomic_add(unsigned* p, unsigned v) { return atomicAdd(p, v); }
AKUNU_DEVICE unsigned long long atomic_add(unsigned long long* p, unsigned long long v) { return atomicAdd(p, v); }
AKUNU_DEVICE unsigned atomic_max(unsigned* p, unsigned v) { return atomicMax(p, v); }
AKUNU_DEVICE unsigned long long atomic_max(unsigned long long* p, unsigned long long v) { return atomicMax(p, v); }

// Between blocks.
AKUNU_DEVICE void arrive_release(unsigned* p) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(p) : "memory");
}
AKUNU_DEVICE unsigned load_acquire(const unsigned* p) {
    unsigned v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
// Counts up to `last`, and then from 0 on again; who counts later sees what was written before, by this thread or
// before a barrier of the block that it has passed.
AKUNU_DEVICE unsigned atomic_next_ordered(unsigned* p, unsigned last) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(p), "r"(last) : "memory");
    return before;
}
// Words of eight bytes, each written and read as a whole, with no order among them.
AKUNU_DEVICE void store_word(unsigned long long* p, unsigned long long v) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
AKUNU_DEVICE unsigned long long load_word(const unsigned long long* p) {
    unsigned long long v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
#if AKUNU_CARDS > 1
// The same where the writer or the reader is another GPU.
AKUNU_DEVICE void store_card_word(unsigned long long* p, unsigned long long v) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
AKUNU_DEVICE unsigned long long load_card_word(const unsigned long long* p) {
    unsigned long long v;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
#endif
// Of an even place.
AKUNU_DEVICE void load_words(const unsigned long long* p, unsigned long long (&v)[2]) {
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(v[0]), "=l"(v[1]) : "l"(p) : "memory");
}
AKUNU_DEVICE void fence_system() { __threadfence_system(); }
AKUNU_DEVICE unsigned load_host(const unsigned* p) { return *reinterpret_cast<const volatile unsigned*>(p); }
AKUNU_DEVICE void store_host(unsigned* p, unsigned v) { *reinterpret_cast<volatile unsigned*>(p) = v; }
AKUNU_DEVICE void spin_pause() {}
AKUNU_DEVICE unsigned long long nanoseconds() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

AKUNU_DEVICE unsigned cycles() {
    unsigned t;
    asm volatile("mov.u32 %0, %clock;" : "=r"(t));
    return t;
}
AKUNU_DEVICE void sleep_shortly() { __nanosleep(100); }

// The device's memory, or the host's: the compiler then knows that it is none of the block's.
template <typename T>
AKUNU_DEVICE T* in_global(T* p) {
    __builtin_assume(__isGlobal(p));
    return p;
}

// What another block has just written.
AKUNU_DEVICE float load_fresh(const float* p) { return __ldcg(p); }
AKUNU_DEVICE float2 load_fresh(const float2* p) { return __ldcg(p); }

// Memory that no command writes.
AKUNU_DEVICE uint4 load_weights16(const void* p) {
    uint4 v;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(p));
    return v;
}
AKUNU_DEVICE unsigned load_weights4(const void* p) { return __ldg(static_cast<const unsigned*>(p)); }
AKUNU_DEVICE unsigned short load_weights2(const void* p) { return __ldg(static_cast<const unsigned short*>(p)); }
AKUNU_DEVICE unsigned char load_weights1(const void* p) { return __ldg(static_cast<const unsigned char*>(p)); }

// Bytes of a, 0 to 3, and of b, 4 to 7, each chosen by a digit of `which`.
AKUNU_DEVICE unsigned choose_bytes(unsigned a, unsigned b, unsigned which) { return __byte_perm(a, b, which); }
// Bytes of ones where v's have their top bit, and of zeros.
AKUNU_DEVICE unsigned byte_signs(unsigned v) {
    unsigned r;
    asm("prmt.b32 %0, %1, 0, 0xBA98;" : "=r"(r) : "r"(v));
    return r;
}

// (v & mask) ^ flip; of two constants the compiler makes two instructions.
AKUNU_DEVICE unsigned masked_xor(unsigned v, unsigned mask, unsigned flip) {
    unsigned r;
    asm("lop3.b32 %0, %1, %2, %3, 0x6A;" : "=r"(r) : "r"(v), "r"(mask), "r"(flip));
    return r;
}

AKUNU_DEVICE unsigned shared_address(const void* p) { return unsigned(__cvta_generic_to_shared(p)); }

// Copies to shared memory, of which a thread waits for its own.
AKUNU_DEVICE void copy_async16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
// Zeros, where it is not there.
AKUNU_DEVICE void copy_async16(void* to, const void* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
}
AKUNU_DEVICE void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
// Copies that a thread began since the last such call are a bundle. Waits for all but the `most` last bundles.
AKUNU_DEVICE void bundle_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <unsigned kMost>
AKUNU_DEVICE void wait_for_bundles() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kMost) : "memory");
}

// Barriers in shared memory. Phase after phase passes, each when as many have arrived, and all bytes of copies have.
AKUNU_DEVICE void init_barrier(unsigned long long* b, unsigned arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals) : "memory");
}
// Its memory may be used for something else then.
AKUNU_DEVICE void drop_barrier(unsigned long long* b) {
    asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(shared_address(b)) : "memory");
}
AKUNU_DEVICE void arrive_at(unsigned long long* b) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(shared_address(b)) : "memory");
}
// Arrives once the copies of 16 bytes that this thread has begun have come.
AKUNU_DEVICE void arrive_when_copied(unsigned long long* b) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(b)) : "memory");
}
// Whether the phase of this parity has passed; before the first one, the odd one has.
AKUNU_DEVICE bool has_passed(const unsigned long long* b, unsigned parity) {
    unsigned passed;
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(passed)
                 : "r"(shared_address(b)), "r"(parity)
                 : "memory");
#else
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(passed)
                 : "r"(shared_address(b)), "r"(parity)
                 : "memory");
#endif
    return passed != 0;
}

// Copies bytes, a multiple of 16, to shared memory by the first kCopyLanes lanes of a warp, each of which arrives at
// the barrier once its own have come. Where races are looked for, all copies are those of 16 bytes, as before Hopper.
#if __CUDA_ARCH__ >= 900 && !AKUNU_RACECHECK
constexpr unsigned kCopyLanes = 1;
AKUNU_DEVICE void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// What was read of a place, by the threads that freed it, is read before a copy writes there.
AKUNU_DEVICE void show_to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// What is read once leaves the second-level cache first.
AKUNU_DEVICE void copy_arriving(void* to, const void* from, unsigned bytes, unsigned long long* b) {
    const unsigned barrier = shared_address(b);
    unsigned long long once;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    show_to_copies();
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
            "r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(barrier), "l"(once)
        : "memory");
}
// By one thread, which arrives at the barrier later: its phase passes when the bytes have come, too.
AKUNU_DEVICE void copy_counted(void* to, const void* from, unsigned bytes, unsigned long long* b) {
    const unsigned barrier = shared_address(b);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    show_to_copies();
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
// The same of a box of F16 rows, of which a map tells where they are: from this row and column on, as a stage of
// tile_stages.cuh has them. What lies behind the last row or column becomes 0.
constexpr bool kCopiesBoxes = true;
AKUNU_DEVICE void copy_box(void* to, unsigned long long map, unsigned row, unsigned column, unsigned bytes,
                           unsigned long long* b) {
    const unsigned barrier = shared_address(b);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(shared_address(to)),
        "l"(map), "r"(column), "r"(row), "r"(barrier)
        : "memory");
}
// The same of weights in tiles: from a tile and a step of inputs on.
AKUNU_DEVICE void copy_tiles(void* to, unsigned long long map, unsigned tile, unsigned step, unsigned bytes,
                             unsigned long long* b) {
    const unsigned barrier = shared_address(b);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    show_to_copies();
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%2, %2, %2, %3, %4}], [%5];" ::"r"(shared_address(to)),
        "l"(map), "r"(0), "r"(tile), "r"(step), "r"(barrier)
        : "memory");
}
#else
constexpr bool kCopiesBoxes = false;
AKUNU_DEVICE void copy_box(void*, unsigned long long, unsigned, unsigned, unsigned, unsigned long long*) {}
AKUNU_DEVICE void copy_tiles(void*, unsigned long long, unsigned, unsigned, unsigned, unsigned long long*) {}
constexpr unsigned kCopyLanes = 32;
AKUNU_DEVICE void publish_barriers() { __threadfence_block(); }
AKUNU_DEVICE void copy_arriving(void* to, const void* from, unsigned bytes, unsigned long long* b) {
    for (unsigned i = lane_id() * 16; i < bytes; i += 512) {
        copy_async16(static_cast<char*>(to) + i, static_cast<const char*>(from) + i);
    }
    arrive_when_copied(b);
}
// Here these are copies of 16 bytes like others.
AKUNU_DEVICE void copy_counted(void* to, const void* from, unsigned bytes, unsigned long long*) {
    for (unsigned i = 0; i < bytes; i += 16)
        copy_async16(static_cast<char*>(to) + i, static_cast<const char*>(from) + i);
}
#endif

// A line of memory that no command writes comes to the second-level cache. Bulk copies have a unit of their own, which
// takes one after another, and the ring's wait behind them; this is a load of a warp.
AKUNU_DEVICE void fetch_line_to_cache(const void* from, unsigned) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from) : "memory");
}
// Memory that no command writes, so many times 16 bytes, comes to the second-level cache.
AKUNU_DEVICE void fetch_to_cache(const void* from, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#else
    constexpr unsigned kLine = 128;
    for (unsigned i = 0; i < bytes; i += kLine) {
        fetch_line_to_cache(static_cast<const char*>(from) + i, kLine);
    }
#endif
}

AKUNU_DEVICE float bits_to_float(unsigned bits) { return __uint_as_float(bits); }
AKUNU_DEVICE unsigned long long double_to_bits(double x) { return __double_as_longlong(x); }
AKUNU_DEVICE double bits_to_double(unsigned long long bits) { return __longlong_as_double(bits); }
AKUNU_DEVICE unsigned float_to_bits(float v) { return __float_as_uint(v); }
AKUNU_DEVICE float half_to_float(unsigned short h) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
    return v;
}
// To nearest; what is too large becomes infinite.
AKUNU_DEVICE unsigned short float_to_half(float v) {
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}

// Two as F16, the first in the lower half; what is too large becomes the largest that there is.
AKUNU_DEVICE unsigned pack_halves(float a, float b) {
    unsigned h;
    asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(h) : "f"(b), "f"(a));
    return h;
}
// Of two F16 numbers each.
AKUNU_DEVICE unsigned add_halves(unsigned a, unsigned b) {
    unsigned h;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(h) : "r"(a), "r"(b));
    return h;
}
AKUNU_DEVICE unsigned multiply_halves(unsigned a, unsigned b) {
    unsigned h;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(h) : "r"(a), "r"(b));
    return h;
}
// a·b + c, rounded once.
AKUNU_DEVICE unsigned multiply_add_halves(unsigned a, unsigned b, unsigned c) {
    unsigned h;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(h) : "r"(a), "r"(b), "r"(c));
    return h;
}

// These to within a few units in the last place.
AKUNU_DEVICE float reciprocal(float v) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
AKUNU_DEVICE float inverse_root(float v) {
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
AKUNU_DEVICE float power_of_two(float v) {
    float p;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(p) : "f"(v));
    return p;
}

// Operations that no other is fused with.
AKUNU_DEVICE float mul_rn(float a, float b) { return __fmul_rn(a, b); }
AKUNU_DEVICE float add_rn(float a, float b) { return __fadd_rn(a, b); }

// Four 8x8 matrices of halves from shared memory: lane 8i + r says where row r of matrix i begins, and gets, of row
// lane / 4 of each, the two halves from 2·(lane % 4) on; of its columns where it is transposed.
AKUNU_DEVICE void load_matrices(unsigned (&m)[4], unsigned offset) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared_address(shared_memory()) + offset)
                 : "memory");
}
AKUNU_DEVICE void load_matrices_transposed(unsigned (&m)[4], unsigned offset) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared_address(shared_memory()) + offset)
                 : "memory");
}

// d += a·b of 16x16 and 16x8 F16 by a warp; fragments as PTX's mma.m16n8k16 lays them out.
AKUNU_DEVICE void mma_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// d += a·b of 16x32 and 32x8 signed bytes; fragments as PTX's mma.m16n8k32 lays them out.
AKUNU_DEVICE void mma_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The same of unsigned bytes times signed ones.
AKUNU_DEVICE void mma_u8_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Products of a warpgroup, four warps from a multiple of four on, which come together: 64 rows by so many columns, of
// 16 inputs, whose matrices they read from shared memory while the threads go on.
using MatrixPlace = unsigned long long;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool kWarpgroups = true;
// Where in shared memory a matrix' first row is. Rows have 128 bytes, eight of them begin at a multiple of 1,024, and a
// row's piece of 16 bytes p is at place p ^ row % 8.
AKUNU_DEVICE MatrixPlace matrix_place(unsigned offset) {
    return 1ull << 62 | 64ull << 32 | 1u << 16 | (AKUNU_SHARED_BASE + offset) >> 4;
}
// Writes of this thread to shared memory are seen by products, and by copies of bytes, that follow a barrier.
AKUNU_DEVICE void show_to_groups() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
AKUNU_DEVICE void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// The compiler knows nothing of products that are under way: it must not look at the sums before they are done.
template <unsigned kFragments>
AKUNU_DEVICE void keep_sums(float (&sums)[kFragments][4]) {
    AKUNU_UNROLL
    for (auto& sum : sums) asm volatile("" : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])::"memory");
}
template <unsigned kGroups, unsigned kFragments>
AKUNU_DEVICE void keep_sums(float (&sums)[kGroups][kFragments][4]) {
    AKUNU_UNROLL
    for (auto& sum : sums) keep_sums(sum);
}
template <typename Sums>
AKUNU_DEVICE void begin_products(Sums& sum) {
    keep_sums(sum);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// Waits for all but the last so many bundles of products.
template <unsigned kMost, typename Sums>
AKUNU_DEVICE void wait_for_products(Sums& sum) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kMost) : "memory");
    keep_sums(sum);
}
#define AKUNU_SUMS(i) "+f"(sum[i][0]), "+f"(sum[i][1]), "+f"(sum[i][2]), "+f"(sum[i][3])
// As mma_f16 leaves them for eight columns: of warp i of the group, rows 16i to 16i + 15.
AKUNU_DEVICE void multiply_group(float (&sum)[2][4], MatrixPlace rows, MatrixPlace columns) {
    asm volatile(
        "{ .reg .pred all; setp.ne.b32 all, 1, 0; "
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7"
        "}, %8, %9, all, 1, 1, 0, 0; }"
        : AKUNU_SUMS(0), AKUNU_SUMS(1)
        : "l"(rows), "l"(columns));
}
AKUNU_DEVICE void multiply_group(float (&sum)[8][4], MatrixPlace rows, MatrixPlace columns) {
    asm volatile(
        "{ .reg .pred all; setp.ne.b32 all, 1, 0; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, %32, %33, all, 1, 1, 0, 0; }"
        : AKUNU_SUMS(0), AKUNU_SUMS(1), AKUNU_SUMS(2), AKUNU_SUMS(3), AKUNU_SUMS(4), AKUNU_SUMS(5), AKUNU_SUMS(6),
          AKUNU_SUMS(7)
        : "l"(rows), "l"(columns));
}
AKUNU_DEVICE void multiply_group(float (&sum)[16][4], MatrixPlace rows, MatrixPlace columns) {
    asm volatile(
        "{ .reg .pred all; setp.ne.b32 all, 1, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, all, 1, 1, 0, 0; }"
        : AKUNU_SUMS(0), AKUNU_SUMS(1), AKUNU_SUMS(2), AKUNU_SUMS(3), AKUNU_SUMS(4), AKUNU_SUMS(5), AKUNU_SUMS(6),
          AKUNU_SUMS(7), AKUNU_SUMS(8), AKUNU_SUMS(9), AKUNU_SUMS(10), AKUNU_SUMS(11), AKUNU_SUMS(12), AKUNU_SUMS(13),
          AKUNU_SUMS(14), AKUNU_SUMS(15)
        : "l"(rows), "l"(columns));
}
// Of a warp's 16 rows with 16 inputs, as mma_f16 takes them, and a matrix whose rows are inputs.
AKUNU_DEVICE void multiply_held(float (&sum)[8][4], const unsigned (&rows)[4], MatrixPlace inputs) {
    asm volatile(
        "{ .reg .pred all; setp.ne.b32 all, 1, 0; "
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, {%32, %33, %34, %35}, %36, all, 1, 1, 1; }"
        : AKUNU_SUMS(0), AKUNU_SUMS(1), AKUNU_SUMS(2), AKUNU_SUMS(3), AKUNU_SUMS(4), AKUNU_SUMS(5), AKUNU_SUMS(6),
          AKUNU_SUMS(7)
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "l"(inputs));
}
#undef AKUNU_SUMS
#else
constexpr bool kWarpgroups = false;
// Branches that are not taken name these.
AKUNU_DEVICE MatrixPlace matrix_place(unsigned) { return 0; }
AKUNU_DEVICE void end_products() {}
template <unsigned kMost, typename Sums>
AKUNU_DEVICE void wait_for_products(Sums&) {}
AKUNU_DEVICE void show_to_groups() {}
#endif

}  // namespace akunu::cuda
