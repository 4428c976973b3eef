#include "core/environment.h"

#include <cstdlib>
#include <string>

#include "core/error.h"

namespace akunu {

double environment_number(const char* name, double otherwise) {
    constexpr double kMost = 1e9;
    const char* set = std::getenv(name);
    if (!set || !*set) return otherwise;
    const std::string text = set;
    char* end = nullptr;
    // Only digits and a point: strtod also takes spaces, signs, "nan", "inf" and hexadecimal numbers.
    const bool plain = text.find_first_not_of("0123456789.") == std::string::npos;
    const double value = plain ? std::strtod(set, &end) : 0;
    if (!plain || end == set || *end || value > kMost)
        throw InvalidArgumentError(std::string(name) + "='" + text + "': expected a number from 0 to 1000000000");
    return value;
}

}  // namespace akunu
