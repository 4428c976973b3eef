#include "control.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>

#include "queue.h"

extern "C" {
long objcrt_live_objects();
void objcrt_print_live();
}

namespace fakemetal {
namespace {
struct Row {
    const char* name;
    int64_t initial;
};
// Initial values may be given as AKUNU_METAL_EMULATOR="seed=3,schedule=1".
constexpr Row kSettingRows[kSettings] = {
    {"seed", 0},                       // of the schedule
    {"schedule", 0},                   // 0 in order, 1 random priorities, 2 uniformly random
    {"workers", 0},                    // OS threads per dispatch; 0: one per core
    {"delay_us", 0},                   // sleep before each command buffer: a missing wait shows for sure
    {"noop", 0},                       // 1: encoders do nothing; measures the host's own encode cost
    {"hazards", 1},                    // concurrent encoders: 0 off, 1 same binding, 2 overlapping ranges
    {"poison_buffers", 0},             // 1: new buffers are 0xFF; 0: zeros, as Metal documents
    {"fail_command_buffer", 0},        // n: the n-th command buffer executed from now fails
    {"fail_command_buffer_code", 1},   // with this MTLCommandBufferError
    {"fail_signals", 0},               // 1: what fails so is executed all the same, signals included
    {"fail_allocation", 0},            // n: the n-th buffer allocated from now is nil
    {"allocation_limit", 0},           // bytes of all buffers; beyond it allocations are nil; 0: none
    {"gpu_cores", 10},                 // answered to the IOKit query
    {"apple_family", 9},               // supportsFamily: up to Apple<n>
    {"working_set", 8ll << 30},        // recommendedMaxWorkingSetSize
    {"max_buffer_length", 6ll << 30},  // three quarters of it, as on Apple silicon
    {"page_size", 4096},               // newBufferWithBytesNoCopy's alignment; 16384 on Apple silicon
    {"gpu_us", 0},                     // that each command buffer says it took; 0: as long as it did
};
constexpr const char* kCounterNames[kCounters] = {"dispatches",         "command_buffers", "encoders",   "buffers",
                                                  "allocated_bytes",    "faults",          "set_buffer", "set_bytes",
                                                  "barriers",           "pipelines",       "libraries",  "archive_hits",
                                                  "resident",  // buffers of sets whose residency is requested
                                                  "residency_requests",
                                                  "residency_sets",  // that queues have
                                                  "not_resident"};   // uses of other buffers
std::atomic<int64_t> g_counters[kCounters];

int find(const char* name) {
    for (int i = 0; i < kSettings; ++i)
        if (!strcmp(kSettingRows[i].name, name)) return i;
    return -1;
}
struct State {
    std::atomic<int64_t> value[kSettings];
    std::mutex mutex;
    std::string name = "Apple M4 (emulated)";
    State() {
        for (int i = 0; i < kSettings; ++i) value[i] = kSettingRows[i].initial;
        const char* env = getenv("AKUNU_METAL_EMULATOR");
        std::istringstream in(env ? env : "");
        for (std::string item; std::getline(in, item, ',');) {
            const size_t eq = item.find('=');
            const int i = find(item.substr(0, eq).c_str());
            if (i < 0 || eq == std::string::npos) {
                fprintf(stderr, "AKUNU_METAL_EMULATOR: unknown setting '%s'\n", item.c_str());
                abort();
            }
            value[i] = strtoll(item.c_str() + eq + 1, nullptr, 0);
        }
    }
};
State& state() {
    static auto* s = new State;
    return *s;
}
}  // namespace

int64_t setting(Setting s) { return state().value[s].load(std::memory_order_relaxed); }
bool fault_due(Setting s) {
    auto& v = state().value[s];
    int64_t n = v.load();
    while (n > 0)
        if (v.compare_exchange_weak(n, n - 1)) return n == 1;
    return false;
}
std::string device_name() {
    std::lock_guard lock(state().mutex);
    return state().name;
}
void add(Counter c, int64_t n) { g_counters[c].fetch_add(n, std::memory_order_relaxed); }
int64_t counter(Counter c) { return g_counters[c].load(); }
const std::string& sanitizer() {
    static const std::string s =
        getenv("AKUNU_METAL_EMULATOR_SANITIZER") ? getenv("AKUNU_METAL_EMULATOR_SANITIZER") : "";
    return s;
}
void invalid(const std::string& message) {
    fprintf(stderr, "Metal validation: %s\n", message.c_str());
    abort();
}
}  // namespace fakemetal

using namespace fakemetal;
extern "C" {
int metal_emulator_set(const char* name, int64_t value) {
    const int i = find(name);
    if (i < 0) return -1;
    state().value[i] = value;
    return 0;
}
int metal_emulator_set_device_name(const char* name) {
    std::lock_guard lock(state().mutex);
    state().name = name;
    return 0;
}
int64_t metal_emulator_get(const char* name) {
    if (!strcmp(name, "live_objects")) return objcrt_live_objects();
    for (int i = 0; i < kCounters; ++i)
        if (!strcmp(kCounterNames[i], name)) return counter(static_cast<Counter>(i));
    const int i = find(name);
    return i < 0 ? -1 : state().value[i].load();
}
const char* metal_emulator_take_faults() {
    static thread_local std::string text;
    text = take_faults();
    return text.c_str();
}
void metal_emulator_print_live() { objcrt_print_live(); }
void metal_emulator_drain() { drain_queues(); }
}
