// The cores that are counted in folders laid out as Linux lays out /sys.
#include "cpu/topology.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "check.h"

namespace {

using akunu::cpu::cores_within;
using akunu::cpu::fast_cores;
using akunu::cpu::NodeCores;
using akunu::cpu::shared_nodes;
using akunu::test::check;
namespace fs = std::filesystem;

struct Machine {
    fs::path path = fs::temp_directory_path() / ("topology_test." + std::to_string(::getpid()));
    Machine() { fs::create_directories(path); }
    ~Machine() { fs::remove_all(path); }
    void write(const std::string& name, const std::string& text) const {
        fs::create_directories((path / name).parent_path());
        std::ofstream(path / name) << text << "\n";
    }
    void cpu(int n, const std::string& name, const std::string& text) const {
        write("sys/devices/system/cpu/cpu" + std::to_string(n) + "/" + name, text);
    }
    NodeCores nodes(const std::vector<int>& cpus) const { return akunu::cpu::memory_nodes(path.string(), cpus); }
    int cores(const std::vector<int>& cpus) const { return fast_cores(path.string(), cpus); }
    int cores(int n) const {
        std::vector<int> cpus(static_cast<std::size_t>(n));
        std::iota(cpus.begin(), cpus.end(), 0);
        return cores(cpus);
    }
};

void check_unknown() {
    const Machine m;
    check(m.cores(4) == 4, "without a topology every processor is a core");
    check(m.cores({}) == 0, "no processors");
}

void check_hardware_threads() {
    const Machine m;
    for (int n = 0; n < 8; ++n) {
        m.cpu(n, "topology/thread_siblings_list", std::to_string(n % 4) + "," + std::to_string(n % 4 + 4));
    }
    check(m.cores(8) == 4, "two hardware threads are a core");
    check(m.cores({0, 1, 4}) == 2, "of the processors in the mask");
}

void check_arm_clusters() {
    const Machine m;  // 4 little, 3 middle, 1 big; core_id begins at 0 in each cluster
    const int capacity[] = {250, 250, 250, 250, 760, 760, 760, 1024};
    for (int n = 0; n < 8; ++n) {
        m.cpu(n, "topology/core_id", std::to_string(n < 4 ? n : n < 7 ? n - 4 : 0));
        m.cpu(n, "topology/physical_package_id", "0");
        m.cpu(n, "topology/thread_siblings_list", std::to_string(n));
        m.cpu(n, "cpu_capacity", std::to_string(capacity[n]));
    }
    check(m.cores(8) == 4, "middle and big cores, each once");
    check(m.cores({0, 1, 2, 3}) == 4, "little ones where there are no others");
}

void check_intel_hybrid() {
    const Machine m;  // 2 performance cores of two threads, 4 efficiency cores of a similar clock
    for (int n = 0; n < 8; ++n) {
        const int first = n / 2 * 2;
        m.cpu(n, "topology/core_cpus_list",
              n < 4 ? std::to_string(first) + "-" + std::to_string(first + 1) : std::to_string(n));
        m.cpu(n, "cpufreq/cpuinfo_max_freq", n < 4 ? "5000000" : "3900000");
    }
    m.write("sys/devices/cpu_core/cpus", "0-3");
    m.write("sys/devices/cpu_atom/cpus", "4-7");
    check(m.cores(8) == 2, "the performance cores");
    check(m.cores({4, 5, 6}) == 3, "efficiency cores where there are no others");
}

void check_clocks() {
    const Machine m;
    for (int n = 0; n < 6; ++n)
        m.cpu(n, "cpufreq/cpuinfo_max_freq", n == 0 ? "5700000" : n < 4 ? "5400000" : "2000000");
    check(m.cores(6) == 4, "a favoured core does not make the others slow; half the clock does");
}

void check_memory_nodes() {
    const Machine m;  // two sockets of two cores with two hardware threads, and memory without processors
    check(m.nodes({0, 1}).empty(), "a system without nodes");
    const std::string folder = "sys/devices/system/node/";
    m.write(folder + "has_memory", "0-2");
    m.write(folder + "node0/cpulist", "0-1,4-5");
    m.write(folder + "node1/cpulist", "2-3,6-7");
    m.write(folder + "node2/cpulist", "");
    for (int n = 0; n < 8; ++n) {
        m.cpu(n, "topology/thread_siblings_list", std::to_string(n % 4) + "," + std::to_string(n % 4 + 4));
    }
    check(m.nodes({0, 1, 2, 3, 4, 5, 6, 7}) == NodeCores{{0, 2}, {1, 2}}, "the cores of each node");
    check(m.nodes({0, 1, 2, 4, 5}) == NodeCores{{0, 2}, {1, 1}}, "of the processors in the mask");
    check(m.nodes({4, 5}) == NodeCores{{0, 2}}, "a mask within one node");
    m.write(folder + "has_memory", "0");
    check(m.nodes({0, 1, 2, 3}) == NodeCores{{0, 2}}, "a node without memory");
}

void check_shared_nodes() {
    using Nodes = std::vector<int>;
    const NodeCores two{{0, 8}, {2, 8}};
    check(shared_nodes(two, 16) == Nodes{0, 2}, "threads that no node has cores for");
    check(shared_nodes(two, 9) == Nodes{0, 2}, "one thread more than a node's cores");
    check(shared_nodes(two, 8).empty(), "threads that fit one node");
    check(shared_nodes({{0, 4}}, 8).empty() && shared_nodes({}, 8).empty(), "one node, and none");
}

void check_quota() {
    check(cores_within(8, 0) == 8, "no quota");
    check(cores_within(8, 1.5) == 2, "half a processor is worth a thread");
    check(cores_within(8, 2.4) == 2, "less is not");
    check(cores_within(8, 0.2) == 1, "at least one");
    check(cores_within(2, 16) == 2, "a quota beyond the cores");
}

}  // namespace

int main() {
    check_unknown();
    check_hardware_threads();
    check_arm_clusters();
    check_intel_hybrid();
    check_clocks();
    check_memory_nodes();
    check_shared_nodes();
    check_quota();
}
