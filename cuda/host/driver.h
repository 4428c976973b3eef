// The CUDA driver API, as much of it as is used, taken from libcuda.so.1 when it is first asked for: nothing of CUDA is
// needed to build. AKUNU_CUDA_DRIVER names another library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace akunu::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;

constexpr CUresult kSuccess = 0, kOutOfMemory = 2, kNotReady = 600, kPeersAlready = 704;

enum DeviceAttribute : int {
    kClock = 13,
    kMultiprocessors = 16,
    kRunTimeLimit = 17,
    kMemoryClock = 36,
    kMemoryBits = 37,
    kCacheBytes = 38,  // of the second level
    kComputeMajor = 75,
    kComputeMinor = 76,
    kCooperativeLaunch = 95,
    kSharedMemoryPerBlock = 97,   // with opt-in
    kSharedMemoryReserved = 111,  // of each block's, by CUDA
};
constexpr int kFunctionDynamicShared = 8;
constexpr unsigned kHostPortable = 1, kHostDeviceMap = 2;

struct Driver {
    CUresult (*cuInit)(unsigned);
    CUresult (*cuDriverGetVersion)(int*);
    CUresult (*cuGetErrorString)(CUresult, const char**);
    CUresult (*cuDeviceGetCount)(int*);
    CUresult (*cuDeviceGet)(CUdevice*, int);
    CUresult (*cuDeviceGetName)(char*, int, CUdevice);
    CUresult (*cuDeviceGetAttribute)(int*, int, CUdevice);
    CUresult (*cuDeviceTotalMem)(std::size_t*, CUdevice);
    CUresult (*cuDevicePrimaryCtxRetain)(CUcontext*, CUdevice);
    CUresult (*cuDevicePrimaryCtxRelease)(CUdevice);
    CUresult (*cuCtxSetCurrent)(CUcontext);
    CUresult (*cuDeviceCanAccessPeer)(int*, CUdevice, CUdevice);
    CUresult (*cuCtxEnablePeerAccess)(CUcontext, unsigned);
    CUresult (*cuMemGetInfo)(std::size_t*, std::size_t*);
    CUresult (*cuMemAlloc)(CUdeviceptr*, std::size_t);
    CUresult (*cuMemFree)(CUdeviceptr);
    CUresult (*cuMemsetD8)(CUdeviceptr, unsigned char, std::size_t);
    CUresult (*cuMemsetD8Async)(CUdeviceptr, unsigned char, std::size_t, CUstream);
    CUresult (*cuMemcpyHtoD)(CUdeviceptr, const void*, std::size_t);
    CUresult (*cuMemcpyDtoH)(void*, CUdeviceptr, std::size_t);
    CUresult (*cuMemHostAlloc)(void**, std::size_t, unsigned);
    CUresult (*cuMemFreeHost)(void*);
    CUresult (*cuMemHostGetDevicePointer)(CUdeviceptr*, void*, unsigned);
    CUresult (*cuModuleLoadData)(CUmodule*, const void*);
    CUresult (*cuModuleUnload)(CUmodule);
    CUresult (*cuModuleGetFunction)(CUfunction*, CUmodule, const char*);
    CUresult (*cuFuncSetAttribute)(CUfunction, int, int);
    CUresult (*cuStreamCreate)(CUstream*, unsigned);
    CUresult (*cuStreamDestroy)(CUstream);
    CUresult (*cuStreamQuery)(CUstream);
    CUresult (*cuStreamSynchronize)(CUstream);
    CUresult (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int*, CUfunction, int, std::size_t);
    CUresult (*cuLaunchCooperativeKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                          unsigned, CUstream, void**);

    // Null before CUDA 12. Of a matrix in GPU memory: type, rank, address, sizes, bytes from row to row, sizes of a
    // box, steps, interleaving, swizzling, what else comes to the second-level cache, what lies behind the end.
    CUresult (*cuTensorMapEncodeTiled)(void*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*,
                                       const std::uint32_t*, const std::uint32_t*, int, int, int, int);

    // Throws DeviceError, which names what was attempted, unless `result` is success.
    void check(CUresult result, const std::string& attempted) const;
    std::string message(CUresult result) const;
};

// The driver, initialised; null where there is none, or where the process was forked from one that had it: `why` then
// says what is missing.
const Driver* find_driver(std::string& why);

}  // namespace akunu::cuda
