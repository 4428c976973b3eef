// The fake device's classes, as its own files see them.
#pragma once
#import <Metal/Metal.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../runtime/msl_abi.h"
#include "control.h"
#include "executor_library.h"
#include "order.h"
#include "queue.h"

@class FMBuffer, FMPipeline, FMCommandBuffer;

namespace fakemetal {

NSError* make_error(NSErrorDomain domain, NSInteger code, const std::string& text);
std::string to_string(MTLSize s);

/// One slot of the buffer argument table.  What it points to is kept alive by the command buffer.
struct Slot {
    __unsafe_unretained FMBuffer* buffer = nil;
    NSUInteger offset = 0;
    const std::string* bytes = nullptr;  // setBytes
};
struct Bindings {
    __unsafe_unretained FMPipeline* pipeline = nil;
    Slot slot[mslrt::kMaxBuffers];
    uint32_t threadgroup[mslrt::kMaxBuffers] = {};
};
struct Dispatch {
    Bindings bindings;
    MTLSize grid{}, group{};                       // in threads
    __unsafe_unretained FMBuffer* indirect = nil;  // threadgroup counts, read when it runs
    NSUInteger indirect_offset = 0;
};

// bindings.mm: checks as in Metal's API validation; `who` begins their messages.
void set_buffer(Bindings& b, FMBuffer* buffer, NSUInteger offset, NSUInteger index, const char* who);
void set_threadgroup_memory(Bindings& b, NSUInteger bytes, NSUInteger index, const char* who);
void check_dispatch(const Dispatch& d, const char* who);
/// Runs it now.  An empty string, or what went wrong.
std::string execute(const Dispatch& d, void* sync_in, void* sync_out);

/// Finds dispatches of a concurrent encoder that touch the same memory with no barrier between.
class HazardTracker {
  public:
    void add(const Dispatch& d, const char* who);
    void barrier() { uses_.clear(); }
    void barrier_for(const void* buffer);

  private:
    struct Use {
        const void* buffer;
        NSUInteger begin, end;
        bool writes;
        std::string kernel, parameter;
    };
    std::vector<Use> uses_;
};

double now_seconds();
}  // namespace fakemetal

// ---- resources -------------------------------------------------------------------------------

@interface FMBuffer : NSObject <MTLBuffer> {
  @public
    char* bytes;
    NSUInteger size;
    bool owned;
    std::atomic<int> in_flight;      // committed command buffers that use it
    std::atomic<int> resident;       // sets that keep it so
    std::atomic<uint64_t> last_use;  // the command buffer of it, see order.h
    MTLResourceOptions options;
    void (^deallocator)(void*, NSUInteger);
}
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@end
FMBuffer* FMNewBuffer(NSUInteger size, MTLResourceOptions options) NS_RETURNS_RETAINED;
FMBuffer* FMNewBufferNoCopy(void* p, NSUInteger size, MTLResourceOptions options,
                            void (^deallocator)(void*, NSUInteger)) NS_RETURNS_RETAINED;

@interface FMEvent : NSObject <MTLSharedEvent> {
  @public
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t value;
    std::map<uint64_t, uint64_t> signalled_by;  // values, and the command buffer that signals them
    std::vector<std::pair<uint64_t, MTLSharedEventNotificationBlock>> waiting;
}
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@end

@interface FMFence : NSObject <MTLFence> {
  @public
    const fakemetal::Queue* queue;
    uint64_t updated_in;  // the command buffer of the last update, by which of its encoders
    size_t encoder;
    bool complete;  // that encoder is behind all before it
}
@property(nullable, copy, atomic) NSString* label;
@end

// ---- code ------------------------------------------------------------------------------------

@interface FMFunction : NSObject <MTLFunction> {
  @public
    const mslrt::LibraryDesc* library;
    const mslrt::KernelDesc* kernel;
    std::vector<mslrt::ConstantValue> constants;
    std::string problem;  // why no pipeline can be made of it
}
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@end

