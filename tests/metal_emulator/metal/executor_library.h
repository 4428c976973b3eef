// The executor (libmsl_runtime*.so), loaded in the variant the process asks for, and kernel libraries.
#pragma once
#include <string>

#include "../runtime/msl_runtime.h"

namespace fakemetal {

struct Executor {
    decltype(&msl_dispatch) dispatch;
    decltype(&msl_specialize) specialize;
    decltype(&msl_guarded_alloc) alloc;
    decltype(&msl_guarded_check) check;
    decltype(&msl_guarded_free) free;
    void (*sync_acquire)(void*);
    void (*sync_release)(void*);
};
const Executor& executor();

struct CompileRequest {
    std::string source;
    std::string arguments;  // of compiler.py, shell-quoted
};
/// Path of the kernel library, or an empty string with the diagnostics in error.
std::string compile(const CompileRequest& request, std::string& error);
/// Loads a kernel library; nullptr with a message in error.
const mslrt::LibraryDesc* load(const std::string& path, std::string& error);
std::string shell_quote(const std::string& s);
}  // namespace fakemetal
