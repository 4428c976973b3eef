// Where a model's weights come from.
#pragma once

#include <string>

#include "core/device.h"

namespace akunu {

class WeightSource {
  public:
    virtual ~WeightSource() = default;
    virtual bool has(const std::string& name) const = 0;
    // The tensor's bytes, valid until `done(name)`, or for the source's lifetime when they lie in a `mapping`.
    virtual HostTensor get(const std::string& name) = 0;
    // Whether these bytes are those of a mapped file, and so stay as long as the source does.
    virtual bool in_place(const std::string& /*name*/) const { return false; }
    // The bytes will not be read again.
    virtual void done(const std::string& name) = 0;
    virtual std::uint64_t total_bytes() const = 0;
    // Throws ModelFileError where a file that bytes are used from was cut since.
    virtual void check_files() const {}
};

}  // namespace akunu
