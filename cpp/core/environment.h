// Settings from environment variables.
#pragma once

namespace akunu {

// The number that the environment variable `name` holds, in [0, 1e9], or `otherwise` where it is unset or empty. Any
// other text is an InvalidArgumentError that names the variable.
double environment_number(const char* name, double otherwise);

}  // namespace akunu
