#include "executor_library.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>

#include "control.h"

// Set by the build: this folder's parent, and where the libraries are.
#if !defined(EMULATOR_ROOT) || !defined(EMULATOR_BUILD)
#error "EMULATOR_ROOT and EMULATOR_BUILD are set by CMakeLists.txt"
#endif

namespace fakemetal {
const Executor& executor() {
    static const Executor e = [] {
        const std::string suffix = sanitizer().empty() ? "" : "_" + sanitizer();
        const std::string path = EMULATOR_BUILD "/libmsl_runtime" + suffix + ".so";
        void* h = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
        if (!h) {
            fprintf(stderr, "Metal emulator: %s\n", dlerror());
            abort();
        }
        const auto get = [h](const char* name) { return dlsym(h, name); };
        return Executor{reinterpret_cast<decltype(&msl_dispatch)>(get("msl_dispatch")),
                        reinterpret_cast<decltype(&msl_specialize)>(get("msl_specialize")),
                        reinterpret_cast<decltype(&msl_guarded_alloc)>(get("msl_guarded_alloc")),
                        reinterpret_cast<decltype(&msl_guarded_check)>(get("msl_guarded_check")),
                        reinterpret_cast<decltype(&msl_guarded_free)>(get("msl_guarded_free")),
                        reinterpret_cast<void (*)(void*)>(get("msl_sync_acquire")),
                        reinterpret_cast<void (*)(void*)>(get("msl_sync_release"))};
    }();
    return e;
}

std::string shell_quote(const std::string& s) {
    std::string out = "'";
    for (char c : s) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

namespace {
std::string read_all(FILE* f) {
    std::string out;
    char b[4096];
    for (size_t n; (n = fread(b, 1, sizeof b, f)) > 0;) out.append(b, n);
    return out;
}

std::string run_compiler(const CompileRequest& request, std::string& error) {
    // The source's name is its content: sanitizer reports then name a file that exists.
    const auto directory = std::filesystem::path(EMULATOR_BUILD) / "kernels";
    std::filesystem::create_directories(directory);
    char name[40];
    snprintf(name, sizeof name, "library-%016zx", std::hash<std::string>()(request.source));
    const auto source = directory / (std::string(name) + ".metal");
    if (!std::filesystem::exists(source)) {
        const auto temporary = directory / (std::string(name) + "." + std::to_string(getpid()));
        std::ofstream(temporary) << request.source;
        std::filesystem::rename(temporary, source);
    }
    const char* python = getenv("AKUNU_PYTHON");
    const std::string log = (directory / (std::string(name) + "." + std::to_string(getpid()) + ".log")).string();
    // A sanitizer's runtime preloaded into this process must not slow the compiler down.
    const std::string command = "env -u LD_PRELOAD " + shell_quote(python ? python : "python3") + " " +
                                shell_quote(EMULATOR_ROOT "/compiler.py") + " library " + shell_quote(source.string()) +
                                " --runtime-dir " + shell_quote(EMULATOR_BUILD) +
                                (sanitizer().empty() ? "" : " --sanitizer " + sanitizer()) + " " + request.arguments +
                                " 2> " + shell_quote(log);
    FILE* pipe = popen(command.c_str(), "r");
    const std::string path = pipe ? read_all(pipe) : "";
    const int status = pipe ? pclose(pipe) : -1;
    if (status != 0) {
        std::ifstream in(log);
        error.assign(std::istreambuf_iterator<char>(in), {});
        if (error.empty()) error = "cannot run the kernel compiler: " + command;
    }
    std::filesystem::remove(log);
    return status == 0 ? path : "";
}
}  // namespace

std::string compile(const CompileRequest& request, std::string& error) {
    // A process asks for the same text once per device: starting the compiler takes longer than most tests.
    static std::mutex mutex;
    static auto* compiled = new std::map<std::string, std::string>;
    const std::lock_guard lock(mutex);
    std::string& path = (*compiled)[request.arguments + "\n" + request.source];
    if (path.empty()) path = run_compiler(request, error);
    return path;
}

const mslrt::LibraryDesc* load(const std::string& path, std::string& error) {
    executor();
    void* h = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto* d = h ? static_cast<const mslrt::LibraryDesc*>(dlsym(h, "msl_library")) : nullptr;
    if (!d || d->abi != mslrt::kAbi) {
        error = h ? path + ": not a kernel library of this emulator" : dlerror();
        return nullptr;
    }
    return d;
}
}  // namespace fakemetal
