// The kernels' platform on a CPU: CUDA threads are fibers, which take turns at every barrier and exchange of a warp.
// See emulator.cpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#define AKUNU_DEVICE inline
#define AKUNU_DEVICE_CALL inline
#define AKUNU_UNROLL
#define AKUNU_UNROLL_TWICE
#define AKUNU_UNROLL_EIGHT
#define AKUNU_NO_UNROLL
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)

struct uint2 {
    unsigned x, y;
};
struct alignas(8) float2 {
    float x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

namespace akunu::cuda {

typedef unsigned char u8;
typedef unsigned short u16;

namespace emulator {
unsigned thread();
unsigned block();
unsigned blocks();
unsigned char* shared();
const void* given();                                           // to the kernel
constexpr unsigned kSharedBase = AKUNU_WARPGROUPS ? 1024 : 0;  // 0 before Hopper
bool told_where_shared_begins();
void sync_all();
void sync_some(unsigned barrier, unsigned threads);
void sync_warp();
void init_barrier(unsigned long long* b, unsigned arrivals);
void arrive_at(unsigned long long* b);
bool has_passed(const unsigned long long* b, unsigned parity);
void copy_arriving(void* to, const void* from, unsigned bytes, unsigned long long* b);
void copy_counted(void* to, const void* from, unsigned bytes, unsigned long long* b);
void fetch_to_cache(const void* from, unsigned bytes);
void copy_box(void* to, unsigned long long map, unsigned row, unsigned column, unsigned bytes, unsigned long long* b);
void copy_tiles(void* to, unsigned long long map, unsigned tile, unsigned step, unsigned bytes, unsigned long long* b);
void copy_async16(void* to, const void* from, bool there = true);
void arrive_when_copied(unsigned long long* b);
void bundle_copies();
void wait_for_bundles(unsigned most);
// Products of a warpgroup that were begun: `bundle` as of copies.
struct MatrixPlace {
    unsigned offset;
};
struct Product {
    float* sum;
    unsigned fragments;
    MatrixPlace rows, columns;
    unsigned bundle;
};
void put_off_product(const Product& p);
void bundle_products();
void each_product(unsigned most, const std::function<void(const Product&)>& f);
void yield();
// The warp's 32 places of 32 bytes.
unsigned char* exchange();
}  // namespace emulator

AKUNU_DEVICE unsigned thread_id() { return emulator::thread(); }
AKUNU_DEVICE unsigned thread_id_anew() { return emulator::thread(); }
AKUNU_DEVICE unsigned lane_id() { return emulator::thread() % 32; }
AKUNU_DEVICE unsigned warp_id() { return emulator::thread() / 32; }
AKUNU_DEVICE unsigned block_id() { return emulator::block(); }
AKUNU_DEVICE unsigned grid_blocks() { return emulator::blocks(); }
AKUNU_DEVICE unsigned char* shared_memory() { return emulator::shared(); }
// A thread's own copy goes with it.
template <typename T>
AKUNU_DEVICE const T& grid_constant(const T&) {
    return *static_cast<const T*>(emulator::given());
}
AKUNU_DEVICE bool shared_memory_is_there() { return emulator::told_where_shared_begins(); }
AKUNU_DEVICE void sync_all() { emulator::sync_all(); }
AKUNU_DEVICE void sync_some(unsigned barrier, unsigned threads) { emulator::sync_some(barrier, threads); }
template <unsigned kBarrier>
AKUNU_DEVICE void sync_some(unsigned threads) {
    emulator::sync_some(kBarrier, threads);
}
AKUNU_DEVICE void sync_warp() { emulator::sync_warp(); }
template <typename T>
AKUNU_DEVICE T* in_global(T* p) {
    return p;
}
AKUNU_DEVICE float load_fresh(const float* p) { return *p; }
AKUNU_DEVICE float2 load_fresh(const float2* p) { return *p; }

template <typename T>
AKUNU_DEVICE T shuffle(T v, unsigned from) {
    unsigned char* places = emulator::exchange();
    std::memcpy(places + lane_id() * 32, &v, sizeof v);
    emulator::sync_warp();
    T other;
    std::memcpy(&other, places + from % 32 * 32, sizeof other);
    emulator::sync_warp();
    return other;
}
template <typename T>
AKUNU_DEVICE T shuffle_xor(T v, unsigned mask) {
    return shuffle(v, lane_id() ^ mask);
}

// Calls f(value) with each lane's value.
template <typename F>
void each_of_warp(unsigned v, F&& f) {
    unsigned char* places = emulator::exchange();
    std::memcpy(places + lane_id() * 32, &v, sizeof v);
    emulator::sync_warp();
    for (unsigned lane = 0; lane < 32; ++lane) {
        unsigned other;
        std::memcpy(&other, places + lane * 32, sizeof other);
        f(other);
    }
    emulator::sync_warp();
}

AKUNU_DEVICE unsigned largest_of_warp(unsigned v) {
    unsigned largest = 0;
    each_of_warp(v, [&](unsigned other) { largest = other > largest ? other : largest; });
    return largest;
}

AKUNU_DEVICE unsigned vote(bool v) {
    unsigned bits = 0;
    each_of_warp(static_cast<unsigned>(v) << lane_id(), [&](unsigned other) { bits |= other; });
    return bits;
}

AKUNU_DEVICE bool any_of_warp(bool v) { return vote(v) != 0; }
AKUNU_DEVICE bool all_of_warp(bool v) { return vote(v) == ~0u; }

AKUNU_DEVICE unsigned ones_in(unsigned v) { return static_cast<unsigned>(__builtin_popcount(v)); }
AKUNU_DEVICE unsigned leading_zeros(unsigned v) { return static_cast<unsigned>(__builtin_clz(v)); }
AKUNU_DEVICE unsigned trailing_zeros(unsigned v) { return static_cast<unsigned>(__builtin_ctz(v)); }

// One fiber runs at a time.
template <typename T>
AKUNU_DEVICE T atomic_add(T* p, T v) {
    const T old = *p;
    *p = old + v;
    return old;
}
template <typename T>
AKUNU_DEVICE T atomic_max(T* p, T v) {
    const T old = *p;
    if (v > old) *p = v;
    return old;
}
AKUNU_DEVICE void arrive_release(unsigned* p) { ++*p; }
AKUNU_DEVICE unsigned load_acquire(const unsigned* p) { return *reinterpret_cast<const volatile unsigned*>(p); }
AKUNU_DEVICE unsigned atomic_next_ordered(unsigned* p, unsigned last) {
    const unsigned before = *p;
    *p = before >= last ? 0 : before + 1;
    return before;
}
void store_word(unsigned long long* p, unsigned long long v);
AKUNU_DEVICE unsigned long long load_word(const unsigned long long* p) {
    return *reinterpret_cast<const volatile unsigned long long*>(p);
}
AKUNU_DEVICE void store_card_word(unsigned long long* p, unsigned long long v) {
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}
AKUNU_DEVICE unsigned long long load_card_word(const unsigned long long* p) {
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
AKUNU_DEVICE void load_words(const unsigned long long* p, unsigned long long (&v)[2]) {
    v[0] = load_word(p);
    v[1] = load_word(p + 1);
}
AKUNU_DEVICE void fence_system() {}
AKUNU_DEVICE unsigned load_host(const unsigned* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
AKUNU_DEVICE void store_host(unsigned* p, unsigned v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }
AKUNU_DEVICE void spin_pause() { emulator::yield(); }
unsigned long long nanoseconds();
AKUNU_DEVICE unsigned cycles() { return static_cast<unsigned>(nanoseconds()); }
AKUNU_DEVICE void sleep_shortly() { emulator::yield(); }
AKUNU_DEVICE void fetch_to_cache(const void* from, unsigned bytes) { emulator::fetch_to_cache(from, bytes); }
AKUNU_DEVICE void fetch_line_to_cache(const void* from, unsigned bytes) { emulator::fetch_to_cache(from, bytes); }

template <typename T>
AKUNU_DEVICE T load_as(const void* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
AKUNU_DEVICE uint4 load_weights16(const void* p) {
    if (reinterpret_cast<std::uintptr_t>(p) % 16 != 0) __builtin_trap();
    return load_as<uint4>(p);
}
AKUNU_DEVICE unsigned load_weights4(const void* p) {
    if (reinterpret_cast<std::uintptr_t>(p) % 4 != 0) __builtin_trap();
    return load_as<unsigned>(p);
}
AKUNU_DEVICE unsigned short load_weights2(const void* p) {
    if (reinterpret_cast<std::uintptr_t>(p) % 2 != 0) __builtin_trap();
    return load_as<unsigned short>(p);
}
AKUNU_DEVICE unsigned char load_weights1(const void* p) { return load_as<unsigned char>(p); }

AKUNU_DEVICE unsigned choose_bytes(unsigned a, unsigned b, unsigned which) {
    const std::uint64_t both = static_cast<std::uint64_t>(b) << 32 | a;
    unsigned v = 0;
    for (unsigned i = 0; i < 4; ++i) v |= static_cast<unsigned>(both >> (8 * (which >> (4 * i) & 7)) & 255) << (8 * i);
    return v;
}
AKUNU_DEVICE unsigned byte_signs(unsigned v) { return (v >> 7 & 0x01010101u) * 255; }
AKUNU_DEVICE unsigned masked_xor(unsigned v, unsigned mask, unsigned flip) { return (v & mask) ^ flip; }

AKUNU_DEVICE void wait_for_copies() {
    emulator::bundle_copies();
    emulator::wait_for_bundles(0);
}
template <unsigned kMost>
AKUNU_DEVICE void wait_for_bundles() {
    emulator::wait_for_bundles(kMost);
}

constexpr unsigned kCopyLanes = 1;
constexpr bool kCopiesBoxes = AKUNU_WARPGROUPS && !AKUNU_RACECHECK;
using emulator::arrive_at, emulator::arrive_when_copied, emulator::bundle_copies, emulator::copy_arriving,
    emulator::copy_async16, emulator::copy_box, emulator::copy_tiles, emulator::has_passed, emulator::init_barrier,
    emulator::kSharedBase;
#if AKUNU_RACECHECK
AKUNU_DEVICE void copy_counted(void* to, const void* from, unsigned bytes, unsigned long long*) {
    for (unsigned i = 0; i < bytes; i += 16)
        copy_async16(static_cast<char*>(to) + i, static_cast<const char*>(from) + i);
}
#else
using emulator::copy_counted;
#endif
constexpr unsigned kSharedBytes = AKUNU_SHARED_BYTES;
AKUNU_DEVICE void publish_barriers() {}
AKUNU_DEVICE void drop_barrier(unsigned long long*) {}

AKUNU_DEVICE float bits_to_float(unsigned bits) { return load_as<float>(&bits); }
AKUNU_DEVICE unsigned long long double_to_bits(double x) { return load_as<unsigned long long>(&x); }
AKUNU_DEVICE double bits_to_double(unsigned long long bits) { return load_as<double>(&bits); }
AKUNU_DEVICE unsigned float_to_bits(float v) { return load_as<unsigned>(&v); }
AKUNU_DEVICE float half_to_float(unsigned short h) { return static_cast<float>(load_as<_Float16>(&h)); }
AKUNU_DEVICE unsigned short float_to_half(float v) {
    const auto h = static_cast<_Float16>(v);
    return load_as<unsigned short>(&h);
}
AKUNU_DEVICE unsigned pack_halves(float a, float b) {
    const auto half = [](float v) { return float_to_half(v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v); };
    return half(a) | static_cast<unsigned>(half(b)) << 16;
}
template <typename Op>
AKUNU_DEVICE unsigned each_half(Op&& op) {
    return float_to_half(op(0)) | static_cast<unsigned>(float_to_half(op(16))) << 16;
}
AKUNU_DEVICE float half_at(unsigned h, int shift) { return half_to_float(static_cast<unsigned short>(h >> shift)); }
AKUNU_DEVICE unsigned add_halves(unsigned a, unsigned b) {
    return each_half([=](int s) { return half_at(a, s) + half_at(b, s); });
}
AKUNU_DEVICE unsigned multiply_halves(unsigned a, unsigned b) {
    return each_half([=](int s) { return half_at(a, s) * half_at(b, s); });
}
AKUNU_DEVICE unsigned multiply_add_halves(unsigned a, unsigned b, unsigned c) {
    return each_half([=](int s) { return half_at(a, s) * half_at(b, s) + half_at(c, s); });
}
AKUNU_DEVICE float reciprocal(float v) { return 1.0f / v; }
AKUNU_DEVICE float inverse_root(float v) { return 1.0f / std::sqrt(v); }
AKUNU_DEVICE float power_of_two(float v) { return std::exp2(v); }
AKUNU_DEVICE float mul_rn(float a, float b) { return a * b; }
AKUNU_DEVICE float add_rn(float a, float b) { return a + b; }

// Element (row, column) of matrix i is of the row whose place lane 8i + row gives.
template <typename At>
AKUNU_DEVICE void exchange_matrices(unsigned (&m)[4], unsigned offset, At&& at) {
    unsigned char* places = emulator::exchange();
    if (offset % 16 != 0) __builtin_trap();
    std::memcpy(places + lane_id() * 32, &offset, sizeof offset);
    emulator::sync_warp();
    for (unsigned i = 0; i < 4; ++i) {
        const auto element = [&](unsigned row, unsigned column) {
            const unsigned from = load_as<unsigned>(places + (8 * i + row) * 32);
            return static_cast<unsigned>(load_as<unsigned short>(shared_memory() + from + 2 * column));
        };
        m[i] = at(element, lane_id() / 4, 2 * (lane_id() % 4));
    }
    emulator::sync_warp();
}
AKUNU_DEVICE void load_matrices(unsigned (&m)[4], unsigned offset) {
    exchange_matrices(m, offset, [](auto& element, unsigned row, unsigned column) {
        return element(row, column) | element(row, column + 1) << 16;
    });
}
AKUNU_DEVICE void load_matrices_transposed(unsigned (&m)[4], unsigned offset) {
    exchange_matrices(m, offset, [](auto& element, unsigned column, unsigned row) {
        return element(row, column) | element(row + 1, column) << 16;
    });
}

// `kDeep`: of A's columns, elements of which each register has so many; what an element is, of A and of B, by a
// register's bits and its number there.
template <unsigned kDeep, typename D, typename ValueA, typename ValueB>
AKUNU_DEVICE void mma(D (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], ValueA&& of_a, ValueB&& of_b) {
    constexpr unsigned kEach = kDeep / 8;
    unsigned char* places = emulator::exchange();
    const unsigned lane = lane_id(), g = lane / 4, t = lane % 4;
    std::memcpy(places + lane * 32, a, sizeof a);
    std::memcpy(places + lane * 32 + 16, b, sizeof b);
    emulator::sync_warp();
    // Which lane has an element, and in which register.
    const auto bits = [&](unsigned from, unsigned reg) { return load_as<unsigned>(places + from * 32 + reg * 4); };
    for (unsigned e = 0; e < 4; ++e) {
        const unsigned row = g + e / 2 * 8, column = 2 * t + e % 2;
        for (unsigned k = 0; k < kDeep; ++k) {
            const unsigned word = k % (kDeep / 2) / kEach, upper = k / (kDeep / 2);
            d[e] += of_a(bits(row % 8 * 4 + word, row / 8 + 2 * upper), k % kEach) *
                    of_b(bits(column * 4 + word, 4 + upper), k % kEach);
        }
    }
    emulator::sync_warp();
}
template <unsigned kDeep, typename D, typename Value>
AKUNU_DEVICE void mma(D (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Value&& value) {
    mma<kDeep>(d, a, b, value, value);
}
AKUNU_DEVICE void mma_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma<16>(d, a, b,
            [](unsigned bits, unsigned i) { return half_to_float(static_cast<unsigned short>(bits >> 16 * i)); });
}
AKUNU_DEVICE void mma_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma<32>(d, a, b, [](unsigned bits, unsigned i) { return int(static_cast<signed char>(bits >> 8 * i)); });
}
AKUNU_DEVICE void mma_u8_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    mma<32>(
        d, a, b, [](unsigned bits, unsigned i) { return int(bits >> 8 * i & 255); },
        [](unsigned bits, unsigned i) { return int(static_cast<signed char>(bits >> 8 * i)); });
}

// Products of a warpgroup read nothing of other threads, so each computes its own sums, when it waits for them.
constexpr bool kWarpgroups = AKUNU_WARPGROUPS;
using emulator::MatrixPlace;
AKUNU_DEVICE MatrixPlace matrix_place(unsigned offset) { return {offset}; }
AKUNU_DEVICE void show_to_groups() {}
template <typename Sums>
AKUNU_DEVICE void begin_products(Sums&) {}
AKUNU_DEVICE void end_products() { emulator::bundle_products(); }
// Element i of a row: the bits of its address say where its piece is.
AKUNU_DEVICE float element_at(const MatrixPlace& m, unsigned row, unsigned i) {
    const unsigned at = kSharedBase + m.offset + row * 128 + 2 * i;
    return half_to_float(load_as<unsigned short>(shared_memory() + ((at ^ (at >> 3 & 0x70)) - kSharedBase)));
}
template <unsigned kFragments>
AKUNU_DEVICE void multiply_group(float (&sum)[kFragments][4], MatrixPlace rows, MatrixPlace columns) {
    emulator::put_off_product({&sum[0][0], kFragments, rows, columns, 0});
}
// One that reads other lanes' operands is computed at once.
template <unsigned kFragments>
AKUNU_DEVICE void multiply_held(float (&sum)[kFragments][4], const unsigned (&rows)[4], MatrixPlace inputs) {
    const unsigned g = lane_id() / 4, t = lane_id() % 4;
    for (unsigned f = 0; f < kFragments; ++f) {
        const auto two = [&](unsigned row) {
            return pack_halves(element_at(inputs, row, 8 * f + g), element_at(inputs, row + 1, 8 * f + g));
        };
        mma_f16(sum[f], rows, {two(2 * t), two(2 * t + 8)});
    }
}
template <unsigned kMost, typename Sums>
AKUNU_DEVICE void wait_for_products(Sums&) {
    const unsigned g = lane_id() / 4, t = lane_id() % 4;
    emulator::each_product(kMost, [&](const emulator::Product& p) {
        for (unsigned i = 0; i < p.fragments * 4; ++i) {
            const unsigned row = warp_id() % 4 * 16 + g + i % 4 / 2 * 8, column = i / 4 * 8 + 2 * t + i % 2;
            for (unsigned k = 0; k < 16; ++k) p.sum[i] += element_at(p.rows, row, k) * element_at(p.columns, column, k);
        }
    });
}

}  // namespace akunu::cuda
