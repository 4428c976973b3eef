// Device: what runs tables. A backend implements it in its own folder and registers it in engine/registry.cpp; nothing
// else names a backend.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/dispatch.h"

namespace akunu {

// How the GPUs that share a model share a matrix. What is multiplied with rows that are split gives each its part of
// the results; what is multiplied with columns that are split takes each one's part of the inputs, and the sum of all
// is the result.
enum class Split : std::uint8_t { kNone, kRows, kColumns };

// Host bytes of a weight as the file stores them: `rows` x `cols`, row-major.
struct HostTensor {
    DType dtype = DType::F32;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
    std::span<const std::byte> bytes;
    // The page-aligned mapping that `bytes` lie in, where they stay as long as the source does; else empty. Floats in
    // it are aligned to four elements.
    std::span<const std::byte> mapping = {};
    // The other planes of a planar type, whose codes `bytes` then are; each plane is row-major.
    std::span<const std::byte> scales = {}, biases = {};
    // What weights of NVFP4 are to be multiplied with: one number, or one for each expert; none is 1.
    std::span<const float> factors = {};
    Whole whole = Whole::kNone;  // what the device may make of it
    Split split = Split::kNone;  // what each of several GPUs takes of it
    std::uint64_t total_bytes() const { return bytes.size() + scales.size() + biases.size(); }
};

// What values are kept within.
struct Bounds {
    float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
    explicit operator bool() const { return std::isfinite(low) || std::isfinite(high); }
};

// A weight that the device is ready to use.
struct Weight {
    DType dtype = DType::F32;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
    std::uint64_t count = 1;  // of experts: so many such weights, one after the other, each in the same layout
    Binding data = {};
    Binding scales = {}, biases = {};  // the other planes of a planar type that is not packed
    bool packed = false;               // in the device's own layout; otherwise as in the file
    Whole whole = Whole::kNone;
    bool mapped = false;  // reads the host bytes in place: their mapping must stay, and there is nothing to release
    // Bounds of what is multiplied with it, and of the product.
    Bounds input_bounds = {}, output_bounds = {};
    std::uint32_t linear = 0;  // its place in Loader::linears, + 1; 0: no adapter can change it
    explicit operator bool() const { return rows != 0; }
    bool bounded() const { return bool(input_bounds) || bool(output_bounds); }
    std::uint64_t bytes() const { return count * rows * row_bytes(dtype, cols); }
};

// Types of q and k, and another of v.
struct MixedQkv {
    DType qk, v;
    bool operator==(const MixedQkv&) const = default;
};

// Experts that stay in their file: bytes of all of them, packed, and of those that are held; experts that steps used
// and found held, or not; bytes read for the latter, and seconds that all threads spent on that, on average.
struct PagedUse {
    std::uint64_t bytes = 0, held_bytes = 0, hits = 0, misses = 0, read_bytes = 0;
    double seconds = 0;
};

// Which matmuls take an activation function, and write y in another format than F32: those of prompts alone, or all.
enum class ActivatedMatmuls : std::uint8_t { kNone, kOfPrompts, kAll };

// What suits a device, as data. Blocks and engines read it; they never ask which device it is.
struct DeviceTraits {
    std::uint32_t cards = 1;            // GPUs that share a model: it is planned for one of them (core/model.h)
    std::uint32_t max_batch_rows = 16;  // rows of `batch` tables; 1: a prompt's tables serve them too
    std::uint32_t prompt_rows = 512;    // of a prompt's step, at most, where nobody says otherwise
    std::uint32_t encoder_rows = 256;   // that a step of an encoder is filled up to, if no sequence has more
    bool split_attention = true;        // decode attention as split + merge commands
    std::uint32_t unsplit_keys = 0;     // up to so many keys the first writes the result, and the second does nothing
    ActivatedMatmuls activated_matmuls = ActivatedMatmuls::kNone;
    bool whole_halves = false;   // F16 and BF16 weights may be `Whole::kRows`
    bool recodes = false;        // takes weights of all types, else Loader recodes some (core/recode.h)
    bool reads_weights = true;   // else only their sizes count
    bool pages_experts = false;  // takes experts that stay in their file
    bool fused_norms = false;    // decode: kNormQkv and kNormGateUp, where a command costs more than a norm
    std::span<const DType> adapted_matmuls = {};  // types whose matmuls of few rows take in what adapters add
    std::span<const MixedQkv> mixed_qkv = {};     // with fused norms: what one kNormQkv takes besides equal types
};

constexpr int kMaxThreads = 1024;  // of a device that is the processor

// What threads of the processor reach now: bytes/s read from memory, FLOP/s and int8 operations/s.
struct Peaks {
    double read_bytes_per_second = 0, f32_flops = 0, int8_ops = 0;
};

// Where memory is, and who sees it.
enum class MemoryKind : std::uint8_t {
    kDevice,  // only the device: the host uploads and downloads
    kShared,  // both
};

// A table that a device has compiled: its commands have their kernels. What else a device keeps is in a class of its
// own.
class Program {
  public:
    explicit Program(DispatchTable t) : table(std::move(t)) {}
    virtual ~Program() = default;
    DispatchTable table;
};

// A program of a step, and what it is run with.
struct Segment {
    const Program* program = nullptr;
    ReplayArgs args = {};
};
using Segments = std::span<const Segment>;
constexpr std::size_t kMaxSegments = 20;  // of a step

// A step's segments, one after the other: the forward pass, and what follows it. It may be run many times without the
// host. From one time to the next positions are further ahead of the rows, and a row may see more keys; where a command
// writes the rows anew, their positions need not be ahead.
struct Chain {
    Segments segments = {};
    std::uint32_t times = 1;
    std::uint32_t more_steps = 1, more_keys = 1;
    std::uint32_t commands = UINT32_MAX;  // each time only the first so many

