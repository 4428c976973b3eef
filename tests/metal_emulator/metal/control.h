// Settings and counters of the fake device.  The C functions are for tests: from C++, or by ctypes.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

namespace fakemetal {

/// One setting; the table in control.cpp gives names, defaults and meanings.
enum Setting {
    kSeed,
    kSchedule,
    kWorkers,
    kDelayMicroseconds,
    kNoop,
    kHazards,
    kPoisonBuffers,
    kFailCommandBuffer,
    kFailCommandBufferCode,
    kFailSignals,
    kFailAllocation,
    kAllocationLimit,
    kGpuCores,
    kAppleFamily,
    kWorkingSet,
    kMaxBufferLength,
    kPageSize,
    kGpuUs,
    kSettings
};
enum Counter {
    kDispatches,
    kCommandBuffers,
    kEncoders,
    kBuffers,
    kAllocatedBytes,
    kFaults,
    kSetBuffer,
    kSetBytes,
    kBarriers,
    kPipelines,
    kLibraries,
    kArchiveHits,
    kResident,
    kResidencyRequests,
    kResidencySets,
    kNotResident,
    kCounters
};
int64_t setting(Setting s);
/// Counts down a fault injection: true when this is the call that must fail.
bool fault_due(Setting s);
std::string device_name();
void add(Counter c, int64_t n = 1);
int64_t counter(Counter c);
/// "plain", "asan" or "tsan": how kernels are compiled (AKUNU_METAL_EMULATOR_SANITIZER).
const std::string& sanitizer();
/// What Metal's API validation does with misuse: names it on stderr and aborts.
[[noreturn]] void invalid(const std::string& message);
}  // namespace fakemetal

extern "C" {
/// 0, or -1 for an unknown name.
int metal_emulator_set(const char* name, int64_t value);
int metal_emulator_set_device_name(const char* name);
/// Of a setting or a counter; -1 for an unknown name.  "live_objects": Objective-C objects alive.
int64_t metal_emulator_get(const char* name);
/// The messages of failed command buffers since the last call; empty when there were none.
const char* metal_emulator_take_faults();
/// Prints the live objects by class to stderr.
void metal_emulator_print_live();
/// Waits until all queues are idle and their completion handlers have run.
void metal_emulator_drain();
}
