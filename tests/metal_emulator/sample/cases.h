// The cases of emulator_cases: each runs in a process of its own and prints what it saw.
#pragma once
#include <functional>
#include <map>
#include <string>

namespace sample {
using Cases = std::map<std::string, std::function<void()>>;
/// API calls one by one: right use, and misuse that validation must name.
void add_usage_cases(Cases& cases);
/// Text of a kernel file beside this source.
std::string kernel_source(const std::string& name);
}  // namespace sample
