// A small compute device over Metal, written as a backend's host code would be.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sample {

struct Buffer {
    void* handle = nullptr;
    void* data = nullptr;
    size_t length = 0;
};
struct Argument {
    const Buffer* buffer;
    size_t offset;
};
struct Call {
    std::string kernel;
    std::vector<std::pair<uint32_t, uint32_t>> constants;  // index, value
    std::vector<Argument> buffers;
    std::vector<unsigned char> params;  // setBytes behind the buffers
    size_t threadgroup_memory = 0;
    size_t groups[3] = {1, 1, 1}, threads[3] = {1, 1, 1};
};

class Device {
  public:
    explicit Device(const std::string& kernel_source, bool concurrent = false);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    std::string name() const;
    int core_count() const;
    Buffer allocate(size_t bytes);
    void release(Buffer& b);

    void begin();
    void encode(const Call& call);
    void barrier();
    /// The value the shared event will have when it is done.
    uint64_t commit();
    void wait(uint64_t value);
    int completed() const;
    /// Empty, or the error of a failed command buffer.
    std::string last_error() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> p_;
};
}  // namespace sample
