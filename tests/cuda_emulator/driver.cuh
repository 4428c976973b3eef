// Those parts of the CUDA driver and of NVRTC that Akunu calls, on the emulator, which includes this file at its end.
#pragma once

using namespace akunu::cuda;
#define API extern "C" __attribute__((visibility("default"))) int
#define FAIL_IF_ASKED \
    if (emulator::fails(__func__)) return 719

API cuInit(unsigned) {
    FAIL_IF_ASKED;
    return 0;
}
API cuDriverGetVersion(int* v) {
    *v = 13000;
    return 0;
}
constexpr int kNoKernels = 209, kOutOfShared = 700;
static std::string lacks;  // why the last module was refused
API cuGetErrorString(int r, const char** text) {
    *text = r == 2              ? "out of memory"
            : r == kNoKernels   ? lacks.c_str()
            : r == kOutOfShared ? "a block wrote behind its shared memory"
                                : "unspecified launch failure";
    return 0;
}
API cuDeviceGetCount(int* n) {
    *n = emulator::gpus();
    return 0;
}
API cuDeviceGet(int* d, int number) {
    *d = number;
    return number >= 0 && number < emulator::gpus() ? 0 : 101;
}
// How often the ring brought what had been fetched ahead, and how much was fetched for nothing.
API emulator_fetches(unsigned long long* used, unsigned long long* unused) {
    *used = emulator::copied_from_cache;
    *unused = emulator::fetched.size();
    return 0;
}
API cuDeviceGetName(char* name, int n, int d) {
    const bool other = d == 1 && std::getenv("EMULATOR_OTHER");
    std::snprintf(name, static_cast<std::size_t>(n), other ? "Another GPU" : "Emulated GPU");
    return 0;
}
API cuDeviceGetAttribute(int* v, int which, int) {
    const char* base = std::getenv("EMULATOR_SHARED_BASE");
    *v = which == 13    ? 1000
         : which == 16  ? emulator::blocks_wanted()
         : which == 17  ? std::getenv("EMULATOR_DISPLAY") != nullptr
         : which == 36  ? 215
         : which == 37  ? 512
         : which == 38  ? 50 << 20
         : which == 75  ? (AKUNU_WARPGROUPS ? 9 : 8)
         : which == 97  ? AKUNU_SHARED_BYTES
         : which == 111 ? (base ? std::atoi(base) : static_cast<int>(emulator::kSharedBase))
                        : which == 95 && !std::getenv("EMULATOR_NO_COOPERATION");
    return 0;
}
API cuDeviceTotalMem_v2(std::size_t* n, int) {
    *n = emulator::memory();
    return 0;
}
API cuDevicePrimaryCtxRetain(void** c, int d) {
    FAIL_IF_ASKED;
    *c = &emulator::contexts[d];
    return 0;
}
API cuDevicePrimaryCtxRelease_v2(int) { return 0; }
API cuCtxSetCurrent(void* c) {
    if (c) emulator::here = *static_cast<int*>(c);
    return 0;
}
API cuDeviceCanAccessPeer(int* can, int, int) {
    *can = !std::getenv("EMULATOR_NO_PEERS");
    return 0;
}
// Of the context that is current, and once.
API cuCtxEnablePeerAccess(void* c, unsigned) {
    FAIL_IF_ASKED;
    static bool enabled[emulator::kMostGpus][emulator::kMostGpus];
    bool& now = enabled[emulator::here][*static_cast<int*>(c)];
    return std::exchange(now, true) ? 704 : 0;
}
API cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    std::size_t used = 0;
    const std::scoped_lock lock(emulator::allocating);
    for (const auto& [p, a] : emulator::allocations) used += a.gpu == emulator::here ? a.bytes : 0;
    *total = emulator::memory();
    *free = emulator::memory() - used;
    return 0;
}
API cuMemAlloc_v2(unsigned long long* p, std::size_t n) {
    FAIL_IF_ASKED;
    std::size_t free, total;
    cuMemGetInfo_v2(&free, &total);
    if (n > free) return 2;
    const std::byte* const at = emulator::allocate_guarded(n);
    if (!at) return 2;
    *p = reinterpret_cast<unsigned long long>(at);
    const std::scoped_lock lock(emulator::allocating);
    emulator::allocations[*p] = {n, emulator::here};
    return 0;
}
API cuMemFree_v2(unsigned long long p) {
    const std::scoped_lock lock(emulator::allocating);
    const auto found = emulator::allocations.find(p);
    if (found == emulator::allocations.end()) std::abort();
    emulator::free_guarded(p, found->second.bytes);
    emulator::allocations.erase(found);
    return 0;
}
API cuMemsetD8_v2(unsigned long long p, unsigned char v, std::size_t n) {
    std::memset(reinterpret_cast<void*>(p), v, n);
    return 0;
}
API cuMemsetD8Async(unsigned long long p, unsigned char v, std::size_t n, void*) { return cuMemsetD8_v2(p, v, n); }
API cuStreamSynchronize(void*) { return 0; }
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, void*, int, std::size_t) {
    FAIL_IF_ASKED;
    *n = std::getenv("EMULATOR_NO_ROOM") ? 0 : 1;
    return 0;
}
API cuMemcpyHtoD_v2(unsigned long long to, const void* from, std::size_t n) {
    FAIL_IF_ASKED;
    std::memcpy(reinterpret_cast<void*>(to), from, n);
    return 0;
}
API cuMemcpyDtoH_v2(void* to, unsigned long long from, std::size_t n) {
    FAIL_IF_ASKED;
    std::memcpy(to, reinterpret_cast<void*>(from), n);
    return 0;
}
API cuMemHostAlloc(void** p, std::size_t n, unsigned) {
    FAIL_IF_ASKED;
    *p = std::aligned_alloc(256, (n + 255) / 256 * 256);
    return 0;
}
API cuMemFreeHost(void* p) {
    std::free(p);
    return 0;
}
API cuMemHostGetDevicePointer_v2(unsigned long long* d, void* p, unsigned) {
    *d = reinterpret_cast<unsigned long long>(p);
    return 0;
}
// Of 16-bit or 64-bit elements, in boxes that are swizzled or not.
API cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* tensor, const unsigned long long* sizes,
                           const unsigned long long* apart, const unsigned* box, const unsigned*, int, int swizzle, int,
                           int) {
    FAIL_IF_ASKED;
    const unsigned long long element = type == 6 ? 2 : type == 4 ? 8 : 0, row = box[0] * element;
    if (element == 0 || rank > 5 || row == 0 || row % 16 != 0 || (swizzle != 0 && (swizzle != 3 || row != 128)) ||
        reinterpret_cast<std::uintptr_t>(tensor) % 16 != 0) {
        return 1;
    }
    emulator::TensorMap m{static_cast<unsigned char*>(tensor), {}, {element}, {}, swizzle != 0};
    for (unsigned d = 0; d < 5; ++d) {
        m.sizes[d] = d < rank ? sizes[d] : 1;
        m.box[d] = d < rank ? box[d] : 1;
        if (m.sizes[d] == 0 || m.box[d] == 0 || m.box[d] > 256) return 1;
        if (d > 0 && d < rank && (apart[d - 1] % 16 != 0 || apart[d - 1] >> 40 != 0)) return 1;
        if (d > 0) m.apart[d] = d < rank ? apart[d - 1] : 0;
    }
    static_assert(sizeof m <= 128, "a map has room for it");
    new (map) emulator::TensorMap(m);
    return 0;
}
API cuModuleLoadData(void** m, const void* code) {
    FAIL_IF_ASKED;
    lacks = emulator::lacking(static_cast<const char*>(code));
    *m = &emulator::allocations;
    return lacks.empty() ? 0 : kNoKernels;
}
API cuModuleUnload(void*) { return 0; }
API cuModuleGetFunction(void** f, void*, const char*) {
    *f = &emulator::allocations;
    return 0;
}
API cuFuncSetAttribute(void*, int, int) { return 0; }
// A launch runs in a thread of its own: the host may ask it to end, and other GPUs' run beside it.
struct Launches {
    std::thread running;
    std::mutex ending;
    std::condition_variable end_comes;
    bool ended = true;
};
API cuStreamCreate(void** s, unsigned) {
    *s = new Launches;
    return 0;
}
API cuStreamDestroy_v2(void* s) {
    auto* stream = static_cast<Launches*>(s);
    if (stream->running.joinable()) stream->running.join();
    delete stream;
    return 0;
}
API cuStreamQuery(void* s) {
    auto& stream = *static_cast<Launches*>(s);
    const bool failed = emulator::fails(__func__);
    {
        // Who asks again and again takes the processor from what runs.
        std::unique_lock lock(stream.ending);
        const auto shortly = std::chrono::milliseconds(1);
        if (!failed && !stream.end_comes.wait_for(lock, shortly, [&] { return stream.ended; })) return 600;
    }
    if (stream.running.joinable()) stream.running.join();  // nothing runs on behind a failure, either
    return failed ? 719 : emulator::left_memory ? kOutOfShared : 0;
}
API cuLaunchCooperativeKernel(void*, unsigned blocks, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              void* s, void** params) {
    FAIL_IF_ASKED;
    auto& stream = *static_cast<Launches*>(s);
    stream.ended = false;
    stream.running = std::thread([launch = *static_cast<const LaunchParams*>(params[0]), blocks, &stream] {
        emulator::run(launch, blocks);
        const std::scoped_lock lock(stream.ending);
        stream.ended = true;
        stream.end_comes.notify_all();
    });
    return 0;
}

