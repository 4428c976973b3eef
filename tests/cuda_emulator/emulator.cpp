// libcuda and NVRTC on a CPU, as much of them as akunu uses: the interpreter's text, compiled by a C++ compiler, runs
// on fibers. Memory of the device is apart from the host's, as it is on a GPU.
//
// EMULATOR_SHARED_BASE says where a block's memory begins, if not where it does. EMULATOR_FAIL, "function" or
// "function:n", makes the n-th call of a driver function fail; EMULATOR_LOSE_BLOCK starts one block only, and
// EMULATOR_LOSE_WORDS=n loses the words that the n-th command leaves. EMULATOR_SHARED_BYTES=n is a GPU with smaller
// blocks, EMULATOR_NO_ROOM=1 one on whose multiprocessors no block fits, EMULATOR_NO_COOPERATION=1 one whose blocks may
// not wait for one another, EMULATOR_DISPLAY=1 one that a display waits for. EMULATOR_GPUS=n is a host with n GPUs,
// whose launches run side by side in threads of their own; EMULATOR_NO_PEERS=1 one whose GPUs do not reach one
// another's memory, EMULATOR_OTHER=1 one whose second GPU has another name.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "guarded.cuh"
#include "interpreter.cu"

extern "C" void emulator_switch(void** save, void* to);
asm(R"(
.text
.globl emulator_switch
.type emulator_switch,@function
emulator_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  popq %rcx; jmp *%rcx  # a processor predicts that `ret` returns to the last caller, which it never does here
.size emulator_switch,.-emulator_switch
)");

