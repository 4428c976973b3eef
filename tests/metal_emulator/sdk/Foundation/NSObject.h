#pragma once
#pragma clang system_header
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define NS_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define NS_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")
#define NS_ENUM(t, n) \
    enum n : t n;     \
    enum n : t
// In C++ a set of options is its integer type, as in Apple's headers: flags combine without a cast.
#define NS_OPTIONS(t, n) \
    t n;                 \
    enum : t
#define NS_RETURNS_RETAINED __attribute__((ns_returns_retained))
// API_AVAILABLE(macos(15.0)): the cross build warns where such a thing is used unguarded.
#define AVAILABILITY_macos(version) macos, introduced = version
#define API_AVAILABLE(platform) __attribute__((availability(AVAILABILITY_##platform)))
typedef unsigned long NSUInteger;
typedef long NSInteger;
typedef double NSTimeInterval;
typedef double CFTimeInterval;
#if defined(__APPLE__) && defined(__aarch64__)
typedef bool BOOL;
#else
typedef signed char BOOL;
#endif
#define YES ((BOOL)1)
#define NO ((BOOL)0)
#ifndef nil
#define nil nullptr
#endif
#ifndef Nil
#define Nil nullptr
#endif
#define NSNotFound ((NSInteger)0x7fffffffffffffffL)
typedef struct objc_selector* SEL;
typedef struct objc_class* Class;
typedef struct _NSRange {
    NSUInteger location, length;
} NSRange;
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
    NSRange r = {location, length};
    return r;
}
typedef struct _NSZone NSZone;
@class NSString;
@protocol NSObject
- (Class)class;
- (BOOL)isKindOfClass:(Class)c;
- (BOOL)respondsToSelector:(SEL)s;
- (BOOL)isEqual:(id)o;
@property(readonly) NSUInteger hash;
@property(readonly, copy) NSString* description;
@end
@protocol NSCopying
- (id)copyWithZone:(NSZone*)z;
@end
typedef struct {
    unsigned long state;
    __unsafe_unretained id* itemsPtr;
    unsigned long* mutationsPtr;
    unsigned long extra[5];
} NSFastEnumerationState;
@protocol NSFastEnumeration
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)s
                                  objects:(id __unsafe_unretained*)b
                                    count:(NSUInteger)n;
@end
__attribute__((objc_root_class))
@interface NSObject<NSObject> {
    Class isa;
}
+ (instancetype)alloc;
+ (instancetype)new;
+ (Class)class;
- (instancetype)init;
- (void)dealloc;
- (id)copy;
@end
