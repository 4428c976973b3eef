#pragma once
#pragma clang system_header
#include <Foundation/NSObject.h>
typedef NSUInteger NSStringEncoding;
enum { NSUTF8StringEncoding = 4 };
@interface NSString : NSObject <NSCopying>
@property(readonly) NSUInteger length;
@property(readonly) const char* UTF8String;
+ (instancetype)string;
+ (instancetype)stringWithUTF8String:(const char*)s;
+ (instancetype)stringWithFormat:(NSString*)f, ...;
- (instancetype)initWithUTF8String:(const char*)s;
- (instancetype)initWithBytes:(const void*)b length:(NSUInteger)n encoding:(NSStringEncoding)e;
- (BOOL)isEqualToString:(NSString*)s;
- (NSString*)stringByAppendingString:(NSString*)s;
- (BOOL)hasPrefix:(NSString*)s;
- (BOOL)containsString:(NSString*)s;
@end
@interface NSConstantString : NSString {
  @public
    uint64_t _flags;
    const char* _bytes;
    uint64_t _length;
}
@end
