// The blit encoder: copies and fills of buffers.
#include <cstring>

#import "fake.h"

using namespace fakemetal;

@implementation FMBlitEncoder {
    FMCommandBuffer* owner;
    std::vector<std::function<void()>> steps;
    bool ended;
}
- (instancetype)initFor:(FMCommandBuffer*)buffer {
    owner = buffer;
    [buffer begin:self];
    add(kEncoders);
    return self;
}
- (void)check:(const char*)who {
    if (ended) invalid(std::string(who) + ": the encoder has ended");
}
- (void)dealloc {
    if (!ended) invalid("a command encoder was released without endEncoding");
}
static void check_range(FMBuffer* b, NSUInteger offset, NSUInteger n, const char* who) {
    if (!b || offset > b->size || n > b->size - offset)
        invalid(std::string(who) + ": range " + std::to_string(offset) + "+" + std::to_string(n) +
                " is not within the buffer");
    if (n % 4 || offset % 4) invalid(std::string(who) + ": offset and size must be multiples of 4");
}
- (void)copyFromBuffer:(id<MTLBuffer>)s
          sourceOffset:(NSUInteger)so
              toBuffer:(id<MTLBuffer>)d
     destinationOffset:(NSUInteger)o
                  size:(NSUInteger)n {
    [self check:"copyFromBuffer"];
    auto *from = (FMBuffer*)s, *to = (FMBuffer*)d;
    check_range(from, so, n, "copyFromBuffer");
    check_range(to, o, n, "copyFromBuffer");
    if (from == to && so < o + n && o < so + n) invalid("copyFromBuffer: source and destination overlap");
    [owner use:from];
    [owner use:to];
    steps.push_back([from, to, so, o, n] { memcpy(to->bytes + o, from->bytes + so, n); });
}
- (void)fillBuffer:(id<MTLBuffer>)b range:(NSRange)r value:(uint8_t)v {
    [self check:"fillBuffer"];
    auto* buffer = (FMBuffer*)b;
    check_range(buffer, r.location, r.length, "fillBuffer");
    [owner use:buffer];
    steps.push_back([buffer, r, v] { memset(buffer->bytes + r.location, v, r.length); });
}
- (void)optimizeIndirectCommandBuffer:(id<MTLIndirectCommandBuffer>)b withRange:(NSRange)r {
    [self check:"optimizeIndirectCommandBuffer"];
    (void)b;
    (void)r;
}
- (void)insertDebugSignpost:(NSString*)s {
    (void)s;
}
- (void)pushDebugGroup:(NSString*)s {
    (void)s;
}
- (void)popDebugGroup {
}
- (void)endEncoding {
    [self check:"endEncoding"];
    ended = true;
    owner->work.push_back({[recorded = steps] {
                               for (const auto& s : recorded) s();
                               return std::string();
                           },
                           _label ? _label.UTF8String : ""});
    owner->open_encoder = nil;
    owner = nil;
}
@end
