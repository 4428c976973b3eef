// Selectors, classes, method lookup.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "objc_abi.h"

using namespace objcrt;

extern "C" void* _objc_empty_cache = nullptr;

namespace {
// Reached from the section constructors of other modules, before this file's static constructors.
std::recursive_mutex& mutex() {
    static auto* m = new std::recursive_mutex;
    return *m;
}
typedef std::unordered_map<Class*, std::unordered_map<Sel, Imp>> Tables;
Tables& tables() {
    static auto* t = new Tables;
    return *t;
}
void add(Class* c, MethodList* list) {
    if (!list) return;
    auto& t = tables()[c];
    for (uint32_t i = 0; i < list->count; ++i) t[intern(list->methods[i].name)] = list->methods[i].imp;
}
}  // namespace

// ---- the dispatch cache read by objc_msgSend -------------------------------------------------

namespace {
struct CacheEntry {
    Class* cls;
    Sel sel;
    Imp imp;
    CacheEntry* next;  // another message with the same slot
};
constexpr size_t kCacheSlots = 8192;  // as in msgsend.cpp
CacheEntry g_empty{nullptr, nullptr, nullptr, nullptr};
struct Cache {
    std::atomic<CacheEntry*> slot[kCacheSlots];
    Cache() {
        for (auto& s : slot) s = &g_empty;
    }
};
}  // namespace
extern "C" __attribute__((visibility("hidden"))) void* objcrt_cache = nullptr;

static void ensure_cache() {
    if (!objcrt_cache) objcrt_cache = new Cache;
}
static size_t cache_slot(Class* c, Sel s) {
    const uint64_t x = (reinterpret_cast<uint64_t>(c) ^ reinterpret_cast<uint64_t>(s)) *
                       static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(0x9E3779B1)));
    return x >> 48 >> 3;
}

namespace objcrt {
Sel intern(const char* name) {
    static auto* set = new std::unordered_set<std::string>;
    std::lock_guard lock(mutex());
    return set->insert(name).first->c_str();
}

Imp find_method(Class* c, Sel s) {
    std::lock_guard lock(mutex());
    for (; c; c = c->super) {
        auto t = tables().find(c);
        if (t == tables().end()) continue;
        auto m = t->second.find(s);
        if (m != t->second.end()) return m->second;
    }
    return nullptr;
}

extern "C" Imp objcrt_lookup(Class* c, Sel s) {
    const Imp imp = find_method(c, s);
    if (!imp) {
        fprintf(stderr, "Objective-C: %c[%s %s]: unrecognized selector\n", c->data->flags & kMetaClass ? '+' : '-',
                c->data->name, s);
        abort();
    }
    // Entries are never freed: a reader on another thread may hold one.
    std::lock_guard lock(mutex());
    auto& slot = static_cast<Cache*>(objcrt_cache)->slot[cache_slot(c, s)];
    for (const CacheEntry* e = slot; e; e = e->next) {
        if (e->cls == c && e->sel == s) return imp;  // by another thread, or objc_msgSendSuper2
    }
    slot.store(new CacheEntry{c, s, imp, slot}, std::memory_order_release);
    return imp;
}
}  // namespace objcrt

/// Called for each module by objc/module.cpp with its Objective-C sections.
extern "C" void objcrt_register(const char** selectors, const char** selectors_end, Class** classes,
                                Class** classes_end, Category** categories, Category** categories_end) {
    std::lock_guard lock(mutex());
    ensure_cache();
    for (; selectors && selectors < selectors_end; ++selectors) *selectors = intern(*selectors);
    for (; classes && classes < classes_end; ++classes) {
        add(*classes, (*classes)->data->methods);
        add((*classes)->isa, (*classes)->isa->data->methods);
    }
    for (; categories && categories < categories_end; ++categories) {
        add((*categories)->cls, (*categories)->instance_methods);
        add((*categories)->cls->isa, (*categories)->class_methods);
    }
}
extern "C" bool objcrt_responds(Class* c, const char* s) { return find_method(c, intern(s)) != nullptr; }
