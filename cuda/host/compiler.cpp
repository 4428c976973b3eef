#include "cuda/host/compiler.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <system_error>

#include "core/cache_folder.h"
#include "core/error.h"

namespace akunu::cuda {

namespace {

namespace fs = std::filesystem;

using nvrtcProgram = struct nvrtcProgram_st*;

struct Nvrtc {
    int (*version)(int*, int*);
    int (*create)(nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*);
    int (*compile)(nvrtcProgram, int, const char* const*);
    int (*log_size)(nvrtcProgram, std::size_t*);
    int (*log)(nvrtcProgram, char*);
    int (*cubin_size)(nvrtcProgram, std::size_t*);
    int (*cubin)(nvrtcProgram, char*);
    int (*ptx_size)(nvrtcProgram, std::size_t*);
    int (*ptx)(nvrtcProgram, char*);
    int (*destroy)(nvrtcProgram*);
    int (*set_flow_callback)(nvrtcProgram, int (*)(void*, void*), void*);  // null before 12.8
};
constexpr int kCancelled = 16;

// Beside the package, where pip puts the wheel nvidia-cuda-nvrtc; then where the system looks.
void* open_library() {
    if (const char* named = std::getenv("AKUNU_NVRTC")) return dlopen(named, RTLD_LAZY | RTLD_LOCAL);
    Dl_info self;
    if (dladdr(reinterpret_cast<const void*>(&open_library), &self) && self.dli_fname) {
        const fs::path packages = fs::path(self.dli_fname).parent_path().parent_path();
        for (const char* path : {"nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"}) {
            if (void* l = dlopen((packages / path).c_str(), RTLD_LAZY | RTLD_LOCAL)) return l;
        }
    }
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"}) {
        if (void* l = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return l;
    }
    return nullptr;
}

template <typename F>
void find_in(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (!function) throw DeviceError(std::string("NVRTC has no ") + name + ": a version from 12.0 on is needed");
}

const Nvrtc& nvrtc() {
    static const Nvrtc found = [] {
        void* library = open_library();
        if (!library) {
            throw DeviceError("NVRTC, which compiles the GPU's kernels, is not installed: pip install 'akunu[cuda]'");
        }
        Nvrtc n;
        find_in(library, "nvrtcVersion", n.version);
        find_in(library, "nvrtcCreateProgram", n.create);
        find_in(library, "nvrtcCompileProgram", n.compile);
        find_in(library, "nvrtcGetProgramLogSize", n.log_size);
        find_in(library, "nvrtcGetProgramLog", n.log);
        find_in(library, "nvrtcGetCUBINSize", n.cubin_size);
        find_in(library, "nvrtcGetCUBIN", n.cubin);
        find_in(library, "nvrtcGetPTXSize", n.ptx_size);
        find_in(library, "nvrtcGetPTX", n.ptx);
        find_in(library, "nvrtcDestroyProgram", n.destroy);
        n.set_flow_callback = reinterpret_cast<decltype(n.set_flow_callback)>(dlsym(library, "nvrtcSetFlowCallback"));
        return n;
    }();
    return found;
}

// Nothing where it was cancelled.
std::vector<char> compiled(const std::string& source, const std::string& arch, bool lines,
                           std::atomic<bool>& cancelled) {
    const Nvrtc& n = nvrtc();
    nvrtcProgram program = nullptr;
    // NVRTC has no standard headers.
    const char* header = "namespace std { using uint32_t = unsigned int; }";
    const char* header_name = "cstdint";
    if (n.create(&program, source.c_str(), "interpreter.cu", 1, &header, &header_name) != 0) {
        throw DeviceError("NVRTC did not take the kernels' text");
    }
    const struct Destroy {
        const Nvrtc& n;
        nvrtcProgram* program;
        ~Destroy() { n.destroy(program); }
    } destroy{n, &program};
    const std::string target = "-arch=" + arch;
    std::vector<const char*> options{target.c_str(), "-std=c++17", "-default-device"};
    if (lines) options.push_back("-lineinfo");
    std::size_t size = 0;
    if (n.set_flow_callback) {
        const auto asked = [](void* flag, void*) { return static_cast<std::atomic<bool>*>(flag)->load() ? 1 : 0; };
        n.set_flow_callback(program, asked, &cancelled);
    }
    const int result = n.compile(program, static_cast<int>(options.size()), options.data());
    if (result == kCancelled && cancelled) return {};
    if (result != 0) {
        n.log_size(program, &size);
        std::string log(size, '\0');
        n.log(program, log.data());
        throw DeviceError("NVRTC could not compile the kernels for " + arch + ": " + log);
    }
    // Of an architecture that is not a GPU's own the driver makes the machine code.
    const bool ptx = arch.starts_with("compute_");
    std::vector<char> code;
    if ((ptx ? n.ptx_size : n.cubin_size)(program, &size) == 0) {
        code.resize(size);
        if ((ptx ? n.ptx : n.cubin)(program, code.data()) == 0) return code;
    }
    throw DeviceError("NVRTC made no machine code for " + arch);
}

// The same in a thread of its own, while the one that called looks whether to go on.
std::vector<char> compiled(const std::string& source, const std::string& arch, bool lines, const Poll& poll) {
    constexpr auto kInterval = std::chrono::milliseconds(100);
    std::atomic<bool> cancelled{false};
    auto result = std::async(std::launch::async, [&] { return compiled(source, arch, lines, cancelled); });
    try {
        while (!cancelled && result.wait_for(kInterval) != std::future_status::ready) cancelled = poll && poll();
    } catch (...) {
        cancelled = true;  // and `result` waits for its end
        throw;
    }
    return result.get();
}

// Whole or not at all, for other processes too; a cache that cannot be written is none.
void write_atomically(const fs::path& path, const std::vector<char>& bytes) {
    std::error_code ignored;
    fs::create_directories(path.parent_path(), ignored);
    const fs::path part = path.string() + "." + std::to_string(getpid()) + ".part";
    std::ofstream out(part, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (out) {
        fs::rename(part, path, ignored);
    } else {
        fs::remove(part, ignored);
    }
}

}  // namespace

bool has_compiler(std::string& why) {
    try {
        nvrtc();
        return true;
    } catch (const DeviceError& e) {
        why = e.what();
        return false;
    }
}

std::vector<char> compile_kernels(const std::string& source, const std::string& arch, int driver_version, bool lines,
                                  const Poll& poll) {
    int major = 0, minor = 0;
    nvrtc().version(&major, &minor);
    const std::string versions =
        std::to_string(major) + "." + std::to_string(minor) + "-" + std::to_string(driver_version);
    const fs::path folder = cache_folder();
    const std::string_view made_of[] = {versions, source};
    const fs::path path = folder / "cuda" / (arch + "-" + name_of_contents(made_of) + ".cubin");
    if (!folder.empty()) {
        std::ifstream in(path, std::ios::binary | std::ios::ate);
        std::vector<char> cached(in ? static_cast<std::size_t>(in.tellg()) : 0);
        in.seekg(0).read(cached.data(), static_cast<std::streamsize>(cached.size()));
        if (in && !cached.empty()) return cached;
    }
    std::vector<char> cubin = compiled(source, arch, lines, poll);
    if (!folder.empty() && !cubin.empty()) write_atomically(path, cubin);
    return cubin;
}

}  // namespace akunu::cuda