@interface FMPipeline : NSObject <MTLComputePipelineState> {
  @public
    const mslrt::LibraryDesc* library;
    const mslrt::KernelDesc* kernel;
    std::vector<mslrt::ConstantValue> constants;
    std::vector<bool> bound;  // by parameter: not switched off by a function constant
    NSUInteger max_threads;
    bool indirect;
    NSString* name;
}
@property(readonly) id<MTLDevice> device;
@end

/// A library file of the emulator: kFileMagic, then texts between lines of kTextMark.
id<MTLLibrary> FMReadLibrary(const std::string& path, NSError* __autoreleasing* e) NS_RETURNS_RETAINED;
id<MTLLibrary> FMNewLibrary(NSString* source, MTLCompileOptions* options,
                            NSError* __autoreleasing* e) NS_RETURNS_RETAINED;
FMPipeline* FMNewPipeline(FMFunction* f, NSUInteger max_threads, bool indirect,
                          NSError* __autoreleasing* e) NS_RETURNS_RETAINED;

id<MTLBinaryArchive> FMReadArchive(MTLBinaryArchiveDescriptor* d, NSError* __autoreleasing* e) NS_RETURNS_RETAINED;
/// Whether one of the descriptor's archives has its pipeline.
bool FMArchivesHold(MTLComputePipelineDescriptor* d);
id<MTLResidencySet> FMNewResidencySet() NS_RETURNS_RETAINED;

// ---- commands --------------------------------------------------------------------------------

@interface FMIndirectCommandBuffer : NSObject <MTLIndirectCommandBuffer> {
  @public
    std::vector<fakemetal::Dispatch> commands;
    std::vector<bool> encoded, barrier_before;
    MTLIndirectCommandBufferDescriptor* descriptor;
    std::vector<id> retained;
}
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@end

@interface FMCommandBuffer : NSObject <MTLCommandBuffer> {
  @public
    std::shared_ptr<fakemetal::Queue> queue;
    struct Work {
        std::function<std::string()> run;
        std::string label;
    };
    std::vector<Work> work;
    std::vector<MTLCommandBufferHandler> scheduled, completed;
    std::vector<id> retained;
    std::vector<__unsafe_unretained FMBuffer*> buffers;  // `retained` holds them, if at all
    std::deque<std::string> inline_bytes;
    uint64_t number;                          // see order.h
    std::vector<uint64_t> behind;             // command buffers that events and fences keep it behind
    size_t encoders;                          // begun so far
    std::map<const void*, size_t> untracked;  // buffers, and the last encoder that uses them
    bool retains;
    __unsafe_unretained id open_encoder;
    std::mutex mutex;
    std::condition_variable changed;
    MTLCommandBufferStatus state;
    NSError* failure;
    double gpu_start, gpu_end;
    MTLCommandBufferErrorOption error_options;
}
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@property(readonly) id<MTLCommandQueue> commandQueue;
- (void)keep:(id)object;
- (void)use:(FMBuffer*)buffer;
- (void)begin:(id)encoder;
@end

@interface FMComputeEncoder : NSObject <MTLComputeCommandEncoder>
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@property(readonly) MTLDispatchType dispatchType;
- (instancetype)initFor:(FMCommandBuffer*)buffer type:(MTLDispatchType)type pass:(MTLComputePassDescriptor*)pass;
@end
/// Does nothing, quickly: for measuring what encoding costs the host.
@interface FMNoopEncoder : NSObject <MTLComputeCommandEncoder>
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@property(readonly) MTLDispatchType dispatchType;
- (instancetype)initFor:(FMCommandBuffer*)buffer;
@end
@interface FMBlitEncoder : NSObject <MTLBlitCommandEncoder>
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
- (instancetype)initFor:(FMCommandBuffer*)buffer;
@end
@interface FMQueue : NSObject <MTLCommandQueue>
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@end
@interface FMCounterSampleBuffer : NSObject <MTLCounterSampleBuffer> {
  @public
    std::vector<uint64_t> samples;
}
@end
NSArray<id<MTLCounterSet>>* FMCounterSets(void);