    // What a segment with these is run with the n-th time, counted from 0.
    ReplayArgs args_at(ReplayArgs args, std::uint32_t n) const {
        args.step += n * more_steps;
        args.keys += n * more_keys;
        return args;
    }
};

// Called now and then during long calls; true stops them.
using Poll = std::function<bool()>;

// Called now and then during work that takes long, with what it is; throws to abandon.
using Report = std::function<void(std::string_view)>;

// What the host has still to tell the second segment of the first step. Called once, on the thread that called, while
// the first segment runs; the second begins when it has returned. False: it does not, and the replay ends there.
using Meanwhile = std::function<bool()>;

class Device {
  public:
    virtual ~Device() = default;

    virtual std::string name() const = 0;
    virtual std::string isa() const = 0;
    virtual int threads() const = 0;
    virtual const DeviceTraits& traits() const = 0;

    // The representation that a matmul with weights of this type reads (one of ActFormatBits).
    virtual std::uint32_t matmul_input(DType weight) const = 0;
    // Bytes of an activation of `rows` x `dim` in `format`.
    virtual std::uint64_t activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const = 0;
    // Bytes of one layer's keys, or values, of kPagePositions positions, and of the decode attention's partial results.
    virtual std::uint64_t kv_bytes(DType dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim) const = 0;
    virtual std::uint64_t attention_partial_bytes(std::uint32_t n_heads, std::uint32_t head_dim,
                                                  std::uint32_t context) const = 0;
    virtual bool supports_kv(const KvTypes& types) const = 0;
    // Bytes that the device has for weights and caches together.
    virtual std::uint64_t memory() const = 0;
    // What is left of a memory of its own; nothing where the device shares the host's.
    virtual std::optional<std::uint64_t> memory_left() const { return std::nullopt; }

