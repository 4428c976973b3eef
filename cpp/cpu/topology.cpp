#include "cpu/topology.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cpu/cgroup.h"

#ifdef __linux__
#include <sched.h>
#include <unistd.h>
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

namespace akunu::cpu {

namespace {

// Numbers of a list such as "0-3,8,10-11".
std::set<int> parse_list(const std::string& text) {
    std::set<int> found;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) {
        char* end = nullptr;
        const long first = std::strtol(part.c_str(), &end, 10);
        const long last = *end == '-' ? std::strtol(end + 1, nullptr, 10) : first;
        constexpr long kMost = 1 << 16;
        if (end == part.c_str() || first < 0 || last > kMost) continue;
        for (long i = first; i <= last; ++i) found.insert(static_cast<int>(i));
    }
    return found;
}

// A processor's hardware threads. `core_id` would not do: on Arm it repeats from cluster to cluster.
std::string core_of(const std::string& topology, int cpu) {
    for (const char* name : {"core_cpus_list", "thread_siblings_list"}) {
        const std::string threads = read_line(topology + name);
        if (!threads.empty()) return threads;
    }
    return "cpu" + std::to_string(cpu);
}

// How fast processors are, in the units of one file; 0 where it is not there. Arm has capacities, with the clock
// counted in; Intel's efficiency cores have a list, since their clock does not tell.
double speed_of(const std::string& cpu_folder) {
    for (const char* name : {"/cpu_capacity", "/cpufreq/cpuinfo_max_freq"}) {
        const double speed = std::atof(read_line(cpu_folder + name).c_str());
        if (speed > 0) return speed;
    }
    return 0;
}

}  // namespace

int fast_cores(const std::string& root, const std::vector<int>& cpus) {
    constexpr double kSlow = 0.7;  // of the fastest
    const std::string system = root + "/sys/devices/system/cpu/cpu";
    const std::set<int> atoms = parse_list(read_line(root + "/sys/devices/cpu_atom/cpus"));
    const bool all_atoms = std::ranges::all_of(cpus, [&](int cpu) { return atoms.contains(cpu); });
    std::map<std::string, double> cores;
    double fastest = 0;
    for (const int cpu : cpus) {
        if (!all_atoms && atoms.contains(cpu)) continue;
        const std::string folder = system + std::to_string(cpu);
        const double speed = speed_of(folder);
        fastest = std::max(fastest, speed);
        cores.emplace(core_of(folder + "/topology/", cpu), speed);
    }
    const auto fast = [&](const auto& core) { return core.second == 0 || core.second >= kSlow * fastest; };
    return static_cast<int>(std::ranges::count_if(cores, fast));
}

NodeCores memory_nodes(const std::string& root, const std::vector<int>& cpus) {
    const std::string folder = root + "/sys/devices/system/node/";
    NodeCores nodes;
    for (const int node : parse_list(read_line(folder + "has_memory"))) {
        const std::set<int> all = parse_list(read_line(folder + "node" + std::to_string(node) + "/cpulist"));
        std::vector<int> ours;
        std::ranges::copy_if(cpus, std::back_inserter(ours), [&](int cpu) { return all.contains(cpu); });
        if (!ours.empty()) nodes.emplace(node, fast_cores(root, ours));
    }
    return nodes;
}

std::vector<int> shared_nodes(const NodeCores& nodes, int threads) {
    const auto has_room = [&](const auto& node) { return node.second >= threads; };
    if (nodes.size() < 2 || std::ranges::any_of(nodes, has_room)) return {};
    std::vector<int> ids;
    for (const auto& [node, cores] : nodes) ids.push_back(node);
    return ids;
}

int cores_within(int cores, double cpus) {
    // Half a processor keeps a thread busy most of the time.
    return cpus > 0 ? std::min(cores, std::max(1, static_cast<int>(std::floor(cpus + 0.5)))) : cores;
}

#ifdef __linux__

namespace {

// Those that the affinity mask allows, which a cpuset narrows.
std::vector<int> allowed_processors() {
    std::vector<int> cpus;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
        }
    }
    return cpus;
}

}  // namespace

NodeCores memory_nodes() { return memory_nodes("", allowed_processors()); }

int usable_cores() {
    int cores = fast_cores("", allowed_processors());
    if (cores == 0) cores = static_cast<int>(std::thread::hardware_concurrency());
    return std::max(1, cores_within(cores, cgroup_cpus("")));
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
    const auto machine =
        static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
    const std::uint64_t granted = cgroup_memory("");
    return granted ? std::min(machine, granted) : machine;
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
    std::uint64_t n = sysctl_u64("hw.perflevel0.physicalcpu");
    if (n == 0) n = sysctl_u64("hw.physicalcpu");
    return std::max(1, static_cast<int>(n));
}

std::string cpu_name() {
    char name[128] = "CPU";
    std::size_t n = sizeof name;
    sysctlbyname("machdep.cpu.brand_string", name, &n, nullptr, 0);
    return name;
}

std::uint64_t total_memory() { return sysctl_u64("hw.memsize"); }

NodeCores memory_nodes() { return {}; }

#else
#error "Akunu runs on Linux and macOS"
#endif

}  // namespace akunu::cpu
