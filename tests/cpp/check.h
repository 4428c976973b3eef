// What the drivers of this folder share: a check that says where it failed, and ends the program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace akunu::test {

inline void check(bool ok, const char* what, const std::source_location& at = std::source_location::current()) {
    if (ok) return;
    std::fprintf(stderr, "%s:%u: failed: %s\n", at.file_name(), static_cast<unsigned>(at.line()), what);
    std::exit(1);
}

template <typename Exception, typename F>
void check_throws(F&& f, const char* what, const std::source_location& at = std::source_location::current()) {
    try {
        f();
    } catch (const Exception&) {
        return;
    }
    check(false, what, at);
}

}  // namespace akunu::test
