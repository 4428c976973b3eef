#pragma once
#pragma clang system_header
#include <CoreFoundation/CoreFoundation.h>
typedef unsigned int mach_port_t;
typedef mach_port_t io_object_t, io_registry_entry_t, io_service_t, io_iterator_t;
typedef int kern_return_t;
typedef unsigned IOOptionBits;
#define IO_OBJECT_NULL ((io_object_t)0)
extern "C" {
extern const mach_port_t kIOMainPortDefault;
extern const mach_port_t kIOMasterPortDefault;
CFMutableDictionaryRef IOServiceMatching(const char*);
io_service_t IOServiceGetMatchingService(mach_port_t, CFDictionaryRef);
CFTypeRef IORegistryEntryCreateCFProperty(io_registry_entry_t, CFStringRef, CFAllocatorRef, IOOptionBits);
CFTypeRef IORegistryEntrySearchCFProperty(io_registry_entry_t, const char*, CFStringRef, CFAllocatorRef, IOOptionBits);
kern_return_t IOObjectRelease(io_object_t);
}
