#import "metal/host/gpu.h"

#import <IOKit/IOKitLib.h>

namespace akunu::metal {

namespace {

int family_of(id<MTLDevice> device) {
    for (int f = 10; f > 7; --f) {
        if ([device supportsFamily:static_cast<MTLGPUFamily>(MTLGPUFamilyApple1 + f - 1)]) return f;
    }
    return 7;
}

// 0 where the system does not say.
int core_count() {
    const io_service_t service = IOServiceGetMatchingService(kIOMainPortDefault, IOServiceMatching("AGXAccelerator"));
    if (service == IO_OBJECT_NULL) return 0;
    int cores = 0;
    const CFTypeRef property =
        IORegistryEntryCreateCFProperty(service, CFSTR("gpu-core-count"), kCFAllocatorDefault, 0);
    if (property) {
        if (CFGetTypeID(property) == CFNumberGetTypeID()) {
            CFNumberGetValue(static_cast<CFNumberRef>(property), kCFNumberSInt32Type, &cores);
        }
        CFRelease(property);
    }
    IOObjectRelease(service);
    return cores;
}

}  // namespace

id<MTLDevice> find_device() {
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    // simdgroup_matrix begins with M1; a virtual machine's GPU is of an earlier family, and Intel Macs' of none.
    return [device supportsFamily:MTLGPUFamilyApple7] ? device : nil;
}

Gpu describe(id<MTLDevice> device) {
    const int cores = core_count();
    const std::string name = device.name.UTF8String;
    return {cores ? name + " (" + std::to_string(cores) + " GPU cores)" : name,
            "apple" + std::to_string(family_of(device)), cores, device.recommendedMaxWorkingSetSize};
}

Chip chip_of(id<MTLDevice> device, const Gpu& gpu) { return match_chip(gpu.name, family_of(device), gpu.cores); }

}  // namespace akunu::metal
