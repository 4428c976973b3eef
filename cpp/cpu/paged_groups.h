// What kernels ask of experts that stay in their file: see expert_pages.h. Declarations only, since kernels are
// compiled for instructions that not every processor has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace akunu::cpu {

class ExpertPages;

// Rows of a weight that a thread packs into its scratch at a time.
constexpr std::size_t kPagedRows = 128;

// Whether all groups of an expert are packed.
bool is_held(const ExpertPages& pages, std::size_t expert);
// Where groups [first, last) are, as if they followed groups 0, 1, … there: packed now, if they were not. At most
// kPagedRows rows of an expert that is not held. A thread keeps two such ranges, `half` 0 and 1.
const std::byte* groups_of(ExpertPages& pages, std::size_t expert, std::uint64_t first, std::uint64_t last, int thread,
                           int half);

}  // namespace akunu::cpu
