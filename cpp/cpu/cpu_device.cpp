#include "cpu/cpu_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "cpu/act.h"
#include "cpu/kv_layout.h"
#include "cpu/pack.h"
#include "cpu/topology.h"

namespace akunu::cpu {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPollInterval = std::chrono::milliseconds(20);

int checked_threads(int threads) {
    constexpr int kMaxThreads = 1024;
    if (threads < 0 || threads > kMaxThreads) {
        throw InvalidArgumentError("threads is " + std::to_string(threads) + ", expected 1.." +
                                   std::to_string(kMaxThreads) + ", or 0 for the physical cores");
    }
    return threads ? threads : usable_cores();
}

constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

// `remedy` ends the message when there is not so much.
Mapping map_memory(std::uint64_t bytes, const char* remedy) {
    // Memory that can have huge pages starts on one.
    const std::uint64_t spare = bytes >= kHugePage ? kHugePage : 0;
    void* p = bytes <= std::numeric_limits<std::uint64_t>::max() / 2
                  ? mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                  : MAP_FAILED;
    if (p == MAP_FAILED) {
        throw DeviceError("out of memory: could not allocate " + std::to_string(bytes) + " bytes; " + remedy);
    }
    auto* memory = static_cast<std::byte*>(p);
    const std::uint64_t before = spare ? -reinterpret_cast<std::uintptr_t>(memory) % kHugePage : 0;
#ifdef MADV_HUGEPAGE
    if (spare) madvise(memory + before, bytes, MADV_HUGEPAGE);
#endif
    return Mapping(memory + before, {memory, bytes + spare});
}

// Buffers keep the mapping that they lie in.
using Memory = std::shared_ptr<std::byte>;

Buffer to_buffer(Memory memory, std::uint64_t bytes) {
    std::byte* contents = memory.get();
    return {new Memory(std::move(memory)), contents, bytes};
}

constexpr const char* kSmallerModel = "a smaller context or a more quantised model needs less";

// The rows and heads that kernels keep in a worker's scratch must fit there.
template <typename P>
void check_scratch(const DispatchCmd& cmd, const char* name, u32 P::* size, std::size_t most) {
    const u32 n = params_as<P>(cmd.params.data()).*size;
    if (n <= most) return;
    throw UnsupportedError(std::string(op_name(cmd.op)) + ": " + name + " is " + std::to_string(n) +
                           ", the CPU takes at most " + std::to_string(most));
}

void check_scratch(const DispatchCmd& cmd) {
    switch (cmd.op) {
        case Op::kEmbed:
            return check_scratch(cmd, "dim", &EmbedParams::dim, kMaxRow);
        case Op::kNorm:
        case Op::kNormAdd:
            return check_scratch(cmd, "dim", &NormParams::dim, kMaxRow);
        case Op::kAttention:
        case Op::kAttentionMerge:
            return check_scratch(cmd, "head_dim", &AttentionParams::head_dim, kMaxHead);
        default:
            return;
    }
}

}  // namespace

void Unmap::operator()(std::byte*) const { munmap(begin, bytes); }

CpuDevice::CpuDevice(int threads, const KernelSet& kernels)
    : kernels_(kernels),
      pool_(checked_threads(threads)),
      barrier_(pool_.threads()),
      scratch_(map_memory(static_cast<std::uint64_t>(pool_.threads()) * kWorkerScratch, "fewer threads need less")) {}

std::string CpuDevice::name() const { return cpu_name(); }

std::uint32_t CpuDevice::matmul_input(DType weight) const {
    return dtype_info(weight).block_elems == 1 ? kActF32 : kActQ8;
}

std::uint64_t CpuDevice::activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const {
    return format == kActQ8 ? rows * Q8Layout(dim).stride : rows * dim * sizeof(float);
}

bool CpuDevice::supports_kv(DType dtype) const {
    return dtype == DType::F16 || dtype == DType::F32 || dtype == DType::Q8_0;
}

std::uint64_t CpuDevice::kv_bytes(DType dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim,
                                  std::uint32_t context) const {
    const std::size_t elem = dtype == DType::Q8_0 ? 1 : dtype_info(dtype).block_bytes;
    return n_kv_heads * std::uint64_t{cache_head_bytes(elem, context, head_dim)};
}

std::uint64_t CpuDevice::attention_partial_bytes(std::uint32_t n_heads, std::uint32_t head_dim,
                                                 std::uint32_t context) const {
    return std::uint64_t{n_heads} * attention_blocks(context) * partial_floats(head_dim) * sizeof(float);
}

Buffer CpuDevice::allocate(std::uint64_t bytes) { return to_buffer(map_memory(bytes, kSmallerModel), bytes); }

void CpuDevice::release(Buffer& buffer) {
    delete static_cast<Memory*>(buffer.handle);
    buffer = {};
}

std::shared_ptr<std::byte> CpuDevice::weight_memory(std::uint64_t bytes) {
    constexpr std::uint64_t kSlab = std::uint64_t{32} << 20;
    if (bytes > kSlab / 2) return map_memory(bytes, kSmallerModel);
    if (!slab_ || kSlab - slab_used_ < bytes) {
        slab_ = map_memory(kSlab, kSmallerModel);
        slab_used_ = 0;
    }
    return {slab_, slab_.get() + std::exchange(slab_used_, slab_used_ + pack_align(bytes))};
}

