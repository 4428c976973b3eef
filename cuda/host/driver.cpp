#include "cuda/host/driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "core/error.h"

namespace akunu::cuda {

namespace {

template <typename F>
bool load(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
}

bool load_all(void* l, Driver& d) {
    return load(l, "cuInit", d.cuInit) && load(l, "cuDriverGetVersion", d.cuDriverGetVersion) &&
           load(l, "cuGetErrorString", d.cuGetErrorString) && load(l, "cuDeviceGetCount", d.cuDeviceGetCount) &&
           load(l, "cuDeviceGet", d.cuDeviceGet) && load(l, "cuDeviceGetName", d.cuDeviceGetName) &&
           load(l, "cuDeviceGetAttribute", d.cuDeviceGetAttribute) &&
           load(l, "cuDeviceTotalMem_v2", d.cuDeviceTotalMem) &&
           load(l, "cuDevicePrimaryCtxRetain", d.cuDevicePrimaryCtxRetain) &&
           load(l, "cuDevicePrimaryCtxRelease_v2", d.cuDevicePrimaryCtxRelease) &&
           load(l, "cuCtxSetCurrent", d.cuCtxSetCurrent) && load(l, "cuDeviceCanAccessPeer", d.cuDeviceCanAccessPeer) &&
           load(l, "cuCtxEnablePeerAccess", d.cuCtxEnablePeerAccess) && load(l, "cuMemGetInfo_v2", d.cuMemGetInfo) &&
           load(l, "cuMemAlloc_v2", d.cuMemAlloc) && load(l, "cuMemFree_v2", d.cuMemFree) &&
           load(l, "cuMemsetD8_v2", d.cuMemsetD8) && load(l, "cuMemcpyHtoD_v2", d.cuMemcpyHtoD) &&
           load(l, "cuMemsetD8Async", d.cuMemsetD8Async) && load(l, "cuStreamSynchronize", d.cuStreamSynchronize) &&
           load(l, "cuOccupancyMaxActiveBlocksPerMultiprocessor", d.cuOccupancyMaxActiveBlocksPerMultiprocessor) &&
           load(l, "cuMemcpyDtoH_v2", d.cuMemcpyDtoH) && load(l, "cuMemHostAlloc", d.cuMemHostAlloc) &&
           load(l, "cuMemFreeHost", d.cuMemFreeHost) &&
           load(l, "cuMemHostGetDevicePointer_v2", d.cuMemHostGetDevicePointer) &&
           load(l, "cuModuleLoadData", d.cuModuleLoadData) && load(l, "cuModuleUnload", d.cuModuleUnload) &&
           load(l, "cuModuleGetFunction", d.cuModuleGetFunction) &&
           load(l, "cuFuncSetAttribute", d.cuFuncSetAttribute) && load(l, "cuStreamCreate", d.cuStreamCreate) &&
           load(l, "cuStreamDestroy_v2", d.cuStreamDestroy) && load(l, "cuStreamQuery", d.cuStreamQuery) &&
           load(l, "cuLaunchCooperativeKernel", d.cuLaunchCooperativeKernel);
}

struct Found {
    std::optional<Driver> driver;
    std::string why;
    pid_t process = getpid();
};

Found open_driver() {
    const char* named = std::getenv("AKUNU_CUDA_DRIVER");
    const char* name = named ? named : "libcuda.so.1";
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) return {{}, std::string("no NVIDIA driver: ") + dlerror()};
    Driver d;
    if (!load_all(library, d)) return {{}, std::string("the NVIDIA driver ") + name + " is too old"};
    load(library, "cuTensorMapEncodeTiled", d.cuTensorMapEncodeTiled);
    if (const CUresult r = d.cuInit(0); r != kSuccess) return {{}, "the NVIDIA driver does not start: " + d.message(r)};
    int count = 0;
    if (d.cuDeviceGetCount(&count) != kSuccess || count == 0) return {{}, "the NVIDIA driver finds no GPU"};
    return {d, {}};
}

}  // namespace

std::string Driver::message(CUresult result) const {
    const char* text = nullptr;
    cuGetErrorString(result, &text);
    return std::string(text ? text : "unknown error") + " (CUDA error " + std::to_string(result) + ")";
}

void Driver::check(CUresult result, const std::string& attempted) const {
    if (result != kSuccess) throw DeviceError(attempted + ": " + message(result));
}

const Driver* find_driver(std::string& why) {
    static const Found found = open_driver();
    if (found.driver && getpid() != found.process) {
        why = "CUDA was opened before this process was forked, and does not work in it: start it by the method 'spawn'";
        return nullptr;
    }
    why = found.why;
    return found.driver ? &*found.driver : nullptr;
}

}  // namespace akunu::cuda
