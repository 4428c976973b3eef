// Binary archives: which pipelines were kept. Compiled kernels have a cache of their own here, so that a hit only
// counts.
#include <fstream>
#include <set>
#include <sstream>

#import "fake.h"

using namespace fakemetal;

NSErrorDomain const MTLBinaryArchiveDomain = @"MTLBinaryArchiveDomain";

namespace {
constexpr char kMagic[] = "akunu-metal-emulator-archive";

/// What tells one pipeline from another, in a line.
std::string key_of(MTLComputePipelineDescriptor* d) {
    FMFunction* f = (FMFunction*)d.computeFunction;
    std::ostringstream key;
    key << f->kernel->name << " " << d.maxTotalThreadsPerThreadgroup << " " << d.supportIndirectCommandBuffers;
    for (const mslrt::ConstantValue& c : f->constants) {
        key << " " << c.index << "=";
        for (uint32_t i = 0; i < c.size; ++i)
            key << static_cast<unsigned>(static_cast<unsigned char>(c.data[i])) << ",";
    }
    return key.str();
}
}  // namespace

@interface FMBinaryArchive : NSObject <MTLBinaryArchive> {
  @public
    std::set<std::string> pipelines;
}
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@end
@implementation FMBinaryArchive
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor*)d error:(NSError* __autoreleasing*)e {
    if (!d.computeFunction) {
        if (e)
            *e = make_error(MTLBinaryArchiveDomain, MTLBinaryArchiveErrorUnexpectedElement,
                            "the descriptor has no function");
        return NO;
    }
    pipelines.insert(key_of(d));
    return YES;
}
- (BOOL)serializeToURL:(NSURL*)u error:(NSError* __autoreleasing*)e {
    std::ofstream out(u.path.UTF8String);
    out << kMagic << "\n";
    for (const std::string& key : pipelines) out << key << "\n";
    if (out.flush()) return YES;
    if (e)
        *e = make_error(MTLBinaryArchiveDomain, MTLBinaryArchiveErrorInternalError,
                        std::string("cannot write ") + u.path.UTF8String);
    return NO;
}
@end
@implementation MTLBinaryArchiveDescriptor
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    MTLBinaryArchiveDescriptor* d = [MTLBinaryArchiveDescriptor new];
    d.url = self.url;
    return d;
}
@end

id<MTLBinaryArchive> FMReadArchive(MTLBinaryArchiveDescriptor* d, NSError* __autoreleasing* e) {
    FMBinaryArchive* archive = [FMBinaryArchive new];
    if (!d.url) return archive;
    std::ifstream in(d.url.path.UTF8String);
    std::string line;
    std::getline(in, line);
    if (line != kMagic) {
        if (e)
            *e = make_error(MTLBinaryArchiveDomain, MTLBinaryArchiveErrorInvalidFile,
                            std::string("not a binary archive: ") + d.url.path.UTF8String);
        return nil;
    }
    while (std::getline(in, line)) archive->pipelines.insert(line);
    return archive;
}
bool FMArchivesHold(MTLComputePipelineDescriptor* d) {
    for (id<MTLBinaryArchive> a in d.binaryArchives)
        if (d.computeFunction && ((FMBinaryArchive*)a)->pipelines.contains(key_of(d))) return true;
    return false;
}