namespace akunu::cuda {

void store_word(unsigned long long* p, unsigned long long v) {
    static const char* lost = std::getenv("EMULATOR_LOSE_WORDS");
    if (!lost || v >> 32 != std::strtoull(lost, nullptr, 10)) *p = v;
}

unsigned long long nanoseconds() {
    return static_cast<unsigned long long>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
}

namespace emulator {

// Not a power of two: the fibers' ends of their stacks are in different sets of the processor's caches.
constexpr std::size_t kStack = (64 << 10) + 5 * 64;
constexpr unsigned kShared = 227 << 10;
static_assert(AKUNU_SHARED_BYTES <= kShared, "what lies behind them nobody may write");
constexpr unsigned char kBeyond = 0xA5;
std::atomic<bool> left_memory = false;

int blocks_wanted() {
    const char* set = std::getenv("EMULATOR_BLOCKS");
    return set ? std::atoi(set) : 2;
}

struct Fiber;
// Threads that come together: a warp or a block. Those that wait are a ring of their own, whose last one is named.
struct Meeting {
    Fiber* last = nullptr;
    unsigned waiting = 0;
};

// On its way to shared memory; to whom it says that it has come. `bundle`: of a thread's copies that it waits for
// itself.
struct Copy {
    void* to;
    const void* from;
    unsigned bytes;
    const unsigned long long* barrier;
    unsigned thread, bundle;
};

struct Group {
    Meeting all, some[16], warps[kBlockThreads / 32];
    std::vector<Copy> copies;
    std::vector<unsigned char> shared;
    unsigned char exchange[kBlockThreads / 32][32 * 32];
};

struct alignas(64) Fiber {
    void* sp = nullptr;
    Fiber *next = nullptr, *before = nullptr;  // of those that can run, a ring
    unsigned block = 0, thread = 0, bundle = 0;
    unsigned product_bundle = 0;
    std::vector<Product> products;
};

struct Grid {
    std::vector<Group> groups;
    std::vector<Fiber> fibers;
    std::unique_ptr<unsigned char[]> stacks;
    unsigned left = 0;
    void* main = nullptr;
    const LaunchParams* launch = nullptr;
};
thread_local Grid* grid = nullptr;  // a GPU's launch is a thread's
thread_local Fiber* current = nullptr;

Fiber& self() { return *current; }
Group& group() { return grid->groups[self().block]; }
unsigned thread() { return self().thread; }
unsigned block() { return self().block; }
const void* given() { return grid->launch; }
unsigned blocks() { return static_cast<unsigned>(grid->groups.size()); }
unsigned char* shared_of(Group& group) {
    auto* p = group.shared.data();
    return p + (128 - reinterpret_cast<std::uintptr_t>(p) % 128) % 128;
}
unsigned char* shared() { return shared_of(group()); }
bool told = true;
bool told_where_shared_begins() { return told; }
unsigned char* exchange() { return group().exchange[self().thread / 32]; }

// Takes turns with the others of the ring.
void yield() {
    Fiber& from = self();
    current = from.next;
    emulator_switch(&from.sp, current->sp);
}
void put_behind(Fiber& at, Fiber& f) {
    f.before = &at;
    f.next = at.next;
    f.before->next = f.next->before = &f;
}
void take_out(Fiber& f) {
    if (f.next == &f) {
        std::fputs("all threads wait for others\n", stderr);
        std::abort();
    }
    f.before->next = f.next;
    f.next->before = f.before;
}
// `save` is where the one that runs goes on, if somebody puts it back.
void resume(Fiber* f, void** save) {
    current = f;
    emulator_switch(save, f->sp);
}

void meet(Meeting& m, unsigned n) {
    Fiber& mine = self();
    if (++m.waiting < n) {
        Fiber* const next = mine.next;
        take_out(mine);
        if (m.last) {
            put_behind(*m.last, mine);
        } else {
            mine.next = mine.before = &mine;
        }
        m.last = &mine;
        resume(next, &mine.sp);
        return;
    }
    if (m.last) {  // their ring goes into that of those that run, before this one
        Fiber &first = *m.last->next, &running = *mine.before;
        running.next = &first;
        first.before = &running;
        m.last->next = &mine;
        mine.before = m.last;
    }
    m = {};
}
void sync_all() { meet(group().all, kBlockThreads); }
void sync_some(unsigned barrier, unsigned threads) { meet(group().some[barrier], threads); }
void sync_warp() { meet(group().warps[self().thread / 32], 32); }

// A barrier's eight bytes. Copies come when somebody looks at it: until then their places hold no weights.
struct ArrivalBarrier {
    std::uint8_t wanted, left;
    std::uint16_t copies;
    std::uint32_t passed;
    void settle() {
        if (left != 0 || copies != 0) return;
        left = wanted;
        ++passed;
    }
};
static_assert(sizeof(ArrivalBarrier) == sizeof(unsigned long long));
ArrivalBarrier& arrival(const unsigned long long* b) {
    return *reinterpret_cast<ArrivalBarrier*>(const_cast<unsigned long long*>(b));
}
void init_barrier(unsigned long long* b, unsigned arrivals) {
    arrival(b) = {static_cast<std::uint8_t>(arrivals), static_cast<std::uint8_t>(arrivals), 0, 0};
}
void arrive_at(unsigned long long* b) {
    if (arrival(b).left-- == 0) __builtin_trap();
    arrival(b).settle();
}
// Those of the block's copies come that are meant.
template <typename Meant>
void land(Meant&& meant) {
    std::erase_if(group().copies, [&](const Copy& copy) {
        if (!meant(copy)) return false;
        std::memcpy(copy.to, copy.from, copy.bytes);
        return true;
    });
}
bool has_passed(const unsigned long long* b, unsigned parity) {
    if (arrival(b).copies != 0) {
        land([&](const Copy& copy) { return copy.barrier == b; });
        arrival(b).copies = 0;
        arrival(b).settle();
    }
    if (arrival(b).passed % 2 != parity) return true;
    yield();
    return false;
}
void copy_counted(void* to, const void* from, unsigned bytes, unsigned long long* b) {
    if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes) % 16 != 0)
        __builtin_trap();
    std::memset(to, 0xFF, bytes);
    group().copies.push_back({to, from, bytes, b, 0, 0});
    ++arrival(b).copies;
}
// What cuTensorMapEncodeTiled leaves: sizes of a tensor and of its boxes, bytes from one to the next in each dimension.
// Swizzled ones have rows of 128 bytes.
struct TensorMap {
    unsigned char* tensor;
    unsigned long long sizes[5], apart[5];
    unsigned box[5];
    bool swizzled;
};
// The first dimension by pieces of 16 bytes.
static void copy_box(unsigned char* to, unsigned long long map, const unsigned (&from)[5], unsigned bytes,
                     unsigned long long* b) {
    const auto& m = *reinterpret_cast<const TensorMap*>(map);
    alignas(16) static const unsigned char zeros[16] = {};
    const unsigned pieces = static_cast<unsigned>(m.box[0] * m.apart[0] / 16), all = bytes / 16;
    if (map % 64 != 0 || (to - shared() + kSharedBase) % (m.swizzled ? 1024 : 128) != 0 ||
        all != pieces * m.box[1] * m.box[2] * m.box[3] * m.box[4])
        __builtin_trap();
    for (unsigned i = 0; i < all; ++i) {
        const unsigned piece = i % pieces, row = i / pieces;
        const unsigned char* at = m.tensor + from[0] * m.apart[0] + piece * 16;
        bool there = from[0] + piece * 16 / m.apart[0] < m.sizes[0];
        for (unsigned d = 1, rest = row; d < 5; rest /= m.box[d++]) {
            const unsigned place = from[d] + rest % m.box[d];
            there = there && place < m.sizes[d];
            at += place * m.apart[d];
        }
        copy_counted(to + row * pieces * 16 + (m.swizzled ? piece ^ row % 8 : piece) * 16, there ? at : zeros, 16, b);
    }
}
void copy_box(void* to, unsigned long long map, unsigned row, unsigned column, unsigned bytes, unsigned long long* b) {
    copy_box(static_cast<unsigned char*>(to), map, {column, row, 0, 0, 0}, bytes, b);
}
void copy_tiles(void* to, unsigned long long map, unsigned tile, unsigned step, unsigned bytes, unsigned long long* b) {
    copy_box(static_cast<unsigned char*>(to), map, {0, 0, 0, tile, step}, bytes, b);
}
// What was fetched to the cache and is not copied yet; and how often something copied had been fetched.
std::set<std::pair<const void*, unsigned>> fetched;
unsigned long long copied_from_cache = 0;
std::mutex fetching;
void fetch_to_cache(const void* from, unsigned bytes) {
    if ((reinterpret_cast<std::uintptr_t>(from) | bytes) % 16 != 0) __builtin_trap();
    const std::scoped_lock lock(fetching);
    fetched.emplace(from, bytes);
}
void copy_arriving(void* to, const void* from, unsigned bytes, unsigned long long* b) {
    {
        const std::scoped_lock lock(fetching);
        copied_from_cache += fetched.erase({from, bytes});
    }
    copy_counted(to, from, bytes, b);
    arrive_at(b);
}
void copy_async16(void* to, const void* from, bool there) {
    static const unsigned char zeros[16] = {};
    if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 16 != 0) __builtin_trap();
    std::memset(to, 0xFF, 16);
    group().copies.push_back({to, there ? from : zeros, 16, nullptr, self().thread, self().bundle});
}
void put_off_product(const Product& p) {
    self().products.push_back(p);
    self().products.back().bundle = self().product_bundle;
}
void bundle_products() { ++self().product_bundle; }
void each_product(unsigned most, const std::function<void(const Product&)>& f) {
    std::erase_if(self().products, [&](const Product& p) {
        if (p.bundle + most >= self().product_bundle) return false;
        f(p);
        return true;
    });
}
void arrive_when_copied(unsigned long long* b) {
    for (Copy& copy : group().copies) {
        if (copy.barrier || copy.thread != self().thread) continue;
        copy.barrier = b;
        ++arrival(b).copies;
    }
    arrive_at(b);
}
void bundle_copies() { ++self().bundle; }
void wait_for_bundles(unsigned most) {
    land([&](const Copy& copy) {
        return !copy.barrier && copy.thread == self().thread && copy.bundle + most < self().bundle;
    });
}

