// What every Objective-C++ file here needs: strings, error texts, pools that exceptions do not cross.
#pragma once

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

namespace akunu::metal {

inline NSString* ns_string(std::string_view s) {
    return [[NSString alloc] initWithBytes:s.data() length:s.size() encoding:NSUTF8StringEncoding];
}

inline std::string error_text(NSError* error) {
    return error ? std::string(error.localizedDescription.UTF8String) : std::string("unknown error");
}

// f() inside an autorelease pool. A C++ exception thrown out of a pool would skip its drain, so it is carried over.
template <typename F>
auto pooled(F&& f) {
    using Result = std::invoke_result_t<F>;
    std::exception_ptr error;
    if constexpr (std::is_void_v<Result>) {
        @autoreleasepool {
            try {
                f();
            } catch (...) {
                error = std::current_exception();
            }
        }
        if (error) std::rethrow_exception(error);
    } else {
        Result result{};
        @autoreleasepool {
            try {
                result = f();
            } catch (...) {
                error = std::current_exception();
            }
        }
        if (error) std::rethrow_exception(error);
        return result;
    }
}

}  // namespace akunu::metal
