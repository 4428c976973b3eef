#include "core/take_weight.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/recode.h"

namespace akunu {

namespace {

// A tensor as the type that its own becomes, taken apart where that one is planar. Without `read` it has only its size.
class Recoded {
  public:
    Recoded(const HostTensor& from, bool read) : tensor_(from) {
        const DTypeInfo& to = dtype_info(recoded_type(from.dtype));
        const std::uint64_t row = row_bytes(to.id, from.cols), blocks = row / to.block_bytes;
        const std::uint64_t sizes[3] = {to.planar() ? to.planes.codes : to.block_bytes, to.planes.scales,
                                        to.planes.biases};
        for (std::size_t i = 0; i < 3; ++i) {
            planes_[i] = std::make_unique_for_overwrite<std::byte[]>(from.rows * blocks * sizes[i]);
        }
        const std::uint64_t from_row = row_bytes(from.dtype, from.cols);
        std::vector<std::byte> joined(row);
        for (std::uint64_t r = 0; read && r < from.rows; ++r) {
            recode_row(from.dtype, from.bytes.data() + r * from_row, joined.data(), from.cols);
            const std::byte* at = joined.data();
            for (std::uint64_t b = r * blocks; b < (r + 1) * blocks; ++b) {
                for (std::size_t i = 0; i < 3; at += sizes[i++]) {
                    std::copy_n(at, sizes[i], planes_[i].get() + b * sizes[i]);
                }
            }
        }
        const auto plane = [&](std::size_t i) { return std::span(planes_[i].get(), from.rows * blocks * sizes[i]); };
        tensor_.dtype = to.id;
        tensor_.bytes = plane(0);
        tensor_.mapping = {};
        tensor_.scales = plane(1);
        tensor_.biases = plane(2);
    }
    const HostTensor& tensor() const { return tensor_; }

  private:
    HostTensor tensor_;
    std::unique_ptr<std::byte[]> planes_[3];
};

}  // namespace

Weight take_weight(Device& device, const HostTensor& t, const std::function<Weight(const HostTensor&)>& prepare) {
    const DeviceTraits& traits = device.traits();
    const DType to = recoded_type(t.dtype);
    if (traits.recodes || to == t.dtype) return prepare(t);
    const std::string type(dtype_info(t.dtype).name);
    if (!t.factors.empty()) {
        throw UnsupportedError("device '" + device.name() + "' takes no weights of type '" + type +
                               "' that have a scale of their own; they run on the CPU");
    }
    if (levels_of(to)) {
        throw UnsupportedError("device '" + device.name() + "' has no kernels for weights of type '" + type +
                               "'; they run on the CPU, and a file of K-quants (Q2_K to Q6_K) runs on every device");
    }
    const Recoded recoded(t, traits.reads_weights);
    return prepare(recoded.tensor());
}

}  // namespace akunu
