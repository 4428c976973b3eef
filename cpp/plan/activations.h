// Activations: the buffers between a table's commands, by name. Blocks reserve what they need; all blocks that use a
// name share one buffer, as wide as the widest.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/device.h"

namespace akunu {

// Where an activation lives: as f32, and in the compact format that the device's matmuls read (q8 or f16). Kernels
// write those that their `formats` name.
struct Act {
    Binding f32, compact;
    const Binding& in(std::uint32_t format) const { return format == kActF32 ? f32 : compact; }
};

class Activations {
  public:
    // [rows, dim] f32.
    void reserve(const std::string& name, std::uint64_t dim) { reserve(name, dim, kActF32); }
    // [rows, dim] in those formats.
    // `per_row`: so many for each row.
    void reserve(const std::string& name, std::uint64_t dim, std::uint32_t formats, std::uint64_t per_row = 1);
    // The same, with a row for each so many of a table's.
    void reserve_merged(const std::string& name, std::uint64_t dim, std::uint32_t formats, std::uint64_t rows_of_one);
    // Memory of the device's own measure, whatever the rows.
    void reserve_bytes(const std::string& name, std::uint64_t bytes);
    // All that is reserved from now on has f32 rows, too.
    void widen() { wide_ = true; }
    bool wide() const { return wide_; }
    // Makes the buffers that are not there yet, for tables of up to `rows` rows, always as many; returns their bytes.
    // Throws InvalidArgumentError on overflow.
    std::uint64_t allocate(Device& device, std::uint64_t rows);

    bool has(const std::string& name) const { return acts_.contains(name); }
    const Act& act(const std::string& name) const { return acts_.at(name); }
    const Binding& f32(const std::string& name) const { return acts_.at(name).f32; }
    // All formats that it was reserved in.
    std::uint32_t formats(const std::string& name) const { return needs_.at(name).formats; }
    std::uint64_t rows() const { return rows_; }

  private:
    struct Need {
        std::uint64_t dim = 0, bytes = 0, per_row = 1, rows_of_one = 1;
        std::uint32_t formats = 0;
    };
    std::uint64_t rows_ = 0;
    bool wide_ = false;
    std::map<std::string, Need> needs_;
    std::map<std::string, Act> acts_;
    std::vector<DeviceBuffer> owned_;
};

}  // namespace akunu
