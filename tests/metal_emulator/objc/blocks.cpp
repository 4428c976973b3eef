// Blocks: the public ABI of clang's -fblocks, with __block variables.
#include <cstdlib>
#include <cstring>

extern "C" {
void* _NSConcreteStackBlock[32];
void* _NSConcreteGlobalBlock[32];
void* _NSConcreteMallocBlock[32];
void* objc_retain(void*);
void objc_release(void*);
}

namespace {
struct Descriptor {
    unsigned long reserved, size;
    void (*copy)(void*, const void*);
    void (*dispose)(const void*);
};
struct Block {
    void* isa;
    int flags, reserved;
    void (*invoke)(void*);
    Descriptor* descriptor;
};
/// A __block variable: moves to the heap with the first block that captures it.
struct Byref {
    void* isa;
    Byref* forwarding;
    int flags;
    unsigned size;
    void (*keep)(Byref*, Byref*);
    void (*destroy)(Byref*);
};
constexpr int kRefcountMask = 0xFFFE, kNeedsFree = 1 << 24, kHasCopyDispose = 1 << 25;
constexpr int kFieldIsObject = 3, kFieldIsBlock = 7, kFieldIsByref = 8, kFieldIsWeak = 16, kByrefCaller = 128;

int retain_flags(int* flags) { return __atomic_add_fetch(flags, 2, __ATOMIC_RELAXED); }
bool release_flags(int* flags) { return (__atomic_sub_fetch(flags, 2, __ATOMIC_ACQ_REL) & kRefcountMask) == 0; }

Byref* copy_byref(Byref* source) {
    Byref* s = source->forwarding;
    if (s->flags & kNeedsFree) {
        retain_flags(&s->flags);
        return s;
    }
    auto* d = static_cast<Byref*>(malloc(s->size));
    memcpy(d, s, s->size);
    d->flags = (s->flags & ~kRefcountMask) | kNeedsFree | 4;  // one for the block, one for the frame
    d->forwarding = d;
    s->forwarding = d;
    if (s->flags & kHasCopyDispose) s->keep(d, s);
    return d;
}
void release_byref(Byref* source) {
    Byref* s = source->forwarding;
    if (!(s->flags & kNeedsFree) || !release_flags(&s->flags)) return;
    if (s->flags & kHasCopyDispose) s->destroy(s);
    free(s);
}
}  // namespace

extern "C" {
void* _Block_copy(const void* block) {
    auto* s = const_cast<Block*>(static_cast<const Block*>(block));
    if (!s || s->isa == _NSConcreteGlobalBlock) return s;
    if (s->flags & kNeedsFree) {
        retain_flags(&s->flags);
        return s;
    }
    auto* d = static_cast<Block*>(malloc(s->descriptor->size));
    memcpy(d, s, s->descriptor->size);
    d->isa = _NSConcreteMallocBlock;
    d->flags = (d->flags & ~0xFFFF) | kNeedsFree | 2;
    if (d->flags & kHasCopyDispose) d->descriptor->copy(d, s);
    return d;
}
void _Block_release(const void* block) {
    auto* s = const_cast<Block*>(static_cast<const Block*>(block));
    if (!s || !(s->flags & kNeedsFree) || !release_flags(&s->flags)) return;
    if (s->flags & kHasCopyDispose) s->descriptor->dispose(s);
    free(s);
}
void _Block_object_assign(void* destination, const void* object, int flags) {
    auto* o = const_cast<void*>(object);
    auto** d = static_cast<void**>(destination);
    if (flags & kByrefCaller || flags & kFieldIsWeak)
        *d = o;  // __block object variables hold no reference of their own
    else if (flags & kFieldIsByref)
        *d = copy_byref(static_cast<Byref*>(o));
    else if (flags == kFieldIsBlock)
        *d = _Block_copy(o);
    else if (flags == kFieldIsObject)
        *d = objc_retain(o);
    else
        *d = o;
}
void _Block_object_dispose(const void* object, int flags) {
    auto* o = const_cast<void*>(object);
    if (flags & kByrefCaller || flags & kFieldIsWeak) return;
    if (flags & kFieldIsByref)
        release_byref(static_cast<Byref*>(o));
    else if (flags == kFieldIsBlock)
        _Block_release(o);
    else if (flags == kFieldIsObject)
        objc_release(o);
}
}
