// The CPU quota and the memory limit of this process' control group.
#pragma once

#include <cstdint>
#include <string>

namespace akunu::cpu {

// The first line of a file; nothing where there is none.
std::string read_line(const std::string& path);

// CPUs that the quotas of the process' control group and of those above it grant, the least of them; 0 where there is
// none. `root` stands for "/".
double cgroup_cpus(const std::string& root);

// Bytes of memory that they grant, likewise; 0 where there is no limit.
std::uint64_t cgroup_memory(const std::string& root);

}  // namespace akunu::cpu
