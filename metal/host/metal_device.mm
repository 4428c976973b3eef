#include "metal/host/metal_device.h"

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/environment.h"
#include "core/error.h"
#include "metal/choose/traits.h"
#import "metal/host/gpu.h"
#import "metal/host/profile.h"
#import "metal/host/replay.h"

namespace akunu::metal {

namespace {

// What absent buffers are bound to; kernels do not touch it.
constexpr std::uint64_t kDummyBytes = 256;

// The system ends a command buffer that takes seconds, and nothing else is drawn while it runs.
constexpr double kBufferSeconds = 0.1;
constexpr double kPrefillShare = 0.65;  // of the peak, which prefill is assumed to reach
constexpr double kDecodeShare = 0.5;    // of the bandwidth: less than any chip is known to reach
constexpr double kKeepAlive = 180;      // seconds for which idle memory stays wired

BufferLimit buffer_limit(const Chip& chip) {
    return {environment_number("AKUNU_METAL_BUFFER_MS", kBufferSeconds * 1e3) * 1e-3, chip.bandwidth * kDecodeShare,
            chip.f16_flops * kPrefillShare};
}

id<MTLDevice> system_device() {
    id<MTLDevice> device = pooled([] { return find_device(); });
    if (!device)
        throw DeviceError("this machine has no GPU for Metal: an M1 or later is needed, not a virtual machine");
    return device;
}

id<MTLCommandQueue> new_queue(id<MTLDevice> device) {
    id<MTLCommandQueue> queue = [device newCommandQueue];
    if (!queue) throw DeviceError("Metal gave no command queue");
    return queue;
}

}  // namespace

struct MetalDevice::Impl {
    id<MTLDevice> device = system_device();
    Gpu gpu = describe(device);
    Chip chip = chip_of(device, gpu);
    id<MTLCommandQueue> queue = new_queue(device);
    Residency residency{device, queue, environment_number("AKUNU_METAL_KEEP_ALIVE", kKeepAlive)};
    Memory memory{device, residency};
    Library library{device};
    Resolver resolver{memory, library, chip};
    Buffer dummy = memory.allocate(kDummyBytes, MemoryKind::kDevice);
    std::unique_ptr<Indirect> indirect = make_indirect();
    Replay replay{device, queue, residency, resolver, dummy.handle, indirect.get(), buffer_limit(chip)};

