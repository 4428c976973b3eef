// What keeps one command buffer behind another, beyond the order of commits: untracked buffers need it.
#pragma once
#include <cstdint>
#include <vector>

namespace fakemetal {

/// A number for a new command buffer, greater than all before it.
uint64_t next_command_buffer();
/// It was committed, behind these; it has completed.
void order_committed(uint64_t number, std::vector<uint64_t> behind);
void order_completed(uint64_t number);
/// Whether what `earlier` does is done when `later`, which is committed, begins.
bool is_ordered(uint64_t earlier, uint64_t later);

}  // namespace fakemetal