API nvrtcVersion(int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return 0;
}
static std::string machine_code;  // the text up to the kernels: which of them it wants
API nvrtcCreateProgram(void** p, const char* text, const char*, int, const char* const*, const char* const*) {
    *p = nullptr;
    machine_code = std::string(text).substr(0, std::string(text).find("\nnamespace"));
    const std::string right = "#define AKUNU_SHARED_BASE " + std::to_string(emulator::kSharedBase) +
                              "\n#define AKUNU_SHARED_BYTES " + std::to_string(AKUNU_SHARED_BYTES) + "\n";
    emulator::told = std::string(text).find(right) != std::string::npos;
    return 0;
}
static int (*flow)(void*, void*) = nullptr;
static void* flow_payload = nullptr;
API nvrtcSetFlowCallback(void*, int (*callback)(void*, void*), void* payload) {
    flow = callback;
    flow_payload = payload;
    return 0;
}
API nvrtcCompileProgram(void*, int, const char* const*) {
    FAIL_IF_ASKED;
    const char* ms = std::getenv("EMULATOR_COMPILE_MS");
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms ? std::atoi(ms) : 0);
    while (std::chrono::steady_clock::now() < end) {
        if (flow && flow(flow_payload, nullptr) == 1) return 16;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return 0;
}
API nvrtcGetProgramLogSize(void*, std::size_t* n) {
    *n = 8;
    return 0;
}
API nvrtcGetProgramLog(void*, char* text) {
    std::memcpy(text, "no luck", 8);
    return 0;
}
API nvrtcGetCUBINSize(void*, std::size_t* n) {
    *n = machine_code.size() + 1;
    return 0;
}
API nvrtcGetCUBIN(void*, char* text) {
    std::memcpy(text, machine_code.c_str(), machine_code.size() + 1);
    return 0;
}
API nvrtcGetPTXSize(void* program, std::size_t* n) { return nvrtcGetCUBINSize(program, n); }
API nvrtcGetPTX(void* program, char* text) { return nvrtcGetCUBIN(program, text); }
API nvrtcDestroyProgram(void**) { return 0; }
