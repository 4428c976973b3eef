// How many threads this process should use: physical cores that its affinity mask and cgroup quota really give it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace akunu::cpu {

// The cores, without those that are much slower than the fastest (efficiency cores): work is handed out in pieces, and
// the last piece of each step would wait for them.
int usable_cores();
std::string cpu_name();
std::uint64_t total_memory();

// Linux: of the processors `cpus`, by the files below `root`/sys.
int fast_cores(const std::string& root, const std::vector<int>& cpus);
// As many of `cores` as a quota of `cpus` processors keeps busy: 0 is no quota.
int cores_within(int cores, double cpus);

}  // namespace akunu::cpu
