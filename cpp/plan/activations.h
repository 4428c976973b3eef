// Activations: the buffers between a table's commands, by name. Blocks reserve what they need; all blocks that use a
// name share one buffer, as wide as the widest, and names that no table needs at the same time share memory.
//
// Commands refer to an activation by a buffer that stands for it; `bind` puts its memory in the place of that, so that
// a table's barriers and lifetimes are those of names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/device.h"
#include "plan/lifetimes.h"

namespace akunu {

// Where an activation lives: as f32, and in the compact format that the device's matmuls read (q8 or f16). Kernels
// write those that their `formats` name.
struct Act {
    Binding f32, compact;
    // What its rows are, where its user has said it: their elements, the floats from one to the next, and how many of
    // them there are for each row of the step.
    std::uint32_t dim = 0, stride = 0, times = 1;
    const Binding& in(std::uint32_t format) const { return format == kActF32 ? f32 : compact; }
    // This f32 activation with each row as n rows. Throws Error where it cannot be divided so.
    Act divided(std::uint32_t n) const;
    // The elements [first, first + n) of each f32 row.
    Act columns(std::uint32_t first, std::uint32_t n) const;
};
// Rows of so many elements, one behind the other.
Act rows_in(const Binding& f32, std::uint32_t dim);

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
    // What is reserved has a size, for tables of up to `rows` rows, always as many, and can be named in tables. Throws
    // InvalidArgumentError on overflow.
    void measure(const Device& device, std::uint64_t rows);
    // Adds a table's needs to what is known of the activations that it names.
    void add_lifetimes(const DispatchTable& table, Lifetimes& lifetimes) const;
    // Makes memory for what has none yet, and returns its bytes. What `lifetimes` says are not needed at a time share
    // it; without any, each has its own.
    std::uint64_t allocate(Device& device, const Lifetimes* lifetimes = nullptr);
    // Whether some two do.
    bool shares() const;
    // Bytes of all that has memory, if each had its own.
    std::uint64_t bytes_apart() const;
    // Gives the commands the memory of the activations that they name, once there is some. Throws Error where the table
    // needs two at a time that share it.
    void bind(DispatchTable& table) const;

    bool has(const std::string& name) const { return acts_.contains(name); }
    const Act& act(const std::string& name) const { return acts_.at(name); }
    const Binding& f32(const std::string& name) const { return acts_.at(name).f32; }
    // For uploads and downloads: the memory of its f32.
    Binding memory(const std::string& name) const;
    // All formats that it was reserved in.
    std::uint32_t formats(const std::string& name) const { return needs_.at(name).formats; }
    std::uint64_t rows() const { return rows_; }

  private:
    struct Need {
        std::uint64_t dim = 0, bytes = 0, per_row = 1, rows_of_one = 1;
        std::uint32_t formats = 0;
    };
    // Where it has memory, and the number of those that share it.
    struct Memory {
        std::uint64_t bytes = 0;
        bool apart = false;  // what a device keeps there it may count on later
        Buffer buffer;
        std::size_t shared = 0;
    };
    Binding add_part(const ActivationKey& part, std::uint64_t bytes, bool apart);
    const ActivationKey* part_of(const Binding& binding) const;

    std::uint64_t rows_ = 0;
    bool wide_ = false;
    std::map<std::string, Need> needs_;
    std::map<std::string, Act> acts_;
    std::map<ActivationKey, Memory> parts_;
    std::map<const void*, const ActivationKey*> handles_;  // of the buffers that stand for parts
    std::vector<DeviceBuffer> owned_;
};

}  // namespace akunu
