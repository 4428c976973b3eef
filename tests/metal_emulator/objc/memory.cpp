// Objects: allocation, reference counts, autorelease pools, weak references, ARC's entry points.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "objc_abi.h"

using namespace objcrt;

extern "C" {
extern void* _NSConcreteStackBlock[32];
extern void* _NSConcreteGlobalBlock[32];
extern void* _NSConcreteMallocBlock[32];
void* _Block_copy(const void*);
void _Block_release(const void*);
}
// ThreadSanitizer's, where it is loaded: this library is not compiled for it, so that it sees no atomics here.
extern "C" {
__attribute__((weak)) void __tsan_acquire(void* address);
__attribute__((weak)) void __tsan_release(void* address);
}
extern "C" Class ns_constant_string_class asm("OBJC_CLASS_$_NSConstantString");

namespace {
/// In front of every object.
struct Header {
    std::atomic<long> count;
    long padding;  // objects are 16-byte aligned
};
static_assert(sizeof(Header) == 16);
Header* header(void* o) { return reinterpret_cast<Header*>(static_cast<char*>(o) - sizeof(Header)); }

std::atomic<long> g_live{0};
std::mutex g_mutex;  // live counts by class, weak references
std::map<std::string, long>& live_by_class() {
    static auto* m = new std::map<std::string, long>;
    return *m;
}
std::unordered_map<void*, std::unordered_set<void**>>& weak_locations() {
    static auto* m = new std::unordered_map<void*, std::unordered_set<void**>>;
    return *m;
}

bool is_block(void* o) {
    void* isa = *static_cast<void**>(o);
    return isa == _NSConcreteStackBlock || isa == _NSConcreteMallocBlock || isa == _NSConcreteGlobalBlock;
}
/// Classes and string literals have no header.
bool is_immortal(void* o) {
    const Class* isa = static_cast<Object*>(o)->isa;
    return isa == &ns_constant_string_class || isa->data->flags & kMetaClass;
}
void for_each_class(Object* o, const char* selector, bool base_first) {
    const Sel s = intern(selector);
    std::vector<Class*> chain;
    for (Class* c = o->isa; c; c = c->super) chain.push_back(c);
    if (base_first) chain = {chain.rbegin(), chain.rend()};
    for (Class* c : chain) {
        // The method of this class alone: what it inherits has been, or will be, called there.
        const Imp imp = find_method(c, s), above = c->super ? find_method(c->super, s) : nullptr;
        if (imp && imp != above) imp(o, s);
    }
}
}  // namespace

namespace objcrt {
Object* allocate(Class* c) {
    auto* memory = static_cast<char*>(calloc(1, sizeof(Header) + c->data->instance_size));
    auto* o = reinterpret_cast<Object*>(memory + sizeof(Header));
    o->isa = c;
    header(o)->count = 1;
    ++g_live;
    {
        std::lock_guard lock(g_mutex);
        ++live_by_class()[c->data->name];
    }
    for_each_class(o, ".cxx_construct", true);
    return o;
}
void deallocate(Object* o) {
    for_each_class(o, ".cxx_destruct", false);
    --g_live;
    {
        std::lock_guard lock(g_mutex);
        --live_by_class()[o->isa->data->name];
    }
    memset(static_cast<void*>(o), 0x5A, sizeof(Object));  // a message to it now crashes
    free(header(o));
}
extern "C" void* objcrt_permanent(void* o) {
    std::lock_guard lock(g_mutex);
    --g_live;
    --live_by_class()[static_cast<Object*>(o)->isa->data->name];
    header(o)->count = 1l << 40;
    return o;
}
extern "C" long objcrt_live_objects() { return g_live; }
extern "C" void objcrt_print_live() {
    std::lock_guard lock(g_mutex);
    for (const auto& [name, n] : live_by_class())
        if (n) fprintf(stderr, "live: %s x%ld\n", name.c_str(), n);
}
}  // namespace objcrt

