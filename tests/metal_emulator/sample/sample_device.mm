#include "sample_device.h"

#import <Foundation/Foundation.h>
#import <IOKit/IOKitLib.h>
#import <Metal/Metal.h>

#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>

namespace sample {
namespace {
/// What completion handlers write; they may outlive the device.
struct Progress {
    std::atomic<int> completed{0};
    std::mutex mutex;
    std::string error;
};
std::string text(NSError* e) { return e ? e.localizedDescription.UTF8String : "unknown error"; }
}  // namespace

struct Device::Impl {
    id<MTLDevice> device;
    id<MTLCommandQueue> queue;
    id<MTLLibrary> library;
    id<MTLSharedEvent> event;
    id<MTLCommandBuffer> command;
    id<MTLComputeCommandEncoder> encoder;
    std::map<std::string, id<MTLComputePipelineState>> pipelines;
    uint64_t value = 0;
    bool concurrent = false;
    std::shared_ptr<Progress> progress = std::make_shared<Progress>();

    id<MTLComputePipelineState> pipeline(const Call& c) {
        std::string key = c.kernel;
        for (const auto& [index, v] : c.constants) key += "," + std::to_string(index) + "=" + std::to_string(v);
        const auto found = pipelines.find(key);
        if (found != pipelines.end()) return found->second;
        MTLFunctionConstantValues* values = [MTLFunctionConstantValues new];
        for (const auto& [index, v] : c.constants) {
            const bool flag = v != 0;
            // The sample's only boolean constants are 0 of rmsnorm.
            if (c.kernel.starts_with("rmsnorm"))
                [values setConstantValue:&flag type:MTLDataTypeBool atIndex:index];
            else
                [values setConstantValue:&v type:MTLDataTypeUInt atIndex:index];
        }
        NSError* e = nil;
        id<MTLFunction> f = [library newFunctionWithName:@(c.kernel.c_str()) constantValues:values error:&e];
        id<MTLComputePipelineState> made = f ? [device newComputePipelineStateWithFunction:f error:&e] : nil;
        if (!made) throw std::runtime_error("kernel " + c.kernel + ": " + text(e));
        return pipelines[key] = made;
    }
};

Device::Device(const std::string& source, bool concurrent) : p_(new Impl) {
    std::string error;  // thrown outside of the pool: an exception would skip its drain
    @autoreleasepool {
        p_->device = MTLCreateSystemDefaultDevice();
        p_->queue = [p_->device newCommandQueue];
        p_->event = [p_->device newSharedEvent];
        p_->concurrent = concurrent;
        MTLCompileOptions* options = [MTLCompileOptions new];
        options.fastMathEnabled = NO;
        NSError* e = nil;
        p_->library = [p_->device newLibraryWithSource:@(source.c_str()) options:options error:&e];
        if (!p_->library) error = "kernels: " + text(e);
    }
    if (!error.empty()) throw std::runtime_error(error);
}
Device::~Device() = default;

std::string Device::name() const {
    @autoreleasepool {
        return p_->device.name.UTF8String;
    }
}

int Device::core_count() const {
    int cores = 0;
    const io_service_t service = IOServiceGetMatchingService(kIOMainPortDefault, IOServiceMatching("AGXAccelerator"));
    if (service == IO_OBJECT_NULL) return 0;
    const CFTypeRef property =
        IORegistryEntryCreateCFProperty(service, CFSTR("gpu-core-count"), kCFAllocatorDefault, 0);
    if (property) {
        if (CFGetTypeID(property) == CFNumberGetTypeID())
            CFNumberGetValue((CFNumberRef)property, kCFNumberSInt32Type, &cores);
        CFRelease(property);
    }
    IOObjectRelease(service);
    return cores;
}

Buffer Device::allocate(size_t bytes) {
    id<MTLBuffer> b = [p_->device newBufferWithLength:bytes options:MTLResourceStorageModeShared];
    if (!b) throw std::bad_alloc();
    return {(__bridge_retained void*)b, b.contents, bytes};
}
void Device::release(Buffer& b) {
    (void)(__bridge_transfer id<MTLBuffer>)b.handle;
    b = Buffer();
}

void Device::begin() {
    @autoreleasepool {
        p_->command = [p_->queue commandBuffer];
        p_->encoder = [p_->command
            computeCommandEncoderWithDispatchType:p_->concurrent ? MTLDispatchTypeConcurrent : MTLDispatchTypeSerial];
    }
}

void Device::encode(const Call& c) {
    std::string error;
    @autoreleasepool {
        try {
            [p_->encoder setComputePipelineState:p_->pipeline(c)];
        } catch (const std::exception& e) {
            error = e.what();
        }
        if (error.empty()) {
            NSUInteger i = 0;
            for (const Argument& a : c.buffers)
                [p_->encoder setBuffer:(__bridge id<MTLBuffer>)a.buffer->handle offset:a.offset atIndex:i++];
            if (!c.params.empty()) [p_->encoder setBytes:c.params.data() length:c.params.size() atIndex:i];
            if (c.threadgroup_memory)
                [p_->encoder setThreadgroupMemoryLength:(c.threadgroup_memory + 15) / 16 * 16 atIndex:0];
            [p_->encoder dispatchThreadgroups:MTLSizeMake(c.groups[0], c.groups[1], c.groups[2])
                        threadsPerThreadgroup:MTLSizeMake(c.threads[0], c.threads[1], c.threads[2])];
        }
    }
    if (!error.empty()) throw std::runtime_error(error);
}

void Device::barrier() { [p_->encoder memoryBarrierWithScope:MTLBarrierScopeBuffers]; }

uint64_t Device::commit() {
    @autoreleasepool {
        [p_->encoder endEncoding];
        [p_->command encodeSignalEvent:p_->event value:++p_->value];
        auto progress = p_->progress;
        [p_->command addCompletedHandler:^(id<MTLCommandBuffer> done) {
          ++progress->completed;
          if (done.status != MTLCommandBufferStatusError) return;
          std::lock_guard lock(progress->mutex);
          progress->error = text(done.error);
        }];
        [p_->command commit];
        p_->command = nil;
        p_->encoder = nil;
        return p_->value;
    }
}

void Device::wait(uint64_t value) {
    if (![p_->event waitUntilSignaledValue:value timeoutMS:60000])
        throw std::runtime_error("the GPU did not finish in time");
}
int Device::completed() const { return p_->progress->completed; }
std::string Device::last_error() const {
    std::lock_guard lock(p_->progress->mutex);
    return p_->progress->error;
}
}  // namespace sample
