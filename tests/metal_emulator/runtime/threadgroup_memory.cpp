#include "threadgroup_memory.h"

#include <sys/mman.h>

#include <new>

#include "sanitizer.h"

namespace mslrt {
namespace {
constexpr size_t kCanary = 256;
constexpr unsigned char kCanaryByte = 0xFE, kPoisonByte = 0xFF;
constexpr size_t kArena =
    ThreadgroupMemory::kLimit + (ThreadgroupMemory::kStatic + ThreadgroupMemory::kDynamic) * (kCanary + 64);

char* map(void* at) {
    void* p = mmap(at, kArena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(p);
}
}  // namespace

ThreadgroupMemory::ThreadgroupMemory() : arena_(map(nullptr)) {}
ThreadgroupMemory::~ThreadgroupMemory() {
    san::unpoison(arena_, kArena);
    munmap(arena_, kArena);
}

void ThreadgroupMemory::begin_dispatch() {
    san::unpoison(arena_, kArena);
    // A new mapping: TSan forgets who touched the old one, perhaps in a dispatch that is not ordered with this one.
    if (san::kTsan && used_) map(arena_);
    for (Block& b : block_) b = Block();
    used_ = bytes_ = 0;
}

void ThreadgroupMemory::begin_group() {
    if (san::kTsan) {
        begin_dispatch();
        return;
    }
    for (Block& b : block_)
        if (b.p) san::fill(b.p, kPoisonByte, b.size);
}

void* ThreadgroupMemory::get(Block& b, size_t bytes, std::string& error) {
    if (b.p) return b.p;
    bytes_ += bytes;
    if (bytes_ > kLimit) {
        error = "threadgroup memory " + std::to_string(bytes_) + " > " + std::to_string(kLimit) + " bytes";
        return nullptr;
    }
    const size_t capacity = (bytes + 63) / 64 * 64 + kCanary;
    b = {arena_ + used_, static_cast<uint32_t>(bytes), static_cast<uint32_t>(capacity)};
    used_ += capacity;
    san::fill(b.p, kPoisonByte, bytes);
    san::fill(b.p + bytes, kCanaryByte, capacity - bytes);
    san::poison(b.p + bytes, capacity - bytes);
    return b.p;
}

void* ThreadgroupMemory::static_variable(uint32_t id, size_t bytes, std::string& error) {
    if (id >= kStatic) {
        error = "more than " + std::to_string(kStatic) + " threadgroup variables in one kernel";
        return nullptr;
    }
    return get(block_[id], bytes, error);
}

void* ThreadgroupMemory::dynamic_argument(uint32_t index, size_t bytes, std::string& error) {
    return get(block_[kStatic + index], bytes, error);
}

std::string ThreadgroupMemory::check() const {
    if (san::kAsan) return "";
    for (uint32_t id = 0; id < kStatic + kDynamic; ++id) {
        const Block& b = block_[id];
        if (!b.p) continue;
        for (uint32_t i = b.size; i < b.capacity; ++i)
            if (static_cast<unsigned char>(b.p[i]) != kCanaryByte)
                return "write " + std::to_string(i - b.size) + " bytes behind " +
                       (id < kStatic ? "threadgroup variable " + std::to_string(id)
                                     : "threadgroup argument " + std::to_string(id - kStatic)) +
                       " of " + std::to_string(b.size) + " bytes";
    }
    return "";
}
}  // namespace mslrt
