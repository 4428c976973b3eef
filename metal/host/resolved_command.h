// What DispatchCmd::kernel points to: a command's pipelines, counts and fixed parameters. Owned by the device; commands
// that need the same share one.
#pragma once

#import "metal/host/memory.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "metal/choose/group_counts.h"
#include "metal/host/library.h"

namespace akunu::metal {

// Bytes from one command's parameters to the next one's; constant address space needs 32 on some GPUs.
constexpr std::uint64_t kParamsStride = 128;
static_assert(kMaxParamBytes <= kParamsStride);

struct ResolvedPass {
    __unsafe_unretained id<MTLComputePipelineState> pipeline;  // the library's
    GroupCount x, y, z;
    MTLSize threads;
    bool counted;  // by a pass before it: see Pass
};

struct ResolvedCommand {
    std::vector<ResolvedPass> passes;
    Extent extent;
    bool scratch = false;
    void* params = nullptr;  // buffer that holds the parameters; null: they are patched
    NSUInteger params_offset = 0;
    KernelChoice choice;  // what it was made from
};

class Resolver {
  public:
    Resolver(Memory& memory, Library& library, const Chip& chip) : memory_(memory), library_(library), chip_(chip) {}
    ~Resolver();

    // UnsupportedError when there is no kernel for the command.
    const ResolvedCommand* resolve(const DispatchCmd& cmd);

    // Memory that a command may use between its passes; large enough for every one.
    void* scratch() const { return scratch_.handle; }
    std::uint64_t scratch_bytes() const { return scratch_.size; }

  private:
    static constexpr std::uint64_t kParamsPerBuffer = 1024;
    void place_params(const DispatchCmd& cmd, ResolvedCommand& resolved);

    Memory& memory_;
    Library& library_;
    const Chip& chip_;
    std::map<std::string, std::unique_ptr<ResolvedCommand>> commands_;
    std::vector<Buffer> params_;
    std::uint64_t params_used_ = 0;
    Buffer scratch_;
};

}  // namespace akunu::metal