    // Not the default until it has been measured on hardware.
    std::unique_ptr<Indirect> make_indirect() {
        const char* wanted = std::getenv("AKUNU_METAL_REPLAY");
        if (!wanted || std::string_view(wanted) != "indirect") return nullptr;
        return std::make_unique<Indirect>(device, memory, library, resolver, dummy.handle);
    }
};

MetalDevice::MetalDevice() : impl_(pooled([] { return std::make_unique<Impl>(); })), traits_(device_traits()) {}

MetalDevice::~MetalDevice() {
    @autoreleasepool {
        impl_.reset();
    }
}

std::string MetalDevice::name() const { return impl_->gpu.name; }

std::string MetalDevice::isa() const { return impl_->gpu.isa; }

std::uint32_t MetalDevice::matmul_input(DType weight) const { return matmul_input_of(weight); }

std::uint64_t MetalDevice::activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const {
    return activation_bytes_of(format, rows, dim);
}

std::uint64_t MetalDevice::kv_bytes(DType dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim) const {
    return metal::kv_bytes(dtype, n_kv_heads, head_dim);
}

std::uint64_t MetalDevice::attention_partial_bytes(std::uint32_t n_heads, std::uint32_t head_dim,
                                                   std::uint32_t context) const {
    return metal::attention_partial_bytes(n_heads, head_dim, context, impl_->chip.gpu_cores);
}

bool MetalDevice::supports_kv(const KvTypes& types) const { return has_kernels(types); }

std::uint64_t MetalDevice::memory() const { return impl_->gpu.memory; }

Buffer MetalDevice::allocate(std::uint64_t bytes, MemoryKind kind) { return impl_->memory.allocate(bytes, kind); }

void MetalDevice::release(Buffer& buffer) {
    @autoreleasepool {
        impl_->replay.drain();
        impl_->memory.release(buffer);
    }
}

void MetalDevice::upload(const Binding& to, std::span<const std::byte> bytes) {
    std::memcpy(contents_of(to), bytes.data(), bytes.size());
}

void MetalDevice::download(const Binding& from, std::span<std::byte> bytes) {
    std::memcpy(bytes.data(), contents_of(from), bytes.size());
}

Weight MetalDevice::prepare_weight(const HostTensor& t) {
    Weight w{.dtype = t.dtype, .rows = t.rows, .cols = t.cols, .mapped = true};
    if (!t.mapping.empty() && impl_->memory.map(t.bytes, t.mapping, w.data)) return w;
    // Planes lie one behind the other, each aligned to what kernels read at a time.
    constexpr std::uint64_t kAligned = 64;
    const auto padded = [](std::span<const std::byte> b) { return (b.size() + kAligned - 1) / kAligned * kAligned; };
    w.mapped = false;
    w.data = {impl_->memory.allocate(
                  t.scales.empty() ? t.bytes.size() : padded(t.bytes) + padded(t.scales) + padded(t.biases),
                  MemoryKind::kDevice),
              0};
    upload(w.data, t.bytes);
    if (t.scales.empty()) return w;
    w.scales = {w.data.buffer, padded(t.bytes)};
    w.biases = {w.data.buffer, w.scales.offset + padded(t.scales)};
    upload(w.scales, t.scales);
    upload(w.biases, t.biases);
    return w;
}

// Experts' weights lie one behind the other, as in the file; those of a planar type plane by plane: all codes, then all
// scales, then all biases (Mlx::matrix_of).
Weight MetalDevice::prepare_experts(std::span<const HostTensor> experts) {
    const HostTensor& first = experts.front();
    Weight w{.dtype = first.dtype, .rows = first.rows, .cols = first.cols, .count = experts.size(), .mapped = true};
    bool one_piece = first.scales.empty();
    for (std::size_t i = 0; i < experts.size(); ++i) {
        one_piece = one_piece && experts[i].bytes.data() == first.bytes.data() + i * first.bytes.size();
    }
    const std::span<const std::byte> all{first.bytes.data(), experts.size() * first.bytes.size()};
    if (one_piece && !first.mapping.empty() && impl_->memory.map(all, first.mapping, w.data)) return w;
    constexpr std::uint64_t kAligned = 64;
    const auto padded = [&](std::span<const std::byte> b) {
        return (experts.size() * b.size() + kAligned - 1) / kAligned * kAligned;
    };
    w.mapped = false;
    const std::uint64_t scales = padded(first.bytes), biases = scales + padded(first.scales);
    w.data = {impl_->memory.allocate(biases + padded(first.biases), MemoryKind::kDevice), 0};
    for (std::size_t i = 0; i < experts.size(); ++i) {
        const auto put = [&](std::uint64_t plane, std::span<const std::byte> bytes) {
            if (!bytes.empty()) upload({w.data.buffer, plane + i * bytes.size()}, bytes);
        };
        put(0, experts[i].bytes);
        put(scales, experts[i].scales);
        put(biases, experts[i].biases);
    }
    return w;
}

Weight MetalDevice::map_weight(const HostTensor& t) { return prepare_weight(t); }

std::unique_ptr<Program> MetalDevice::compile(DispatchTable table) {
    pooled([&] {
        impl_->replay.drain();  // scratch memory may grow
        for (DispatchCmd& cmd : table.commands) cmd.kernel = impl_->resolver.resolve(cmd);
    });
    return std::make_unique<Program>(std::move(table));
}

std::optional<std::vector<std::string>> MetalDevice::kernel_names(const DispatchCmd& cmd,
                                                                  const ReplayArgs& args) const {
    return names_of(static_cast<const ResolvedCommand*>(cmd.kernel)->choice, cmd, args);
}

std::uint32_t MetalDevice::replay(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile) {
    const std::size_t first = chain.segments.front().program->table.commands.size();
    return pooled([&] {
        return impl_->replay.run(commands_of(chain.segments, chain.commands), chain, control, poll, {meanwhile, first});
    });
}

void MetalDevice::profile(Segments segments, std::span<double> seconds) {
    pooled([&] {
        impl_->replay.drain();
        impl_->residency.use();
        Profiler(impl_->device, impl_->queue, impl_->resolver, impl_->dummy.handle)
            .run(commands_of(segments, UINT32_MAX), seconds);
    });
}

std::optional<Gpu> find_gpu() {
    return pooled([]() -> std::optional<Gpu> {
        id<MTLDevice> device = find_device();
        if (!device) return std::nullopt;
        return describe(device);
    });
}

}  // namespace akunu::metal
