#pragma once
#pragma clang system_header
#include <Foundation/NSObject.h>
#include <Foundation/NSString.h>
@interface NSNumber : NSObject <NSCopying>
+ (NSNumber*)numberWithInt:(int)v;
+ (NSNumber*)numberWithUnsignedInt:(unsigned)v;
+ (NSNumber*)numberWithLong:(long)v;
+ (NSNumber*)numberWithUnsignedLong:(unsigned long)v;
+ (NSNumber*)numberWithLongLong:(long long)v;
+ (NSNumber*)numberWithUnsignedLongLong:(unsigned long long)v;
+ (NSNumber*)numberWithDouble:(double)v;
+ (NSNumber*)numberWithFloat:(float)v;
+ (NSNumber*)numberWithBool:(BOOL)v;
@property(readonly) int intValue;
@property(readonly) unsigned unsignedIntValue;
@property(readonly) long long longLongValue;
@property(readonly) NSUInteger unsignedIntegerValue;
@property(readonly) NSInteger integerValue;
@property(readonly) double doubleValue;
@property(readonly) BOOL boolValue;
@property(readonly, copy) NSString* stringValue;
@end
@interface NSArray<__covariant T> : NSObject <NSCopying, NSFastEnumeration>
+ (instancetype)array;
+ (instancetype)arrayWithObject:(T)o;
+ (instancetype)arrayWithObjects:(const T _Nonnull __unsafe_unretained* _Nullable)o count:(NSUInteger)n;
@property(readonly) NSUInteger count;
- (T)objectAtIndex:(NSUInteger)i;
- (T)objectAtIndexedSubscript:(NSUInteger)i;
@property(nullable, readonly) T firstObject;
@end
@interface NSDictionary<__covariant K, __covariant V> : NSObject <NSCopying, NSFastEnumeration>
+ (instancetype)dictionary;
+ (instancetype)dictionaryWithObjects:(const V _Nonnull __unsafe_unretained* _Nullable)o
                              forKeys:(const K _Nonnull __unsafe_unretained* _Nullable)k
                                count:(NSUInteger)n;
@property(readonly) NSUInteger count;
@property(readonly, copy) NSArray<K>* _Nonnull allKeys;
- (nullable V)objectForKey:(K)k;
- (nullable V)objectForKeyedSubscript:(K)k;
@end
@interface NSData : NSObject <NSCopying>
+ (instancetype)dataWithBytes:(const void*)b length:(NSUInteger)n;
@property(readonly) NSUInteger length;
@property(readonly) const void* bytes;
@end
@interface NSURL : NSObject <NSCopying>
+ (instancetype)fileURLWithPath:(NSString*)p;
@property(readonly, copy) NSString* path;
@end
typedef NSString* NSErrorDomain;
typedef NSString* NSErrorUserInfoKey;
extern "C" NSErrorUserInfoKey const NSLocalizedDescriptionKey;
@interface NSError : NSObject
+ (instancetype)errorWithDomain:(NSErrorDomain)d code:(NSInteger)c userInfo:(NSDictionary<NSErrorUserInfoKey, id>*)u;
@property(readonly) NSInteger code;
@property(readonly, copy) NSErrorDomain domain;
@property(readonly, copy) NSDictionary<NSErrorUserInfoKey, id>* userInfo;
@property(readonly, copy) NSString* localizedDescription;
@end
typedef struct {
    NSInteger majorVersion, minorVersion, patchVersion;
} NSOperatingSystemVersion;
@interface NSProcessInfo : NSObject
@property(class, readonly, strong) NSProcessInfo* processInfo;
@property(readonly) unsigned long long physicalMemory;
@property(readonly) NSOperatingSystemVersion operatingSystemVersion;
@end
