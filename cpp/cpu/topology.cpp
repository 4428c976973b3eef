#include "cpu/topology.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "cpu/cgroup.h"

#ifdef __linux__
#include <sched.h>
#include <unistd.h>
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

namespace akunu::cpu {

#ifdef __linux__

namespace {

std::string read_line(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    return line;
}

// Distinct physical cores in the affinity mask.
int affinity_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    std::set<std::pair<std::string, std::string>> cores;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &set)) continue;
        const std::string dir = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
        std::string core = read_line(dir + "core_id");
        if (core.empty()) core = "cpu" + std::to_string(cpu);
        cores.emplace(read_line(dir + "physical_package_id"), core);
    }
    return static_cast<int>(cores.size());
}

// `n` processors, or all of the machine when that is not known, as far as the quota goes.
int within_quota(int n) {
    if (n == 0) n = static_cast<int>(std::thread::hardware_concurrency());
    const double quota = cgroup_cpus("");
    if (quota > 0) n = std::min(n, std::max(1, static_cast<int>(std::floor(quota))));
    return std::max(n, 1);
}

}  // namespace

int usable_cores() { return within_quota(affinity_cores()); }

int usable_processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    return within_quota(sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0);
}

std::string cpu_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("model name") || line.starts_with("Model")) {
            const auto colon = line.find(": ");
            if (colon != std::string::npos) return line.substr(colon + 2);
        }
    }
    return "CPU";
}

std::uint64_t total_memory() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
}

#elif defined(__APPLE__)

namespace {

std::uint64_t sysctl_u64(const char* name) {
    std::uint64_t v = 0;
    std::size_t n = sizeof v;
    return sysctlbyname(name, &v, &n, nullptr, 0) == 0 ? v : 0;
}

}  // namespace

int usable_cores() {
    // Efficiency cores slow a statically split command down: use the performance cores.
    std::uint64_t n = sysctl_u64("hw.perflevel0.physicalcpu");
    if (n == 0) n = sysctl_u64("hw.physicalcpu");
    return std::max(1, static_cast<int>(n));
}

int usable_processors() { return std::max(1, static_cast<int>(sysctl_u64("hw.activecpu"))); }

std::string cpu_name() {
    char name[128] = "CPU";
    std::size_t n = sizeof name;
    sysctlbyname("machdep.cpu.brand_string", name, &n, nullptr, 0);
    return name;
}

std::uint64_t total_memory() { return sysctl_u64("hw.memsize"); }

#else
#error "Akunu runs on Linux and macOS"
#endif

}  // namespace akunu::cpu
