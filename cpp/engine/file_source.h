// Weights from the files of a model, whatever their format.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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
};

class FileSource final : public WeightSource {
  public:
    // `refs` by canonical name. ModelFileError when a tensor is missing or does not hold the rows, UnsupportedError
    // when its type cannot be a weight. `check`: float weights are looked through for NaN and infinities.
    FileSource(std::shared_ptr<const TensorFiles> files, const std::map<std::string, TensorRef>& refs,
               bool check = true);

    bool has(const std::string& name) const override { return parts_.contains(name); }
    // ModelFileError when a float weight that is checked holds NaN or an infinity.
    HostTensor get(const std::string& name) override;
    void done(const std::string& name) override;
    std::uint64_t total_bytes() const override;

  private:
    struct Part {
        const TensorEntry* entry;
        std::uint64_t rows, cols;
        std::uint64_t offset, bytes;  // in the tensor
        float add;
    };
    const Part& part(const std::string& name) const;

    std::shared_ptr<const TensorFiles> files_;
    bool check_;
    std::map<std::string, Part> parts_;
    std::map<std::string, std::vector<float>> copies_;  // what does not lie in the file as it is used
};

}  // namespace akunu
