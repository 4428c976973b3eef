// NSObject and strings.  Compiled without ARC: this is where reference counting ends.
#import <Foundation/Foundation.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" {
id objcrt_alloc(Class);
void objcrt_free(id);
bool objcrt_responds(Class, const char*);
id objc_autorelease(id);
id objc_retain(id);
void objc_release(id);
}
struct ClassView {
    ClassView* isa;
    ClassView* super;
};

@implementation NSObject
+ (instancetype)alloc {
    return objcrt_alloc(self);
}
+ (instancetype)new {
    return [[self alloc] init];
}
+ (Class)class {
    return self;
}
- (Class)class {
    return isa;
}
- (instancetype)init {
    return self;
}
- (void)dealloc {
    objcrt_free(self);
}
- (id)copy {
    return [(id<NSCopying>)self copyWithZone:nullptr];
}
- (BOOL)respondsToSelector:(SEL)s {
    return objcrt_responds(isa, (const char*)s);
}
- (BOOL)isKindOfClass:(Class)c {
    for (ClassView* k = (ClassView*)isa; k; k = k->super)
        if (k == (ClassView*)c) return YES;
    return NO;
}
- (BOOL)isEqual:(id)o {
    return self == o;
}
- (NSUInteger)hash {
    return (NSUInteger)self >> 4;
}
- (NSString*)description {
    return @"object";
}
@end

// ---- strings ---------------------------------------------------------------------------------

@interface FMHeapString : NSString {
  @public
    std::string text;
}
@end
static NSString* heap_string(std::string s) {
    FMHeapString* h = [FMHeapString alloc];
    h->text = std::move(s);
    return h;
}
/// printf's conversions, and %@ for objects.
static std::string format(const char* f, va_list a) {
    std::string out;
    while (*f) {
        const char* percent = strchr(f, '%');
        if (!percent) return out + f;
        out.append(f, percent);
        const char* end = percent + 1;
        if (*end == '@') {
            id o = va_arg(a, id);
            out += o ? [o description].UTF8String : "(null)";
            f = end + 1;
            continue;
        }
        end += strspn(end, "-+ #0123456789.*lhzjtqL");
        const std::string spec(percent, end + 1);
        char b[4096];
        vsnprintf(b, sizeof b, spec.c_str(), a);  // advances `a`: one argument at a time (System V)
        out += b;
        f = end + 1;
    }
    return out;
}
@implementation NSString
+ (instancetype)string {
    return @"";
}
+ (instancetype)stringWithUTF8String:(const char*)s {
    return objc_autorelease(heap_string(s));
}
+ (instancetype)stringWithFormat:(NSString*)f, ... {
    va_list a;
    va_start(a, f);
    NSString* s = heap_string(format(f.UTF8String, a));
    va_end(a);
    return objc_autorelease(s);
}
- (instancetype)initWithUTF8String:(const char*)s {
    objc_release(self);
    return heap_string(s);
}
- (instancetype)initWithBytes:(const void*)b length:(NSUInteger)n encoding:(NSStringEncoding)e {
    (void)e;
    objc_release(self);
    return heap_string(std::string((const char*)b, n));
}
- (const char*)UTF8String {
    return "";
}
- (NSUInteger)length {
    return strlen(self.UTF8String);
}
- (BOOL)isEqualToString:(NSString*)o {
    return o && strcmp(self.UTF8String, o.UTF8String) == 0;
}
- (BOOL)isEqual:(id)o {
    return [o isKindOfClass:[NSString class]] && [self isEqualToString:o];
}
- (NSUInteger)hash {
    return std::hash<std::string>()(self.UTF8String);
}
- (NSString*)stringByAppendingString:(NSString*)s {
    return objc_autorelease(heap_string(std::string(self.UTF8String) + s.UTF8String));
}
- (BOOL)hasPrefix:(NSString*)s {
    return strncmp(self.UTF8String, s.UTF8String, s.length) == 0;
}
- (BOOL)containsString:(NSString*)s {
    return strstr(self.UTF8String, s.UTF8String) != nullptr;
}
- (NSString*)description {
    return self;
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    return objc_retain(self);
}
@end
@implementation FMHeapString
- (const char*)UTF8String {
    return text.c_str();
}
- (NSUInteger)length {
    return text.size();
}
@end
@implementation NSConstantString
- (const char*)UTF8String {
    return _bytes;
}
@end
asm(".globl __CFConstantStringClassReference\n.set __CFConstantStringClassReference, OBJC_CLASS_$_NSConstantString");
