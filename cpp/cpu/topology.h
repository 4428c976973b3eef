// How many threads this process should use: physical cores that its affinity mask and cgroup quota really give it. And
// which memory is near to these.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace akunu::cpu {

// The cores, without those that are much slower than the fastest (efficiency cores): work is handed out in pieces, and
// the last piece of each step would wait for them.
int usable_cores();
std::string cpu_name();
// Bytes: the machine's, or what a control group of this process (a container's) grants of them.
std::uint64_t total_memory();

// The cores of each memory node that has processors of this process. Empty where the system names no nodes.
using NodeCores = std::map<int, int>;
NodeCores memory_nodes();
// The nodes that memory which `threads` threads share is spread over: none where the cores of one are enough.
std::vector<int> shared_nodes(const NodeCores& nodes, int threads);

// Linux: of the processors `cpus`, by the files below `root`/sys.
int fast_cores(const std::string& root, const std::vector<int>& cpus);
NodeCores memory_nodes(const std::string& root, const std::vector<int>& cpus);
// How many of `cores` a quota of `cpus` processors keeps busy; 0 is no quota.
int cores_within(int cores, double cpus);

}  // namespace akunu::cpu
