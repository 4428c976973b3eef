#include "guard.h"

#include <signal.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "executor.h"
#include "sanitizer.h"

namespace mslrt {
namespace {
constexpr size_t kPage = 4096, kAlign = 16;
constexpr unsigned char kSlack = 0xFE;

// ---- faults ----------------------------------------------------------------------------------

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction g_previous[3];

void on_fault(int sig, siginfo_t* info, void* context) {
    auto* e = static_cast<Executor*>(msl_worker);
    if (e && e->current)  // leaves this stack for the executor's and never comes back
        e->abandon(sig == SIGFPE ? "integer division by zero" : e->describe_fault(info->si_addr));
    int i = 0;
    while (kSignals[i] != sig) ++i;
    const struct sigaction& old = g_previous[i];
    if (old.sa_flags & SA_SIGINFO && old.sa_sigaction) return old.sa_sigaction(sig, info, context);
    if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(sig);
    signal(sig, SIG_DFL);
    raise(sig);
}

/// An alternate stack for one OS thread: a fault may be the overflow of a fiber's stack.
struct AlternateStack {
    static constexpr size_t kBytes = 64 << 10;
    std::unique_ptr<char[]> memory{new char[kBytes]};
    stack_t previous{};
    AlternateStack() {
        stack_t s{};
        s.ss_sp = memory.get();
        s.ss_size = kBytes;
        sigaltstack(&s, &previous);
    }
    ~AlternateStack() { sigaltstack(&previous, nullptr); }
};

// ---- guarded memory --------------------------------------------------------------------------

struct Region {
    char* base;  // of the mapping
    size_t mapped;
    size_t bytes;
};
std::mutex g_mutex;
std::unordered_map<void*, Region>& regions() {
    static auto* r = new std::unordered_map<void*, Region>;
    return *r;
}
}  // namespace

void install_fault_handler() {
    if (san::kAsan || san::kTsan) return;  // they report faults themselves
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction a{};
        a.sa_sigaction = on_fault;
        a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &a, &g_previous[i]);
    });
    thread_local AlternateStack stack;
    (void)stack;
}
}  // namespace mslrt

using namespace mslrt;

extern "C" void* msl_guarded_alloc(size_t bytes, int fill) {
    if (san::kAsan) {  // exact size: ASan's red zone begins at the last byte
        void* p = malloc(bytes ? bytes : 1);
        if (p) memset(p, fill, bytes);
        return p;
    }
    const size_t body = (bytes + kAlign + kPage - 1) / kPage * kPage, mapped = body + 2 * kPage;
    void* m = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED) return nullptr;
    char* base = static_cast<char*>(m);
    mprotect(base, kPage, PROT_NONE);
    mprotect(base + kPage + body, kPage, PROT_NONE);
    char* p = base + kPage + body - (bytes + kAlign - 1) / kAlign * kAlign;
    // Anonymous memory is zero already: large zeroed buffers stay untouched.
    if (fill) memset(p, fill, bytes);
    memset(p - kAlign, kSlack, kAlign);
    memset(p + bytes, kSlack, static_cast<size_t>(base + kPage + body - (p + bytes)));
    std::lock_guard<std::mutex> lock(g_mutex);
    regions()[p] = {base, mapped, bytes};
    return p;
}

extern "C" int64_t msl_guarded_check(void* block) {
    if (san::kAsan) return 0;
    Region r;
    {
        std::lock_guard<std::mutex> lock(g_mutex);
        r = regions().at(block);
    }
    const auto* p = static_cast<const unsigned char*>(block);
    const auto* end = reinterpret_cast<const unsigned char*>(r.base + r.mapped - kPage);
    for (int64_t i = -static_cast<int64_t>(kAlign); i < 0; ++i)
        if (p[i] != kSlack) return i;
    for (const auto* q = p + r.bytes; q < end; ++q)
        if (*q != kSlack) return q - p + 1;
    return 0;
}

extern "C" void msl_guarded_free(void* block) {
    if (!block) return;
    if (san::kAsan) return free(block);
    Region r;
    {
        std::lock_guard<std::mutex> lock(g_mutex);
        r = regions().at(block);
        regions().erase(block);
    }
    munmap(r.base, r.mapped);
}
