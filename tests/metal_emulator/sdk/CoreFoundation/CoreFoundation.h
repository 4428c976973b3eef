#pragma once
#pragma clang system_header
#include <stdint.h>
typedef const void* CFTypeRef;
typedef const struct __CFString* CFStringRef;
typedef const struct __CFNumber* CFNumberRef;
typedef const struct __CFDictionary* CFDictionaryRef;
typedef struct __CFDictionary* CFMutableDictionaryRef;
typedef const struct __CFAllocator* CFAllocatorRef;
typedef long CFIndex;
typedef unsigned char Boolean;
typedef unsigned long CFTypeID;
typedef CFIndex CFNumberType;
enum { kCFNumberSInt32Type = 3, kCFNumberSInt64Type = 4, kCFNumberIntType = 9 };
extern "C" {
extern const CFAllocatorRef kCFAllocatorDefault;
void CFRelease(CFTypeRef);
CFTypeID CFGetTypeID(CFTypeRef);
CFTypeID CFNumberGetTypeID(void);
Boolean CFNumberGetValue(CFNumberRef, CFNumberType, void*);
CFStringRef __CFStringMakeConstantString(const char*);
}
#define CFSTR(s) __CFStringMakeConstantString("" s "")