void run_fiber() {
    akunu_replay(*grid->launch);
    void* dead;
    if (--grid->left == 0) emulator_switch(&dead, grid->main);
    Fiber& from = self();
    take_out(from);
    resume(from.next, &dead);
}

void run(const LaunchParams& launch, unsigned blocks) {
    Grid g;
    g.groups.resize(blocks);
    for (Group& group : g.groups) {
        group.shared.resize(kShared + 128);
        std::fill(shared_of(group) + AKUNU_SHARED_BYTES, shared_of(group) + kShared, kBeyond);
    }
    g.fibers.resize(std::size_t{blocks} * kBlockThreads);
    g.stacks.reset(new unsigned char[g.fibers.size() * kStack]);
    const bool lost = std::getenv("EMULATOR_LOSE_BLOCK") != nullptr;
    g.left = static_cast<unsigned>(g.fibers.size()) - (lost ? kBlockThreads : 0);
    g.launch = &launch;
    for (unsigned i = 0; i < g.fibers.size(); ++i) {
        g.fibers[i].block = i / kBlockThreads;
        g.fibers[i].thread = i % kBlockThreads;
        auto* top = reinterpret_cast<std::uint64_t*>(g.stacks.get() + (i + 1) * kStack - 64);
        top = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(top) / 16 * 16);
        *--top = 0;  // where run_fiber would return to
        *--top = reinterpret_cast<std::uint64_t>(&run_fiber);
        top -= 6;
        g.fibers[i].sp = top;
    }
    current = g.fibers[0].next = g.fibers[0].before = &g.fibers[0];
    for (unsigned i = 1; i < g.left; ++i) put_behind(g.fibers[i - 1], g.fibers[i]);
    grid = &g;
    emulator_switch(&g.main, current->sp);
    grid = nullptr;
    for (Group& group : g.groups) {
        if (!std::all_of(shared_of(group) + AKUNU_SHARED_BYTES, shared_of(group) + kShared,
                         [](unsigned char c) { return c == kBeyond; })) {
            left_memory = true;
        }
    }
}

