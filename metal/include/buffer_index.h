// Where a kernel finds what a command gives it besides its buffers: shared by the host and by kernels.
#pragma once

#ifndef __METAL_VERSION__
#include <cstdint>
namespace akunu::metal {
enum BufferIndex : std::uint32_t {
#else
enum BufferIndex : uint {
#endif
    // A command's buffers stand before these, in the table's order.
    kParamsIndex = 12,   // the command's parameters, patched
    kScratchIndex = 13,  // memory between the passes of one command
};

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#endif
