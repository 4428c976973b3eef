// The 32 KB of threadgroup memory of one threadgroup, with poison and canaries.
#pragma once
#include <cstdint>
#include <string>

namespace mslrt {

/// Static variables (by the number the preprocessor gave them) and dynamic arguments (by binding
/// index).  Fresh memory is 0xFF, which reads as NaN or -1; behind every variable lie canary bytes
/// (ASan: a red zone).
class ThreadgroupMemory {
  public:
    static constexpr uint32_t kLimit = 32768, kStatic = 128, kDynamic = 31;

    ThreadgroupMemory();
    ~ThreadgroupMemory();
    ThreadgroupMemory(const ThreadgroupMemory&) = delete;
    ThreadgroupMemory& operator=(const ThreadgroupMemory&) = delete;

    /// A new kernel: forgets all variables.
    void begin_dispatch();
    /// A new threadgroup: poisons what the last one left.
    void begin_group();
    /// nullptr with a message in error when the limit is exceeded.
    void* static_variable(uint32_t id, size_t bytes, std::string& error);
    void* dynamic_argument(uint32_t index, size_t bytes, std::string& error);
    /// A message about a canary that was written over, or an empty string.
    std::string check() const;
    size_t bytes() const { return bytes_; }

  private:
    struct Block {
        char* p = nullptr;
        uint32_t size = 0, capacity = 0;
    };
    void* get(Block& b, size_t bytes, std::string& error);

    Block block_[kStatic + kDynamic];
    char* arena_ = nullptr;
    size_t used_ = 0, bytes_ = 0;
};
}  // namespace mslrt