// Whether this call is the one that is to fail.
bool fails(const char* function) {
    static std::map<std::string, int> calls;
    const char* set = std::getenv("EMULATOR_FAIL");
    if (!set) return false;
    const std::string wanted(set);
    const auto colon = wanted.find(':');
    if (wanted.substr(0, colon) != function) return false;
    return ++calls[function] == (colon == std::string::npos ? 1 : std::atoi(wanted.c_str() + colon + 1));
}

// The first number of a list of the text's that is not among those that were built; -1: there is none.
template <std::size_t n>
int missing_of(const std::string& text, const std::string& define, const unsigned (&built)[n]) {
    const auto begin = text.find(define), end = text.find('\n', begin);
    for (auto at = begin + define.size(); (at = text.find("X(", at)) < end; ++at) {
        const int wanted = std::atoi(text.c_str() + at + 2);
        if (std::ranges::find(built, static_cast<unsigned>(wanted)) == std::end(built)) return wanted;
    }
    return -1;
}

// What a text asks for and this library was not built with; empty where there is all. A command of which something is
// missing would do nothing, and others would wait for it.
std::string lacking(const std::string& text) {
#define X(n) n,
    constexpr unsigned kReadersBuilt[] = {AKUNU_READERS}, kPairsBuilt[] = {AKUNU_KV_TYPES}, kOpsBuilt[] = {AKUNU_OPS},
                       kDimsBuilt[] = {AKUNU_PROMPT_DIMS};
#undef X
    constexpr const char* kNames[] = {EMULATOR_READER_NAMES};
    static_assert(std::size(kNames) == kReaders);
    const std::string readers = "#define AKUNU_READERS", pairs = "#define AKUNU_KV_TYPES";
    if (text.find(readers) == std::string::npos) return "the emulator was given no readers";
    const int reader = missing_of(text, readers, kReadersBuilt), pair = missing_of(text, pairs, kPairsBuilt);
    const std::string cards = "#define AKUNU_CARDS ";
    const auto wanted = text.find(cards);
    if (wanted != std::string::npos && std::atoi(text.c_str() + wanted + cards.size()) > AKUNU_CARDS) {
        return "the emulator was built for " + std::to_string(AKUNU_CARDS) + " GPUs";
    }
    const std::string races = "#define AKUNU_RACECHECK ";
    const auto checked = text.find(races);
    if (checked == std::string::npos || std::atoi(text.c_str() + checked + races.size()) != AKUNU_RACECHECK) {
        return std::string("the emulator was built ") + (AKUNU_RACECHECK ? "for" : "without") + " AKUNU_CUDA_RACECHECK";
    }
    if (reader >= 0) return std::string("the emulator was built without the reader of ") + kNames[reader];
    if (pair >= 0) return "the emulator was built without the cache's types " + std::to_string(pair);
    const int op = missing_of(text, "#define AKUNU_OPS", kOpsBuilt);
    if (op >= 0) return "the emulator was built without the op " + std::to_string(op);
    const int dim = missing_of(text, "#define AKUNU_PROMPT_DIMS", kDimsBuilt);
    if (dim >= 0) return "the emulator was built without heads of " + std::to_string(dim);
    return {};
}

constexpr int kMostGpus = 8;
int gpus() {
    const char* n = std::getenv("EMULATOR_GPUS");
    return std::getenv("EMULATOR_NO_GPU") ? 0 : n ? std::min(std::atoi(n), kMostGpus) : 1;
}
int contexts[kMostGpus] = {0, 1, 2, 3, 4, 5, 6, 7};  // each says whose it is
thread_local int here = 0;                           // the GPU whose context is current

struct Allocated {
    std::size_t bytes;
    int gpu;
};
std::mutex allocating;
std::map<unsigned long long, Allocated> allocations;
std::size_t memory() {
    const char* megabytes = std::getenv("EMULATOR_MEMORY_MB");
    return (megabytes ? std::strtoull(megabytes, nullptr, 10) : 512) << 20;
}

}  // namespace emulator
}  // namespace akunu::cuda

#include "driver.cuh"
