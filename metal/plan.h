// What DispatchCmd::kernel points to: a command's pipelines, counts and fixed parameters. Owned by the device; commands
// that need the same share one.
#pragma once

#import "metal/memory.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "metal/geometry.h"
#include "metal/library.h"

namespace akunu::metal {

struct Plan {
    struct Step {
        __unsafe_unretained id<MTLComputePipelineState> pipeline;  // the library's
        GroupCount x, y, z;
        MTLSize threads;
    };
    std::vector<Step> steps;
    Extent extent;
    bool scratch = false;
    void* params = nullptr;  // buffer that holds the parameters; null: they are patched
    NSUInteger params_offset = 0;
    KernelChoice choice;  // what it was made from
};

class Plans {
  public:
    Plans(Memory& memory, Library& library, const Chip& chip) : memory_(memory), library_(library), chip_(chip) {}
    ~Plans();

    // UnsupportedError when there is no kernel for the command.
    const Plan* resolve(const DispatchCmd& cmd);

    // Memory that a command may use between its passes; large enough for every plan.
    void* scratch() const { return scratch_.handle; }
    std::uint64_t scratch_bytes() const { return scratch_.size; }

  private:
    // Fixed parameters lie at multiples of this; constant address space needs 32 on some GPUs.
    static constexpr std::uint64_t kSlot = 64;
    static constexpr std::uint64_t kSlotsPerBuffer = 1024;
    static_assert(kMaxParamBytes <= kSlot);
    void place_params(const DispatchCmd& cmd, Plan& plan);

    Memory& memory_;
    Library& library_;
    const Chip& chip_;
    std::map<std::string, std::unique_ptr<Plan>> plans_;
    std::vector<Buffer> params_;
    std::uint64_t slots_used_ = 0;
    Buffer scratch_;
};

}  // namespace akunu::metal
