// Weights from the files of a model, whatever their format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/weight_source.h"
#include "formats/tensor_files.h"

namespace akunu {

// Where a canonical tensor lies: `rows` x `cols` of tensor `source`, from `first_row` on. A vector (norm, bias) has one
// element a row and `cols` 0.
struct TensorRef {
    std::string source;
    std::uint64_t first_row = 0;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
    float add = 0;  // to every element: norms that a file stores less 1
    // Of a planar type: its name, and the tensors of the other planes; `source` has the codes.
    std::string dtype = {}, scales = {}, biases = {};
    // Rows, and elements of a row, that have one scale, where they are not as in the type; 0: all.
    std::optional<std::array<std::uint64_t, 2>> scale_tile = {};
};

class FileSource final : public WeightSource {
  public:
    // `refs` by canonical name. ModelFileError when a tensor is missing or does not hold the rows, UnsupportedError
    // when its type cannot be a weight. `check`: weights are looked through for NaN and infinities.
    FileSource(std::shared_ptr<const TensorFiles> files, const std::map<std::string, TensorRef>& refs,
               bool check = true);

    bool has(const std::string& name) const override { return parts_.contains(name); }
    // ModelFileError when a weight that is checked holds NaN or an infinity.
    HostTensor get(const std::string& name) override;
    void done(const std::string& name) override;
    std::uint64_t total_bytes() const override;

  private:
    // Rows of a tensor.
    struct Plane {
        const TensorEntry* entry = nullptr;
        std::uint64_t offset = 0, bytes = 0;  // in the tensor
    };
    // Scales that are to be spread: one for each tile of `rows` x `cols` elements, of which `first_row` is the first
    // row; `per_row` of them side by side.
    struct ScaleTiles {
        std::uint64_t rows, cols, first_row, per_row;
    };
    struct Part {
        DType dtype;
        std::uint64_t rows, cols;
        float add;
        std::array<Plane, 3> planes;           // as HostTensor's; those of most types are one
        std::optional<ScaleTiles> tiles = {};  // then planes[1] are all of them
        std::uint64_t bytes() const { return planes[0].bytes + planes[1].bytes + planes[2].bytes; }
    };
    const Part& part(const std::string& name) const;
    const TensorEntry& entry(const std::string& name) const;
    std::string called(const TensorEntry& tensor) const;  // with its file
    Part planar_part(const TensorRef& ref) const;
    ScaleTiles scale_tiles(const TensorRef& ref, const DTypeInfo& info, Plane& plane) const;
    std::span<const std::byte> spread_scales(const std::string& name, const Part& part);
    // The bytes, looked through for NaN and infinities as `dtype` where that is asked for.
    std::span<const std::byte> read(const Plane& plane, DType dtype) const;

    std::shared_ptr<const TensorFiles> files_;
    bool check_;
    std::map<std::string, Part> parts_;
    std::map<std::string, std::vector<float>> copies_;  // what does not lie in the file as it is used
};

}  // namespace akunu
