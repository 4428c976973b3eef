// The one IOKit query an engine makes: the number of GPU cores.
#include <IOKit/IOKitLib.h>

#include <cstdlib>
#include <cstring>

#include "control.h"

namespace {
// What the queries hand out; they are told apart by address.
struct Handle {
    int kind;
};
const Handle g_number{1};
constexpr CFTypeID kNumber = 22;
}  // namespace

extern "C" {
const CFAllocatorRef kCFAllocatorDefault = nullptr;
const mach_port_t kIOMainPortDefault = 0;
const mach_port_t kIOMasterPortDefault = 0;
void CFRelease(CFTypeRef) {}
CFTypeID CFGetTypeID(CFTypeRef r) { return r == &g_number ? kNumber : 0; }
CFTypeID CFNumberGetTypeID(void) { return kNumber; }
Boolean CFNumberGetValue(CFNumberRef n, CFNumberType type, void* out) {
    if (static_cast<const void*>(n) != &g_number) return 0;
    const int64_t cores = fakemetal::setting(fakemetal::kGpuCores);
    if (type == kCFNumberSInt64Type)
        memcpy(out, &cores, sizeof cores);
    else {
        const auto narrow = static_cast<int32_t>(cores);
        memcpy(out, &narrow, sizeof narrow);
    }
    return 1;
}
CFStringRef __CFStringMakeConstantString(const char* s) { return reinterpret_cast<CFStringRef>(s); }
CFMutableDictionaryRef IOServiceMatching(const char* name) {
    return reinterpret_cast<CFMutableDictionaryRef>(const_cast<char*>(name));
}
io_service_t IOServiceGetMatchingService(mach_port_t, CFDictionaryRef match) {
    return match && !strcmp(reinterpret_cast<const char*>(match), "AGXAccelerator") ? 1 : IO_OBJECT_NULL;
}
CFTypeRef IORegistryEntryCreateCFProperty(io_registry_entry_t entry, CFStringRef key, CFAllocatorRef, IOOptionBits) {
    return entry == 1 && !strcmp(reinterpret_cast<const char*>(key), "gpu-core-count") ? &g_number : nullptr;
}
CFTypeRef IORegistryEntrySearchCFProperty(io_registry_entry_t entry, const char*, CFStringRef key, CFAllocatorRef a,
                                          IOOptionBits o) {
    return IORegistryEntryCreateCFProperty(entry, key, a, o);
}
kern_return_t IOObjectRelease(io_object_t) { return 0; }
}
