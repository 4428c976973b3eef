#include "cpu/cpu_device.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/q8.h"
#include "cpu/kv_layout.h"
#include "cpu/pack.h"
#include "cpu/thread_pool.h"
#include "cpu/topology.h"
#include "cpu/whole.h"

namespace akunu::cpu {

namespace {

int checked_threads(int threads) {
    if (threads < 0 || threads > kMaxThreads) {
        throw InvalidArgumentError("threads is " + std::to_string(threads) + ", expected 1.." +
                                   std::to_string(kMaxThreads) + ", or 0 for the physical cores");
    }
    return threads ? threads : usable_cores();
}

// Buffers keep the mapping that they lie in.
using Memory = std::shared_ptr<std::byte>;

Buffer to_buffer(Memory memory, std::uint64_t bytes) {
    std::byte* at = memory.get();
    return {new Memory(std::move(memory)), at, at, bytes};
}

constexpr const char* kSmallerModel = "a smaller context or a more quantised model needs less";

// Rows and heads fit a worker's scratch, where kernels keep them, whatever the op.
constexpr struct {
    std::string_view field;
    std::size_t most;
} kScratchLimits[] = {{"dim", kMaxRow}, {"head_dim", kMaxHead}, {"fixed_keys", kMaxRow - kPagePositions}};

// So do the lists of rows by experts, of as many rows as a step may have.
void check_experts(const DispatchCmd& cmd) {
    const OpInfo& op = op_info(cmd.op);
    if (!find_field(op, "experts")) return;
    const auto value = [&](std::string_view name) {
        u32 n = 0;
        std::memcpy(&n, cmd.params.data() + find_field(op, name)->offset, sizeof n);
        return std::size_t{n};
    };
    const std::size_t choices = value("rows") * value("chosen");
    constexpr std::size_t kMostChoices = kMostChoiceBytes / sizeof(u32) / 2 - kMostExperts - 16;
    const auto check = [&](const char* what, std::size_t n, std::size_t most) {
        if (n <= most) return;
        throw UnsupportedError(std::string(op.name) + ": " + what + " is " + std::to_string(n) +
                               ", the CPU takes at most " + std::to_string(most));
    };
    check("experts", value("experts"), kMostExperts);
    check("chosen", value("chosen"), kMostChosen);
    check("rows x chosen", choices, kMostChoices);
}

void check_scratch(const DispatchCmd& cmd) {
    const OpInfo& op = op_info(cmd.op);
    for (const auto& [name, most] : kScratchLimits) {
        const FieldInfo* field = find_field(op, name);
        if (!field) continue;
        u32 n = 0;
        std::memcpy(&n, cmd.params.data() + field->offset, sizeof n);
        if (n <= most) continue;
        throw UnsupportedError(std::string(op.name) + ": " + std::string(name) + " is " + std::to_string(n) +
                               ", the CPU takes at most " + std::to_string(most));
    }
}

}  // namespace

CpuDevice::CpuDevice(int threads, const KernelSet& kernels)
    : CpuDevice(threads, kernels, shared_nodes(memory_nodes(), checked_threads(threads))) {}

CpuDevice::CpuDevice(int threads, const KernelSet& kernels, std::vector<int> nodes)
    : kernels_(kernels),
      threads_(checked_threads(threads)),
      nodes_(std::move(nodes)),
      process_(getpid()),
      traits_{.max_batch_rows = 1,
              .activated_matmuls = ActivatedMatmuls::kAll,
              .whole_halves = kernels_.whole_rows != nullptr,
              .recodes = true,
              .pages_experts = true},
      paged_(threads_) {
    ThreadPool::of_process().reserve(threads_);
}

std::string CpuDevice::name() const { return cpu_name(); }

std::uint32_t CpuDevice::matmul_input(DType weight) const {
    return dtype_info(weight).has_float_codes() ? kActF32 : kActQ8;
}

std::uint64_t CpuDevice::activation_bytes(std::uint32_t format, std::uint64_t rows, std::uint64_t dim) const {
    return format == kActQ8 ? rows * Q8Layout(dim).stride : rows * dim * sizeof(float);
}

bool CpuDevice::supports_kv(const KvTypes& types) const {
    return kv_unit_bytes(types.k, 1) != 0 && kv_unit_bytes(types.v, 1) != 0;
}

std::uint64_t CpuDevice::kv_bytes(DType dtype, std::uint32_t n_kv_heads, std::uint32_t head_dim) const {
    return std::uint64_t{n_kv_heads} * kv_unit_bytes(dtype, head_dim);
}

std::uint64_t CpuDevice::attention_partial_bytes(std::uint32_t n_heads, std::uint32_t head_dim,
                                                 std::uint32_t context) const {
    return std::uint64_t{n_heads} * attention_blocks(context) * partial_floats(head_dim) * sizeof(float);
}

std::uint64_t CpuDevice::memory() const { return total_memory(); }

// Poisoned builds give the host no view of what is the device's alone, though here it could have one.
#ifdef AKUNU_POISON_DEVICE_MEMORY
constexpr bool kHostSeesAll = false;
#else
constexpr bool kHostSeesAll = true;
#endif

Buffer CpuDevice::allocate(std::uint64_t bytes, MemoryKind kind) {
    Buffer b = to_buffer(shared_memory(bytes), bytes);
    if (!kHostSeesAll && kind == MemoryKind::kDevice) b.host = nullptr;
    return b;
}

void CpuDevice::upload(const Binding& to, std::span<const std::byte> bytes) {
    std::memcpy(to.as(), bytes.data(), bytes.size());
}

void CpuDevice::download(const Binding& from, std::span<std::byte> bytes) {
    std::memcpy(bytes.data(), from.as(), bytes.size());
}

void CpuDevice::release(Buffer& buffer) {
    delete static_cast<Memory*>(buffer.handle);
    buffer = {};
}

void CpuDevice::discard(const Binding& range) { give_back(range.as(), range.end() - range.offset); }

Mapping CpuDevice::shared_memory(std::uint64_t bytes) const {
    Mapping memory = map_memory(bytes, kSmallerModel);
    spread(memory.get(), bytes, nodes_);
    return memory;
}

std::shared_ptr<std::byte> CpuDevice::weight_memory(std::uint64_t bytes) {
    constexpr std::uint64_t kSlab = std::uint64_t{32} << 20;
    if (bytes > kSlab / 2) return shared_memory(bytes);
    if (!slab_ || kSlab - slab_used_ < bytes) {
        slab_ = shared_memory(kSlab);
        slab_used_ = 0;
    }
    return {slab_, slab_.get() + std::exchange(slab_used_, slab_used_ + pack_align(bytes))};
}

const WholeFormat* CpuDevice::format_of(Whole whole) const {
    return whole == Whole::kSequences ? kernels_.whole_sequences
           : whole == Whole::kRows    ? kernels_.whole_rows
                                      : nullptr;
}

namespace {
float factor_of(const HostTensor& t) { return t.factors.empty() ? 1.0f : t.factors.front(); }
}  // namespace

Weight CpuDevice::prepare_weight(const HostTensor& t) {
    const WholeFormat* const whole = can_be_whole(t.dtype, t.cols) ? format_of(t.whole) : nullptr;
    const std::size_t lanes = whole ? kWholeRows : static_cast<std::size_t>(kernels_.lanes);
    const std::uint64_t groups = (t.rows + lanes - 1) / lanes;
    // One spare line: the last vectors of a narrow plane may be read whole.
    const std::uint64_t bytes =
        whole ? groups * whole->group_bytes(t.dtype, t.cols) : packed_bytes(t.dtype, t.rows, t.cols, lanes) + 64;
    Memory memory = weight_memory(bytes);
    constexpr std::uint64_t kParts = 4;  // of each thread: one that is late leaves some to the others
    const std::uint64_t parts = std::min(groups, kParts * static_cast<std::uint64_t>(threads_));
    pool().run(threads_, static_cast<int>(parts), [&](int part) {
        const auto i = static_cast<std::uint64_t>(part);
        const std::uint64_t first = groups * i / parts, last = groups * (i + 1) / parts;
        if (whole) {
            return pack_whole(*whole, t.dtype, t.rows, t.cols, t.bytes.data(), memory.get(), first, last);
        }
        const WeightPlanes planes{t.bytes.data(), t.scales.data(), t.biases.data(), factor_of(t)};
        pack_groups(t.dtype, t.rows, t.cols, lanes, planes, memory.get(), first, last);
    });
    return {.dtype = packed_type(t.dtype),
            .rows = t.rows,
            .cols = t.cols,
            .data = {to_buffer(std::move(memory), bytes), 0},
            .packed = true,
            .whole = whole ? t.whole : Whole::kNone};
}

Weight CpuDevice::prepare_experts(std::span<const HostTensor> experts) {
    const HostTensor& first = experts.front();
    const auto lanes = static_cast<std::size_t>(kernels_.lanes);
    const std::uint64_t groups = (first.rows + lanes - 1) / lanes, all = groups * experts.size();
    const std::uint64_t expert_bytes = packed_bytes(first.dtype, first.rows, first.cols, lanes);
    const std::uint64_t bytes = experts.size() * expert_bytes + 64;  // a spare line, as of any weight
    Memory memory = weight_memory(bytes);
    constexpr std::uint64_t kParts = 4;
    const std::uint64_t parts = std::min(all, kParts * static_cast<std::uint64_t>(threads_));
    pool().run(threads_, static_cast<int>(parts), [&](int part) {
        const auto i = static_cast<std::uint64_t>(part);
        const std::uint64_t last = all * (i + 1) / parts;
        for (std::uint64_t g = all * i / parts; g < last;) {
            const std::uint64_t e = g / groups, end = std::min(last, (e + 1) * groups);
            const HostTensor& t = experts[e];
            pack_groups(t.dtype, t.rows, t.cols, lanes,
                        {t.bytes.data(), t.scales.data(), t.biases.data(), factor_of(t)},
                        memory.get() + e * expert_bytes, g - e * groups, end - e * groups);
            g = end;
        }
    });
    return {.dtype = packed_type(first.dtype),
            .rows = first.rows,
            .cols = first.cols,
            .count = experts.size(),
            .data = {to_buffer(std::move(memory), bytes), 0},
            .packed = true};
}

Weight CpuDevice::page_experts(std::span<const HostTensor> experts) {
    const HostTensor& first = experts.front();
    const auto pages = paged_.add(experts, static_cast<std::size_t>(kernels_.lanes));
    // Kernels find them where others find the weights themselves.
    Memory memory(pages, reinterpret_cast<std::byte*>(pages.get()));
    return {.dtype = packed_type(first.dtype),
            .rows = first.rows,
            .cols = first.cols,
            .count = experts.size(),
            .data = {to_buffer(std::move(memory), sizeof(ExpertPages)), 0},
            .packed = true};
}

Weight CpuDevice::map_weight(const HostTensor& t) {
    const auto view = [](std::span<const std::byte> bytes) {
        auto* p = const_cast<std::byte*>(bytes.data());
        return Binding{{p, p, p, bytes.size()}, 0};
    };
    return {.dtype = t.dtype,
            .rows = t.rows,
            .cols = t.cols,
            .data = view(t.bytes),
            .scales = view(t.scales),
            .biases = view(t.biases),
            .mapped = true};
}

bool CpuDevice::add_paged(const DispatchCmd& cmd, std::size_t at, std::vector<PagedCommand>& to) const {
    const bool both = cmd.op == Op::kExpertsGateUp;
    if (!both && cmd.op != Op::kExpertsDown) return false;
    ExpertPages* const pages = paged_.find(cmd.buffers[1]);
    ExpertPages* const other = both ? paged_.find(cmd.buffers[2]) : nullptr;
    if (!pages && !other) return false;
    if (both && !(pages && other)) throw UnsupportedError("gate and up of experts are not both in their file");
    const std::uint8_t ids = both ? 5 : 4;
    to.push_back({at, {pages, other}, ids, both});
    return true;
}

std::unique_ptr<Program> CpuDevice::compile(DispatchTable table) {
    std::vector<PagedCommand> paged;
    for (std::size_t i = 0; i < table.commands.size(); ++i) {
        DispatchCmd& cmd = table.commands[i];
        cmd.paged = add_paged(cmd, i, paged);
        const Kernel kernel = kernels_.find(cmd);
        if (!kernel) {
            throw UnsupportedError("no CPU kernel for " + std::string(op_name(cmd.op)) + " with weights of type '" +
                                   std::string(dtype_info(cmd.weight).name) + "'");
        }
        check_scratch(cmd);
        check_experts(cmd);
        cmd.kernel = reinterpret_cast<const void*>(kernel);
    }
    return std::make_unique<CpuProgram>(std::move(table), std::move(paged));
}

ThreadPool& CpuDevice::pool() const {
    if (getpid() != process_) {
        throw Error(
            "this model was loaded before the process was forked, and its threads are not in this process; "
            "load it here, or start the process by the method 'spawn'");
    }
    return ThreadPool::of_process();
}

std::uint32_t CpuDevice::run(const Chain& chain, const Control& control, const Poll& poll, const Meanwhile& meanwhile,
                             std::span<double> seconds) {
    ThreadPool& threads = pool();
    if (chain.times == 0 || chain.commands == 0) return 0;
    auto replay = std::ranges::find_if(replays_, [](const auto& r) { return r->helpers() == 0; });
    if (replay == replays_.end()) replay = replays_.insert(replay, std::make_shared<Replay>(threads_));
    const std::shared_ptr<Replay> team = *replay;
    team->prepare(chain, control, poll, meanwhile, seconds, threads_);
    threads.run(team);
    return team->times_done();
}

std::uint32_t CpuDevice::replay(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile) {
    return run(chain, control, poll, meanwhile, {});
}

void CpuDevice::profile(Segments segments, std::span<double> seconds) {
    const Control control;
    run({.segments = segments}, control, {}, {}, seconds);
}

Peaks measure_peaks(int threads, double seconds) {
    const KernelSet& kernels = select_kernels();
    const int n = checked_threads(threads);
    ThreadPool& pool = ThreadPool::of_process();
    pool.reserve(n);
    // Several times the last-level cache, touched by the thread that reads it.
    constexpr std::uint64_t kReadBytes = std::uint64_t{512} << 20;
    const Mapping memory = map_memory(kReadBytes, "measuring needs so much");
    std::byte* data = memory.get();
    std::vector<double> done(static_cast<std::size_t>(n) * 8);
    constexpr std::uint64_t kLines = kReadBytes / 64;
    const auto first_line = [&](int i) {
        return kLines * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(n);
    };
    const auto share = [&](int i) {
        return std::span(data + first_line(i) * 64, (first_line(i + 1) - first_line(i)) * 64);
    };
    const auto measure = [&](auto&& probe) {
        // Best of several rounds: other load on the machine only ever slows a round down.
        double best = 0;
        const auto end = Clock::now() + std::chrono::duration<double>(seconds / 3);
        for (int round = 0; round < 2 || Clock::now() < end; ++round) {
            const auto start = Clock::now();
            pool.run(n, n, [&](int i) { done[static_cast<std::size_t>(i) * 8] = probe(i); });
            const double t = std::chrono::duration<double>(Clock::now() - start).count();
            double total = 0;
            for (int i = 0; i < n; ++i) total += done[static_cast<std::size_t>(i) * 8];
            best = std::max(best, total / t);
        }
        return best;
    };
    pool.run(n, n, [&](int i) { std::ranges::fill(share(i), std::byte{1}); });
    Peaks p;
    p.read_bytes_per_second = measure([&](int i) { return kernels.probe_read(share(i).data(), share(i).size()); });
    p.f32_flops = measure([&](int) { return kernels.probe_f32(200'000); });
    p.int8_ops = measure([&](int) { return kernels.probe_int8(50'000); });
    return p;
}

}  // namespace akunu::cpu