Weight CpuDevice::prepare_weight(const HostTensor& t) {
    const auto lanes = static_cast<std::size_t>(kernels_.lanes);
    // One spare line: the last vectors of a narrow plane may be read whole.
    const std::uint64_t bytes = packed_bytes(t.dtype, t.rows, t.cols, lanes) + 64;
    Memory memory = weight_memory(bytes);
    const std::uint64_t groups = (t.rows + lanes - 1) / lanes;
    pool_.run([&](int index) {
        const auto share = Worker{index, pool_.threads(), nullptr}.share(groups);
        pack_groups(t.dtype, t.rows, t.cols, lanes, t.bytes, memory.get(), share.begin, share.end);
    });
    return {t.dtype, t.rows, t.cols, {to_buffer(std::move(memory), bytes), 0}, true};
}

Weight CpuDevice::map_weight(const HostTensor& t) {
    auto* p = const_cast<std::byte*>(t.bytes.data());
    return {t.dtype, t.rows, t.cols, {{p, p, t.bytes.size()}, 0}, false};
}

void CpuDevice::resolve(DispatchCmd& cmd) const {
    const Kernel kernel = kernels_.find(cmd);
    if (!kernel) {
        throw UnsupportedError("no CPU kernel for " + std::string(op_name(cmd.op)) + " with weights of type '" +
                               std::string(dtype_info(cmd.weight).name) + "'");
    }
    check_scratch(cmd);
    cmd.kernel = reinterpret_cast<const void*>(kernel);
}

struct CpuDevice::Job {
    const DispatchTable& table;
    const ReplayArgs& args;
    Control& control;
    const std::function<bool()>& poll;
    std::span<double> seconds;  // empty: not profiled
    std::uint32_t steps_done = 0;
    // Barriers are numbered; the replay stops at this one. Written by worker 0 before it reaches that barrier.
    std::atomic<std::uint64_t> stop_at{std::numeric_limits<std::uint64_t>::max()};
};

void CpuDevice::work(Job& job, int index) {
    const Worker worker{index, pool_.threads(), scratch_.get() + static_cast<std::size_t>(index) * kWorkerScratch};
    const bool lead = index == 0;
    std::uint64_t barriers = 0;
    Clock::time_point next_poll = Clock::now() + kPollInterval, started;
    // Waits for the others; false when the replay is to stop here.
    const auto meet = [&] {
        barrier_.wait();
        return ++barriers < job.stop_at.load(std::memory_order_relaxed);
    };
    alignas(8) std::byte params[kMaxParamBytes];
    for (std::uint32_t step = 0; step < job.args.steps; ++step) {
        for (std::size_t i = 0; i < job.table.commands.size(); ++i) {
            const DispatchCmd& cmd = job.table.commands[i];
            if (lead && job.poll && Clock::now() >= next_poll) {
                next_poll = Clock::now() + kPollInterval;
                if (job.poll()) job.stop_at.store(barriers + 1, std::memory_order_relaxed);
            }
            if ((cmd.barrier || !job.seconds.empty()) && i + step > 0 && !meet()) return;
            if (lead && !job.seconds.empty()) {
                const auto now = Clock::now();
                if (i > 0) job.seconds[i - 1] += std::chrono::duration<double>(now - started).count();
                started = now;
            }
            patched_params(cmd, job.args, step, params);
            reinterpret_cast<Kernel>(const_cast<void*>(cmd.kernel))(cmd, params, worker);
        }
        if (!meet()) return;
        if (lead) {
            job.steps_done = step + 1;
            if (!job.seconds.empty()) {
                job.seconds.back() += std::chrono::duration<double>(Clock::now() - started).count();
            }
        }
        if (job.control.stop) return;
    }
}

std::uint32_t CpuDevice::replay(const DispatchTable& table, const ReplayArgs& args, Control& control,
                                const std::function<bool()>& poll) {
    Job job{table, args, control, poll, {}};
    pool_.run([&](int index) { work(job, index); });
    return job.steps_done;
}

void CpuDevice::profile(const DispatchTable& table, const ReplayArgs& args, std::span<double> seconds) {
    Control control;
    const std::function<bool()> poll;
    Job job{table, args, control, poll, seconds};
    pool_.run([&](int index) { work(job, index); });
}

Peaks measure_peaks(int threads, double seconds) {
    const KernelSet& kernels = select_kernels();
    ThreadPool pool(checked_threads(threads));
    // Several times the last-level cache, touched by the thread that reads it.
    constexpr std::uint64_t kReadBytes = std::uint64_t{512} << 20;
    const Mapping memory = map_memory(kReadBytes, "measuring needs so much");
    std::byte* data = memory.get();
    std::vector<double> done(static_cast<std::size_t>(pool.threads()) * 8);
    const auto measure = [&](auto&& probe) {
        // Best of several rounds: other load on the machine only ever slows a round down.
        double best = 0;
        const auto end = Clock::now() + std::chrono::duration<double>(seconds / 3);
        for (int round = 0; round < 2 || Clock::now() < end; ++round) {
            const auto start = Clock::now();
            pool.run([&](int i) { done[static_cast<std::size_t>(i) * 8] = probe(i); });
            const double t = std::chrono::duration<double>(Clock::now() - start).count();
            double total = 0;
            for (int i = 0; i < pool.threads(); ++i) total += done[static_cast<std::size_t>(i) * 8];
            best = std::max(best, total / t);
        }
        return best;
    };
    pool.run([&](int i) {
        const auto share = Worker{i, pool.threads(), nullptr}.share(kReadBytes / 64);
        std::memset(data + share.begin * 64, 1, (share.end - share.begin) * 64);
    });
    Peaks p;
    p.read_bytes_per_second = measure([&](int i) {
        const auto share = Worker{i, pool.threads(), nullptr}.share(kReadBytes / 64);
        return kernels.probe_read(data + share.begin * 64, (share.end - share.begin) * 64);
    });
    p.f32_flops = measure([&](int) { return kernels.probe_f32(200'000); });
    p.int8_ops = measure([&](int) { return kernels.probe_int8(50'000); });
    return p;
}

}  // namespace akunu::cpu
