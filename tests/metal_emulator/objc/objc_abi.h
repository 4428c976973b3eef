// Apple's Objective-C ABI (64-bit, non-fragile) as clang emits it with -fobjc-runtime=macosx, and
// the runtime's internal interface.
#pragma once
#include <cstddef>
#include <cstdint>

namespace objcrt {
typedef const char* Sel;  // interned: equal selectors are equal pointers
struct Object;
typedef void* (*Imp)(Object*, Sel, ...);
struct Method {
    const char* name;
    const char* types;
    Imp imp;
};
struct MethodList {
    uint32_t entry_size, count;
    Method methods[1];  // count of them
};
struct ClassData {
    uint32_t flags, instance_start, instance_size, reserved;
    const uint8_t* layout;
    const char* name;
    MethodList* methods;
    void *protocols, *ivars;
    const uint8_t* weak_layout;
    void* properties;
};
constexpr uint32_t kMetaClass = 1;  // of ClassData::flags
struct Class {
    Class* isa;
    Class* super;
    void *cache, *vtable;
    ClassData* data;
};
struct Category {
    const char* name;
    Class* cls;
    MethodList *instance_methods, *class_methods;
    void *protocols, *properties;
};
struct Object {
    Class* isa;
};

Sel intern(const char* name);
/// nullptr: not implemented.
Imp find_method(Class* c, Sel s);
/// Aborts with the class and selector when there is none; fills the dispatch cache.
extern "C" Imp objcrt_lookup(Class* c, Sel s);
Object* allocate(Class* c);
void deallocate(Object* o);
/// Takes an object out of the leak count: it lives as long as the process.
extern "C" void* objcrt_permanent(void* o);
/// Objects alive, for leak checks.
extern "C" long objcrt_live_objects();
extern "C" void objcrt_print_live();
}  // namespace objcrt
