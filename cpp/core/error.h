// The typed errors of the core. Each becomes the Python class of the same name in akunu.errors.
// A message names the thing (tensor, key, field), what was found, what was expected and, where
// there is one, the remedy.
#pragma once

#include <stdexcept>

namespace akunu {

class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A model file is missing, truncated, damaged or inconsistent.
class ModelFileError : public Error {
  public:
    using Error::Error;
};

// A well-formed file uses a type, architecture or feature that the engine does not know.
class UnsupportedError : public Error {
  public:
    using Error::Error;
};

// A caller's argument is out of range or not supported.
class InvalidArgumentError : public Error {
  public:
    using Error::Error;
};

// A prompt does not fit the context.
class ContextLengthError : public Error {
  public:
    using Error::Error;
};

// A device is missing, out of memory, or failed.
class DeviceError : public Error {
  public:
    using Error::Error;
};

}  // namespace akunu
