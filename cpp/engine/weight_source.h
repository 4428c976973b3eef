// Weights that come from no file: random blocks of a real shape for benchmarks, and shapes alone for plans.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/weight_source.h"

namespace akunu {

// Random weights: `shapes` gives each canonical tensor's type, rows and columns. Blocks are valid and their values have
// about the spread of trained weights, so that every kernel does its usual work.
class SyntheticSource : public WeightSource {
  public:
    struct Shape {
        DType dtype;
        std::uint64_t rows, cols;
    };
    explicit SyntheticSource(std::map<std::string, Shape> shapes) : shapes_(std::move(shapes)) {}
    bool has(const std::string& name) const override { return shapes_.contains(name); }
    HostTensor get(const std::string& name) override;
    void done(const std::string& name) override { bytes_.erase(name); }
    std::uint64_t total_bytes() const override;

  protected:
    std::map<std::string, Shape> shapes_;

  private:
    std::map<std::string, std::vector<std::byte>> bytes_;
};

// Weights of the same shapes that are all zero and take no memory: for plans.
class ShapeSource final : public SyntheticSource {
  public:
    explicit ShapeSource(std::map<std::string, Shape> shapes);
    ~ShapeSource() override;
    ShapeSource(const ShapeSource&) = delete;
    ShapeSource& operator=(const ShapeSource&) = delete;
    HostTensor get(const std::string& name) override;

  private:
    void* zeros_;  // as many as the largest tensor has bytes
    std::uint64_t size_ = 1;
};

}  // namespace akunu
