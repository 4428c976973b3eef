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
    // A planar type has a name, and tensors for the other planes; `source` has the codes.
    std::string dtype = {}, scales = {}, biases = {};
    // The tensor of the number that NVFP4 weights are multiplied with besides, or of a number for each expert;
    // `inverse`: its inverse.
    std::string factor = {};
    bool inverse = false;
    // Rows, and elements of a row, that have one scale, where they are not as in the type; 0: all.
    std::optional<std::array<std::uint64_t, 2>> scale_tile = {};
    // {n, period}: from the first row on, n of every `period` rows are taken, `rows` in all. Else they are one run.
    std::optional<std::array<std::uint64_t, 2>> group = {};
    // Tensors that go on where `source` ends; each gives as many rows.
    std::vector<std::string> more = {};
    // Of planar types, each one's `scales`, `biases` and `factor`.
    std::vector<std::array<std::string, 3>> more_planes = {};
    // The tensor's last two axes are exchanged: its last one counts rows.
    bool turned = false;
    // n > 0: of every n rows the second quarter and the third are exchanged.
    std::uint64_t swapped = 0;
};

class FileSource final : public WeightSource {
  public:
    // `refs` by canonical name. ModelFileError when a tensor is missing or does not hold the rows, UnsupportedError
    // when its type cannot be a weight. `check`: weights are looked through for NaN and infinities.
    FileSource(std::shared_ptr<const TensorFiles> files, const std::map<std::string, TensorRef>& refs,
               bool check = true);

    bool has(const std::string& name) const override { return weights_.contains(name); }
    // ModelFileError when a weight that is checked holds NaN or an infinity.
    HostTensor get(const std::string& name) override;
    bool in_place(const std::string& name) const override;
    void done(const std::string& name) override;
    std::uint64_t total_bytes() const override;
    // Files that are done with are not checked.
    void check_files() const override;

  private:
    // Rows of a tensor, `bytes` in all: one run, or runs of `run` bytes, each of which begins `period` bytes after the
    // one before.
    struct Plane {
        const TensorEntry* entry = nullptr;
        std::uint64_t offset = 0, bytes = 0;        // in the tensor
        std::uint64_t run = 0, period = 0;          // 0: one run
        std::vector<const TensorEntry*> more = {};  // as many rows of these follow
        std::uint64_t turned = 0;                   // n > 0: `offset` and so on are those of matrices of n rows, which
                                                    // lie on their sides
        std::uint64_t swapped = 0;                  // bytes of whose quarters the second and the third are exchanged
        bool whole() const {
            return run == 0 && swapped == 0 && more.empty() && turned == 0 && !(entry && entry->paired);
        }
        std::uint64_t total() const { return bytes * (1 + more.size()); }
    };
    // Scales that are to be spread: one for each tile of `rows` x `cols` elements, of which `first_row` is the first
    // row; `per_row` of them side by side. Of each tensor `rows_each` rows are taken, and it has `scales_each`.
    struct ScaleTiles {
        std::uint64_t rows, cols, first_row, per_row, rows_each, scales_each;
    };
    struct FileWeight {
        DType dtype;
        std::uint64_t rows, cols;
        float add;
        std::array<Plane, 3> planes;           // as HostTensor's; those of most types are one
        std::optional<ScaleTiles> tiles = {};  // then planes[1] are all of them
        std::vector<float> factors = {};       // as HostTensor's
        std::uint64_t bytes() const { return planes[0].total() + planes[1].total() + planes[2].total(); }
    };
    const FileWeight& weight(const std::string& name) const;
    const TensorEntry& entry(const std::string& name) const;
    std::string called(const TensorEntry& tensor) const;  // with its file
    FileWeight planar_weight(const TensorRef& ref) const;
    std::vector<float> factors_of(const TensorRef& ref) const;
    ScaleTiles scale_tiles(const TensorRef& ref, const DTypeInfo& info, Plane& plane) const;
    std::span<const std::byte> spread_scales(const std::string& name, const FileWeight& weight);
    // The rows of `ref` in a tensor whose rows have `stride` bytes and which has `height` of them.
    Plane plane_of(const TensorRef& ref, const TensorEntry& tensor, std::uint64_t stride, std::uint64_t height) const;
    // The bytes, looked through for NaN and infinities as `dtype` where that is asked for. What is not one run is
    // gathered into `gathered_[name]`.
    std::span<const std::byte> read(const std::string& name, const Plane& plane, DType dtype);
    // Appends the rows of a plane that lies on its side, in elements of `size` bytes.
    static void turn(std::vector<std::byte>& out, const Plane& plane, std::span<const std::byte> bytes,
                     std::size_t size, std::uint64_t row_bytes);
    std::span<const std::byte> checked(const TensorEntry& entry, std::span<const std::byte> bytes, DType dtype) const;

    std::shared_ptr<const TensorFiles> files_;
    bool check_;
    std::map<std::string, FileWeight> weights_;
    std::map<std::string, std::vector<float>> copies_;  // what does not lie in the file as it is used
    std::map<std::string, std::vector<std::vector<std::byte>>> gathered_;
    std::map<std::string, std::vector<std::shared_ptr<const void>>> held_;  // tensors that are made
    std::map<std::uint32_t, std::int64_t> used_;  // planes of each file that were given and are not done with
};

}  // namespace akunu
