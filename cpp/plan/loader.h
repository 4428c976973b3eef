// Loader: a model's tensors, from their source onto a device. It owns the memory that they take.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/model.h"
#include "core/weight_source.h"

namespace akunu {

// Called with (done, total) bytes while loading, and with what is being done where that is something else than to load
// weights, as a Report is; throws to abandon.
using Progress = std::function<void(std::uint64_t, std::uint64_t, std::string_view)>;

// A matrix that rows are multiplied with, which an adapter may change.
struct Linear {
    std::string name;
    std::uint32_t rows = 0, cols = 0;
};

class Loader {
  public:
    // `whole`: all weights are `Whole::kSequences`.
    // `paged`: experts stay in their file, `needed`: where they cannot, that is an error.
    Loader(Device& device, WeightSource& source, const Progress& progress, bool whole, bool paged = false,
           bool needed = false);

    bool has(const std::string& name) const { return source_.has(name); }
    // A matmul's weight [rows, cols], in the device's own layout. Throws ModelFileError unless the tensor has that
    // shape. `whole`: this one is `Whole::kSequences`. `<name>_input_min` and `_max`, and the same of `_output`, are
    // its bounds, where there are some. `split`: it is this GPU's part of the matrix, of which all GPUs together have
    // so many times the rows or columns.
    Weight matmul(const std::string& name, std::uint64_t rows, std::uint64_t cols, bool whole = false,
                  Split split = Split::kNone);
    // A matmul's weight in F32, whatever floats or blocks the file has.
    Weight wide(const std::string& name, std::uint64_t rows, std::uint64_t cols);
    // The weights of experts [count, rows, cols].
    Weight experts(const std::string& name, std::uint64_t count, std::uint64_t rows, std::uint64_t cols);
    // The weights of clusters [order.size() / of a cluster's rows, rows, cols]: rows of a weight in another order.
    Weight clusters(const std::string& name, std::span<const std::uint32_t> order, std::uint64_t count,
                    std::uint64_t cols);
    // The weights of heads, [count, rows, cols], each of which is multiplied with what is the head's own.
    Weight heads(const std::string& name, std::uint64_t count, std::uint64_t rows, std::uint64_t cols);
    // Two weights of a tensor that has keys and values of heads, [count, key_rows + value_rows, cols]: those that take
    // a query to it, [count, cols, key_rows], and those of the values, [count, value_rows, cols].
    std::pair<Weight, Weight> keys_and_values(const std::string& name, std::uint64_t count, std::uint64_t key_rows,
                                              std::uint64_t value_rows, std::uint64_t cols);
    // A matmul's weight whose rows are tensors of their own: `<name>.0`, `<name>.1`, ...
    Weight stacked(const std::string& name, std::uint64_t rows, std::uint64_t cols);
    // The rows [first, first + n) of a weight [rows, cols].
    Weight part_of_rows(const std::string& name, std::uint64_t rows, std::uint64_t cols, std::uint64_t first,
                        std::uint64_t n);
    // The columns [first, first + n) of a weight [rows, cols].
    Weight columns(const std::string& name, std::uint64_t rows, std::uint64_t cols, std::uint64_t first,
                   std::uint64_t n);
    // A weight that is read by rows only, in place.
    Weight lookup(const std::string& name, std::uint64_t rows, std::uint64_t cols);
    Vector vector(const std::string& name, std::uint64_t n);
    // What is added to a sum that several GPUs make: the first one has it, the others zeros.
    Vector added_once(const std::string& name, std::uint64_t n, bool split);
    // A norm's weight, and `<name>_bias` where there is one, times `scale`.
    Norm norm(const std::string& name, std::uint64_t n, float scale = 1);
    Norm optional_norm(const std::string& name, std::uint64_t n) { return has(name) ? norm(name, n) : Norm{}; }
    Vector optional_vector(const std::string& name, std::uint64_t n, bool split = false) {
        return has(name) ? joined({{name, n, false, split}}) : Vector{};
    }

    // A convolution's weight [out, taps·in]; in the file, `taps_last`, it is [out, in, taps].
    Weight convolution(const std::string& name, std::uint64_t out, std::uint64_t in, std::uint64_t taps,
                       bool taps_last);

    // A convolution's weight of one channel at a time, [channels, taps], as f32 [taps][channels]; `bias` stands behind
    // it, where there is one.
    Vector depthwise(const std::string& name, std::uint64_t channels, std::uint64_t taps, const std::string& bias = {});

    // Vectors of one buffer, side by side; all of them are there, or none, but for those that may be zeros.
    struct JoinedVector {
        std::string name;
        std::uint64_t n;
        bool may_lack = false;
        bool split = false;  // n are this GPU's; all together have so many times as many
    };
    Vector joined(std::initializer_list<JoinedVector> parts);

    // A vector's values, for the host.
    std::vector<float> values(const std::string& name, std::uint64_t n);
    // The same of integers, each of which is less than n and once there.
    std::vector<std::uint32_t> order(const std::string& name, std::uint64_t n);
    // Values that are in no file.
    Vector computed(std::span<const float> values) { return uploaded(std::as_bytes(values)); }
    Vector computed(std::span<const std::uint32_t> values) { return uploaded(std::as_bytes(values)); }
    // Computed values as a matmul's weight.
    Weight computed(std::span<const float> values, std::uint64_t rows, std::uint64_t cols);

    // What `matmul` has loaded so far.
    const std::vector<Linear>& linears() const { return linears_; }

    // All has been loaded.
    void finish() const;

    std::uint64_t owned_bytes() const { return owned_bytes_; }
    std::uint64_t mapped_bytes() const { return mapped_bytes_; }
    std::vector<DeviceBuffer> take_memory() { return std::move(owned_); }

  private:
    HostTensor tensor(const std::string& name, std::uint64_t rows, std::uint64_t cols, Split split = Split::kNone);
    Bounds bounds(const std::string& name);
    Weight matrix(const std::string& name, std::uint64_t rows, std::uint64_t cols, bool whole,
                  Split split = Split::kNone);
    Weight prepared(HostTensor tensor);
    Vector uploaded(std::span<const std::byte> bytes);
    // One of each GPU.
    Vector uploaded(std::span<const std::vector<float>> of_cards);
    // `count` equal parts of the tensor's rows, each a matrix.
    Weight parted(const HostTensor& tensors, std::uint64_t count, bool paged = false);
    // Owns what the device made of the tensor, where that is not the tensor itself.
    Weight kept(const Weight& weight, const HostTensor& tensor);
    void loaded(std::uint64_t bytes);

    Device& device_;
    WeightSource& source_;
    const Progress& progress_;
    const bool whole_, paged_, needed_;
    const std::uint64_t total_;
    std::uint64_t done_ = 0, owned_bytes_ = 0, mapped_bytes_ = 0;
    std::vector<DeviceBuffer> owned_;
    std::vector<Linear> linears_;
};

// The part of a joined vector that begins `skip` floats in and has n floats.
inline Vector part_of(const Vector& v, std::uint64_t skip, std::uint64_t n) {
    if (!v) return {};
    return {v.buffer, v.offset + skip * sizeof(float), n * sizeof(float)};
}

}  // namespace akunu