// ---- reference counts ------------------------------------------------------------------------

extern "C" {
Object* objcrt_alloc(Class* c) { return allocate(c); }
void objcrt_free(Object* o) { deallocate(o); }

void* objc_retain(void* o) {
    if (!o) return o;
    if (is_block(o)) return _Block_copy(o);
    if (!is_immortal(o)) header(o)->count.fetch_add(1, std::memory_order_relaxed);
    return o;
}
void objc_release(void* o) {
    if (!o) return;
    if (is_block(o)) return _Block_release(o);
    if (is_immortal(o)) return;
    if (__tsan_release) __tsan_release(header(o));
    const long n = header(o)->count.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if (n > 0) return;
    if (__tsan_acquire) __tsan_acquire(header(o));
    if (n < 0) {
        fprintf(stderr, "Objective-C: over-release of a %s\n", static_cast<Object*>(o)->isa->data->name);
        abort();
    }
    {
        std::lock_guard lock(g_mutex);
        auto w = weak_locations().find(o);
        if (w != weak_locations().end()) {
            for (void** p : w->second) *p = nullptr;
            weak_locations().erase(w);
        }
    }
    static const Sel dealloc = intern("dealloc");
    objcrt_lookup(static_cast<Object*>(o)->isa, dealloc)(static_cast<Object*>(o), dealloc);
}

// ---- autorelease pools -----------------------------------------------------------------------

extern "C++" {
namespace {
struct Pool {
    std::vector<void*> objects;
    int depth = 0;
};
Pool& pool() {
    static thread_local Pool* p = new Pool;
    return *p;
}
}  // namespace
}
void* objc_autorelease(void* o) {
    if (!o) return o;
    Pool& p = pool();
    if (!p.depth) {
        fprintf(stderr, "Objective-C: a %s is autoreleased with no pool in place and leaks\n",
                is_block(o) ? "block" : static_cast<Object*>(o)->isa->data->name);
        return o;
    }
    p.objects.push_back(o);
    return o;
}
void* objc_autoreleasePoolPush() {
    ++pool().depth;
    return reinterpret_cast<void*>(pool().objects.size() + 1);
}
void objc_autoreleasePoolPop(void* token) {
    Pool& p = pool();
    while (p.objects.size() + 1 > reinterpret_cast<size_t>(token)) {
        void* o = p.objects.back();
        p.objects.pop_back();
        objc_release(o);
    }
    --p.depth;
}

// ---- ARC -------------------------------------------------------------------------------------

void* objc_retainBlock(void* b) { return _Block_copy(b); }
void* objc_autoreleaseReturnValue(void* o) { return objc_autorelease(o); }
void* objc_retainAutorelease(void* o) { return objc_autorelease(objc_retain(o)); }
void* objc_retainAutoreleaseReturnValue(void* o) { return objc_autorelease(objc_retain(o)); }
void* objc_retainAutoreleasedReturnValue(void* o) { return objc_retain(o); }
void* objc_claimAutoreleasedReturnValue(void* o) { return objc_retain(o); }
void* objc_unsafeClaimAutoreleasedReturnValue(void* o) { return o; }
void objc_storeStrong(void** p, void* v) {
    void* old = *p;
    if (old == v) return;
    objc_retain(v);
    *p = v;
    objc_release(old);
}
Object* objc_alloc(Class* c) { return allocate(c); }
void* objc_alloc_init(Class* c) {
    static const Sel init = intern("init");
    Object* o = allocate(c);
    return objcrt_lookup(c, init)(o, init);
}
void* objc_opt_new(Class* c) { return objc_alloc_init(c); }
void* objc_opt_self(void* o) { return o; }
Class* objc_opt_class(Object* o) {
    return !o ? nullptr : o->isa->data->flags & kMetaClass ? reinterpret_cast<Class*>(o) : o->isa;
}
bool objc_opt_isKindOfClass(Object* o, Class* c) {
    for (Class* k = o ? o->isa : nullptr; k; k = k->super)
        if (k == c) return true;
    return false;
}
bool objc_opt_respondsToSelector(Object* o, Sel s) { return o && find_method(o->isa, s); }
void objc_enumerationMutation(void*) {
    fprintf(stderr, "Objective-C: a collection was changed while enumerated\n");
    abort();
}

// Properties.  One lock for all atomic ones: none is on a hot path.
extern "C++" {
namespace {
void** property(void* o, long offset) { return reinterpret_cast<void**>(static_cast<char*>(o) + offset); }
std::mutex g_property_mutex;
void set_property(void* o, void* v, long offset, bool copy) {
    static const Sel copy_with_zone = intern("copyWithZone:");
    if (v && copy && !is_block(v))
        v = objcrt_lookup(static_cast<Object*>(v)->isa, copy_with_zone)(static_cast<Object*>(v), copy_with_zone,
                                                                        nullptr);
    else
        objc_retain(v);
    void* old;
    {
        std::lock_guard lock(g_property_mutex);
        old = *property(o, offset);
        *property(o, offset) = v;
    }
    objc_release(old);
}
}  // namespace
}
void* objc_getProperty(void* o, Sel, long offset, bool atomic) {
    if (!atomic) return objc_autorelease(objc_retain(*property(o, offset)));
    void* v;
    {
        std::lock_guard lock(g_property_mutex);
        v = objc_retain(*property(o, offset));
    }
    return objc_autorelease(v);
}
void objc_setProperty_atomic(void* o, Sel, void* v, long offset) { set_property(o, v, offset, false); }
void objc_setProperty_nonatomic(void* o, Sel, void* v, long offset) { set_property(o, v, offset, false); }
void objc_setProperty_atomic_copy(void* o, Sel, void* v, long offset) { set_property(o, v, offset, true); }
void objc_setProperty_nonatomic_copy(void* o, Sel, void* v, long offset) { set_property(o, v, offset, true); }

// ---- weak references -------------------------------------------------------------------------

void* objc_storeWeak(void** p, void* v) {
    std::lock_guard lock(g_mutex);
    if (*p) {
        auto w = weak_locations().find(*p);
        if (w != weak_locations().end()) w->second.erase(p);
    }
    if (v && !is_immortal(v)) weak_locations()[v].insert(p);
    *p = v;
    return v;
}
void* objc_initWeak(void** p, void* v) {
    *p = nullptr;
    return objc_storeWeak(p, v);
}
void objc_destroyWeak(void** p) { objc_storeWeak(p, nullptr); }
void* objc_loadWeakRetained(void** p) {
    std::lock_guard lock(g_mutex);
    void* o = *p;
    if (!o || is_immortal(o)) return o;
    // Zero: it is being deallocated and waits for this lock to clear the reference.
    long n = header(o)->count;
    while (n > 0)
        if (header(o)->count.compare_exchange_weak(n, n + 1)) return o;
    return nullptr;
}
void* objc_loadWeak(void** p) { return objc_autorelease(objc_loadWeakRetained(p)); }
void objc_copyWeak(void** to, void** from) {
    void* o = objc_loadWeakRetained(from);
    objc_initWeak(to, o);
    objc_release(o);
}
void objc_moveWeak(void** to, void** from) {
    objc_copyWeak(to, from);
    objc_destroyWeak(from);
}

// ---- @synchronized ---------------------------------------------------------------------------

extern "C++" {
namespace {
std::recursive_mutex& sync_mutex(void* o) {
    static auto* m = new std::unordered_map<void*, std::recursive_mutex>;
    std::lock_guard lock(g_mutex);
    return (*m)[o];
}
}  // namespace
}
int objc_sync_enter(void* o) {
    if (o) sync_mutex(o).lock();
    return 0;
}
int objc_sync_exit(void* o) {
    if (o) sync_mutex(o).unlock();
    return 0;
}
}
