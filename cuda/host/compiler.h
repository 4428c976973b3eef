// Kernels' texts to machine code: NVRTC, found at run time, behind a cache in the user's cache folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"

namespace akunu::cuda {

// The interpreter's text, self-contained, as tools/kernel_text.py has put it into this build.
std::string_view kernel_source();

// Whether NVRTC is there; else `why` says what to do.
bool has_compiler(std::string& why);

// A GPU's machine code of `source` for `arch` ("sm_90"), or PTX ("compute_80"); with `lines` it says of which lines of
// the kernels' files it is, for tools: then the text has to be another one, too. Throws DeviceError where NVRTC is
// missing or refuses the text. The cache's key is the text, the architecture, and the versions of NVRTC and the driver.
// What is not in the cache takes half a minute, in which `poll` is called now and then: true, or what it throws, ends
// it as soon as NVRTC asks, and what is returned is empty.
std::vector<char> compile_kernels(const std::string& source, const std::string& arch, int driver_version, bool lines,
                                  const Poll& poll);

}  // namespace akunu::cuda