    // Memory is zero-filled and lazily committed where the system can. Throws DeviceError.
    virtual Buffer allocate(std::uint64_t bytes, MemoryKind kind) = 0;
    virtual void release(Buffer& buffer) = 0;
    // What is there is of no more use: memory that the host has too may go back to the system. It reads as before, or
    // as zeros.
    virtual void discard(const Binding&) {}
    // To and from memory of any kind, while nothing runs that uses it.
    virtual void upload(const Binding& to, std::span<const std::byte> bytes) = 0;
    // Uploads to one of several GPUs alone.
    virtual void upload_part(const Binding& to, std::uint32_t /*card*/, std::span<const std::byte> bytes) {
        upload(to, bytes);
    }
    virtual void download(const Binding& from, std::span<std::byte> bytes) = 0;

    // Stores a matmul weight the way this device wants it. Unless the result is `mapped`, the host bytes are not needed
    // afterwards and the caller releases the result's buffer.
    virtual Weight prepare_weight(const HostTensor& tensor) = 0;
    // Prepares the weights of experts, all of one type and shape. A device that has no experts throws
    // UnsupportedError.
    virtual Weight prepare_experts(std::span<const HostTensor> experts);
    // Leaves experts in the host's bytes: they are read when a step uses them, and as many are kept as `hold_experts`
    // lets. Devices with the trait `pages_experts` have this.
    virtual Weight page_experts(std::span<const HostTensor> experts);
    // Before the first replay. Returns what they take of `bytes`, for all weights of `page_experts`.
    virtual std::uint64_t hold_experts(std::uint64_t /*bytes*/) { return 0; }
    virtual PagedUse paged_use() const { return {}; }
    // Uses the host bytes in place where it can (`mapped`); the caller keeps them alive and unchanged. Else a copy,
    // which the caller releases.
    virtual Weight map_weight(const HostTensor& tensor) = 0;

    // Chooses the kernels and their geometry; throws UnsupportedError when there is none for a command.
    virtual std::unique_ptr<Program> compile(DispatchTable table) = 0;

    // Does what the first replay of the programs that there are would else wait for, where that takes long.
    virtual void prepare_kernels(const Report&) {}

    // What runs a resolved command in the first step of such a replay, a name for each dispatch; nothing where a
    // command is one call that has no name.
    virtual std::optional<std::vector<std::string>> kernel_names(const DispatchCmd&, const ReplayArgs&) const {
        return std::nullopt;
    }

    // Runs a chain until `control.stop` is set. Returns how many times all of it ran. `poll` is called now and then on
    // the calling thread; when it returns true the replay stops early. `meanwhile` must not throw.
    virtual std::uint32_t replay(const Chain& chain, Control& control, const Poll& poll,
                                 const Meanwhile& meanwhile) = 0;

    // Runs the segments once and adds each command's seconds to `seconds`.
    virtual void profile(Segments segments, std::span<double> seconds) = 0;
};

// Owns a buffer of a device.
class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    DeviceBuffer(Device& device, std::uint64_t bytes, MemoryKind kind = MemoryKind::kShared)
        : device_(&device), buffer_(device.allocate(bytes, kind)) {}
    // Takes over a buffer that the device allocated.
    DeviceBuffer(Device& device, Buffer buffer) : device_(&device), buffer_(buffer) {}
    DeviceBuffer(DeviceBuffer&& o) noexcept
        : device_(std::exchange(o.device_, nullptr)), buffer_(std::exchange(o.buffer_, {})) {}
    DeviceBuffer& operator=(DeviceBuffer&& o) noexcept {
        std::swap(device_, o.device_);
        std::swap(buffer_, o.buffer_);
        return *this;
    }
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    ~DeviceBuffer() {
        if (device_) device_->release(buffer_);
    }
    Binding at(std::uint64_t offset = 0) const { return {buffer_, offset}; }
    template <typename T>
    T* as() const {
        return reinterpret_cast<T*>(buffer_.host);
    }
    std::uint64_t size() const { return buffer_.size; }

  private:
    Device* device_ = nullptr;
    Buffer buffer_;
};

}  // namespace akunu
