// How many threads this process should use: physical cores that its affinity mask and cgroup quota really give it.
#pragma once

#include <cstdint>
#include <string>

namespace akunu::cpu {

int usable_cores();
// Threads that can run at the same time: those cores' hardware threads.
int usable_processors();
std::string cpu_name();
std::uint64_t total_memory();

}  // namespace akunu::cpu
