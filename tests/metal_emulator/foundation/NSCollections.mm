// Numbers, arrays, dictionaries, data, URLs, errors (ARC).
#import <Foundation/Foundation.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

NSErrorUserInfoKey const NSLocalizedDescriptionKey = @"NSLocalizedDescription";

@implementation NSNumber {
  @public
    double d;
    long long i;
    bool floating;
}
static NSNumber* integer_number(long long v) {
    NSNumber* n = [NSNumber new];
    n->i = v;
    n->d = (double)v;
    return n;
}
static NSNumber* real_number(double v) {
    NSNumber* n = [NSNumber new];
    n->d = v;
    n->i = (long long)v;
    n->floating = true;
    return n;
}
+ (NSNumber*)numberWithInt:(int)v {
    return integer_number(v);
}
+ (NSNumber*)numberWithUnsignedInt:(unsigned)v {
    return integer_number(v);
}
+ (NSNumber*)numberWithLong:(long)v {
    return integer_number(v);
}
+ (NSNumber*)numberWithUnsignedLong:(unsigned long)v {
    return integer_number((long long)v);
}
+ (NSNumber*)numberWithLongLong:(long long)v {
    return integer_number(v);
}
+ (NSNumber*)numberWithUnsignedLongLong:(unsigned long long)v {
    return integer_number((long long)v);
}
+ (NSNumber*)numberWithDouble:(double)v {
    return real_number(v);
}
+ (NSNumber*)numberWithFloat:(float)v {
    return real_number(v);
}
+ (NSNumber*)numberWithBool:(BOOL)v {
    return integer_number(v ? 1 : 0);
}
- (int)intValue {
    return (int)i;
}
- (unsigned)unsignedIntValue {
    return (unsigned)i;
}
- (long long)longLongValue {
    return i;
}
- (NSUInteger)unsignedIntegerValue {
    return (NSUInteger)i;
}
- (NSInteger)integerValue {
    return i;
}
- (double)doubleValue {
    return d;
}
- (BOOL)boolValue {
    return i != 0;
}
- (NSString*)stringValue {
    return floating ? [NSString stringWithFormat:@"%g", d] : [NSString stringWithFormat:@"%lld", i];
}
- (NSString*)description {
    return self.stringValue;
}
- (BOOL)isEqual:(id)o {
    return [o isKindOfClass:[NSNumber class]] && ((NSNumber*)o)->d == d;
}
- (NSUInteger)hash {
    return (NSUInteger)i;
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    return self;
}
@end

/// `for (x in collection)` over a C++ vector.
static NSUInteger enumerate(const std::vector<id>& v, NSFastEnumerationState* s) {
    if (s->state) return 0;
    s->state = 1;
    s->itemsPtr = (id __unsafe_unretained*)(void*)v.data();
    static unsigned long unchanged = 0;
    s->mutationsPtr = &unchanged;
    return v.size();
}

@implementation NSArray {
  @public
    std::vector<id> items;
}
+ (instancetype)array {
    return [NSArray new];
}
+ (instancetype)arrayWithObject:(id)o {
    return [self arrayWithObjects:&o count:1];
}
+ (instancetype)arrayWithObjects:(const id __unsafe_unretained*)o count:(NSUInteger)n {
    NSArray* a = [NSArray new];
    a->items.assign(o, o + n);
    return a;
}
- (NSUInteger)count {
    return items.size();
}
- (id)objectAtIndex:(NSUInteger)i {
    if (i >= items.size()) {
        fprintf(stderr, "NSArray: index %lu beyond %zu\n", i, items.size());
        abort();
    }
    return items[i];
}
- (id)objectAtIndexedSubscript:(NSUInteger)i {
    return [self objectAtIndex:i];
}
- (id)firstObject {
    return items.empty() ? nil : items.front();
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    return self;
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)s
                                  objects:(id __unsafe_unretained*)b
                                    count:(NSUInteger)n {
    (void)b;
    (void)n;
    return enumerate(items, s);
}
@end

@implementation NSDictionary {
  @public
    std::vector<id> keys, values;
}
+ (instancetype)dictionary {
    return [NSDictionary new];
}
+ (instancetype)dictionaryWithObjects:(const id __unsafe_unretained*)o
                              forKeys:(const id __unsafe_unretained*)k
                                count:(NSUInteger)n {
    NSDictionary* d = [NSDictionary new];
    d->keys.assign(k, k + n);
    d->values.assign(o, o + n);
    return d;
}
- (NSUInteger)count {
    return keys.size();
}
- (NSArray*)allKeys {
    NSArray* a = [NSArray new];
    a->items = keys;
    return a;
}
- (id)objectForKey:(id)k {
    for (size_t i = 0; i < keys.size(); ++i)
        if ([keys[i] isEqual:k]) return values[i];
    return nil;
}
- (id)objectForKeyedSubscript:(id)k {
    return [self objectForKey:k];
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    return self;
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)s
                                  objects:(id __unsafe_unretained*)b
                                    count:(NSUInteger)n {
    (void)b;
    (void)n;
    return enumerate(keys, s);
}
@end

// What clang refers to for the literals @[] and @{}.
extern "C" void* objcrt_permanent(void*);
extern "C" void* __NSArray0__ = objcrt_permanent((__bridge_retained void*)[NSArray new]);
extern "C" void* __NSDictionary0__ = objcrt_permanent((__bridge_retained void*)[NSDictionary new]);

@implementation NSData {
    std::string content;
}
+ (instancetype)dataWithBytes:(const void*)b length:(NSUInteger)n {
    NSData* d = [NSData new];
    d->content.assign((const char*)b, n);
    return d;
}
- (NSUInteger)length {
    return content.size();
}
- (const void*)bytes {
    return content.data();
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    return self;
}
@end

@implementation NSURL {
    NSString* file;
}
+ (instancetype)fileURLWithPath:(NSString*)p {
    NSURL* u = [NSURL new];
    u->file = p;
    return u;
}
- (NSString*)path {
    return file;
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    return self;
}
@end

@implementation NSError {
    NSInteger number;
    NSString* where;
    NSDictionary* info;
}
+ (instancetype)errorWithDomain:(NSErrorDomain)d code:(NSInteger)c userInfo:(NSDictionary*)u {
    NSError* e = [NSError new];
    e->number = c;
    e->where = d;
    e->info = u ? u : [NSDictionary dictionary];
    return e;
}
- (NSInteger)code {
    return number;
}
- (NSErrorDomain)domain {
    return where;
}
- (NSDictionary*)userInfo {
    return info;
}
- (NSString*)localizedDescription {
    NSString* s = info[NSLocalizedDescriptionKey];
    return s ? s : [NSString stringWithFormat:@"The operation couldn't be completed. (%@ error %ld.)", where, number];
}
- (NSString*)description {
    return self.localizedDescription;
}
@end

@implementation NSProcessInfo
+ (NSProcessInfo*)processInfo {
    return [NSProcessInfo new];
}
- (unsigned long long)physicalMemory {
    return (unsigned long long)sysconf(_SC_PHYS_PAGES) * (unsigned long long)sysconf(_SC_PAGESIZE);
}
- (NSOperatingSystemVersion)operatingSystemVersion {
    return NSOperatingSystemVersion{15, 0, 0};
}
@end
