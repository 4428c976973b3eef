// Weights that are quantised when they are asked for.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/weight_source.h"

namespace akunu {

class QuantizingSource final : public WeightSource {
  public:
    // `types` by the names of `source`; what is not among them stays as it is. `threads`: 0 for all.
    QuantizingSource(std::shared_ptr<WeightSource> source, std::map<std::string, DType> types, int threads);

    bool has(const std::string& name) const override { return source_->has(name); }
    // Throws as `quantize_rows` does.
    HostTensor get(const std::string& name) override;
    void done(const std::string& name) override;
    std::uint64_t total_bytes() const override { return source_->total_bytes(); }
    void check_files() const override { source_->check_files(); }

  private:
    std::shared_ptr<WeightSource> source_;
    std::map<std::string, DType> types_;
    int threads_;
    std::map<std::string, std::vector<std::byte>> made_;
};

}  // namespace akunu
