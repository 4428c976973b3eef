#include "cuda/host/cuda_device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <ranges>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "core/environment.h"
#include "core/error.h"
#include "cuda/host/box_maps.h"
#include "cuda/host/compiler.h"
#include "cuda/host/gpu.h"
#include "cuda/host/pack.h"
#include "cuda/host/pieces.h"
#include "cuda/host/upload.h"

namespace akunu::cuda {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLeastCompute = 8, kBoxCompute = 9;

const Driver& driver() {
    std::string why;
    if (const Driver* d = find_driver(why)) return *d;
    throw DeviceError("device 'cuda' is not available here: " + why);
}

CUdevice gpu_numbered(int number) {
    int count = 0;
    driver().check(driver().cuDeviceGetCount(&count), "counting the GPUs");
    if (number >= count) {
        throw DeviceError(
            "device 'cuda:" + std::to_string(number) + "' is not available here: there " +
            (count == 1 ? "is one GPU, 'cuda:0'"
                        : "are " + std::to_string(count) + ", 'cuda:0' to 'cuda:" + std::to_string(count - 1) + "'"));
    }
    CUdevice device = 0;
    driver().check(driver().cuDeviceGet(&device, number), "finding GPU " + std::to_string(number));
    return device;
}

// How long a block waits for the others of a stage.
constexpr double kTimeoutMs = 20'000;
// How long a display waits for a prompt's launch.
constexpr double kDisplayLaunchMs = 300;

}  // namespace

struct CudaDevice::Impl {
    const Driver& d = driver();
    const std::uint64_t timeout_ms =
        static_cast<std::uint64_t>(environment_number("AKUNU_CUDA_TIMEOUT_MS", kTimeoutMs));
    const CUdevice device;
    Limits limits = limits_of(d, device);
    // Of a launch of a prompt, in seconds; 0: it may take as long as it takes.
    const double longest = environment_number("AKUNU_CUDA_LAUNCH_MS", limits.has_display ? kDisplayLaunchMs : 0) / 1000;
    Context context{d, device};
    Memory memory{d};
    Modules modules{d, limits};
    CUstream stream = nullptr;
    Buffer barrier, mailbox, parts, words, card_words;
    Cards cards{};
    LaunchParams prepared{};
    std::vector<std::span<const Command>> lists;  // of its segments
    u32 commands = 0;                             // of a step of it
    CUfunction function = nullptr;
    u32 parity = 0;
    u32 number = 0;                                  // of the last command of all launches
    u32 begun = 0;                                   // commands of a step before the launch's
    Pace pace;                                       // of prompts
    std::vector<std::weak_ptr<const Needs>> wanted;  // of the programs that are

    explicit Impl(CUdevice gpu) : device(gpu) {
        context.use();
        if (!limits.cooperative) {
            throw DeviceError(limits.name + " does not start kernels whose blocks wait for one another");
        }
        d.check(d.cuStreamCreate(&stream, 1), "making a stream");
        barrier = memory.allocate(sizeof(Barrier), MemoryKind::kDevice);
        mailbox = memory.allocate(sizeof(Mailbox), MemoryKind::kShared);
        make_parts(0);
        words = memory.allocate(std::uint64_t{kAllWords} * sizeof(u64), MemoryKind::kDevice);
    }
    // What a destructor calls fails where the GPU is lost: it is lost with its memory.
    ~Impl() {
        d.cuCtxSetCurrent(nullptr);
        if (!context.try_use()) return;
        memory.release(barrier);
        memory.release(mailbox);
        memory.release(parts);
        memory.release(words);
        memory.release(card_words);
        d.cuStreamDestroy(stream);
    }
    Mailbox& box() const { return *reinterpret_cast<Mailbox*>(mailbox.host); }

    std::uint32_t run(const Chain& chain, Control* control, const Poll& poll, u64* times, const Meanwhile& meanwhile);
    bool prepare(const Chain& chain, Control* control, const Poll& poll, u64* times);
    void wait(const Chain& chain, const Control* control, const Poll& poll);
    std::string command_name(const Chain& chain) const;
    void start(LaunchParams& params);
    void end(const Chain& chain, const Control* control, const Poll& poll);
    Needs wanted_now();
    void set_ring(const Chain& chain, Launch& launch) const;
    // Memory for sums of tiles in parts, and behind them for results of choices, as much as some program takes.
    void make_parts(std::uint64_t results) {
        const std::uint64_t bytes = std::uint64_t{limits.multiprocessors} * kPartBytes + results;
        if (bytes <= parts.size) return;
        memory.release(parts);
        parts = memory.allocate(bytes, MemoryKind::kDevice);
    }
    // In the launches' stream, so that the next one waits for it.
    void clear(const Buffer& buffer) {
        d.check(d.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(buffer.device), 0, buffer.size, stream),
                "clearing GPU memory");
    }
    u32 numbers(std::uint64_t commands);
};

// The number of the command before the first of so many. Numbers begin again before they wrap: what older commands have
// left as words is cleared then, and 0, which cleared memory has, is no command's.
u32 CudaDevice::Impl::numbers(std::uint64_t commands) {
    constexpr std::uint64_t kMost = std::numeric_limits<u32>::max();
    if (commands > kMost)
        throw InvalidArgumentError("a chain of " + std::to_string(commands) + " commands is too long");
    if (number > kMost - commands) {
        clear(words);
        if (card_words.size != 0) {  // before another GPU stores some
            clear(card_words);
            d.check(d.cuStreamSynchronize(stream), "clearing GPU memory");
        }
        number = 0;
    }
    return std::exchange(number, number + static_cast<u32>(commands));
}

Needs CudaDevice::Impl::wanted_now() {
    Needs all;
    std::erase_if(wanted, [](const auto& w) { return w.expired(); });
    for (const auto& w : wanted) all.add(*w.lock());
    return all;
}

// Calls f(program, args, commands that run at most) for each segment of a chain.
template <typename F>
void each_segment(const Chain& chain, F&& f) {
    std::uint32_t most = chain.commands;
    for (const akunu::Segment& segment : chain.segments) {
        const auto& program = static_cast<const CudaProgram&>(*segment.program);
        f(program, segment.args, most);
        most -= std::min(most, static_cast<std::uint32_t>(program.table.commands.size()));
    }
}

// The ring begins behind what the ops of these programs take, and its slots are as large as what comes at a time.
void CudaDevice::Impl::set_ring(const Chain& chain, Launch& launch) const {
    // What is on its way to a block: as much as comes while a copy takes. More would make what blocks tell one another
    // wait.
    constexpr u32 kCopyCycles = 3200;
    constexpr std::uint64_t kWindow = 54 << 10;  // of an H200, and where the memory's speed is not known
    const std::uint64_t window =
        limits.cycles_of_kb ? std::uint64_t{1024} * kCopyCycles / limits.cycles_of_kb : kWindow;
    OpMemory most{};
    each_segment(chain, [&](const CudaProgram& program, const ReplayArgs& args, std::uint32_t commands) {
        const OpMemory m = program.memory(args, commands);
        most = {std::max(most.bytes, m.bytes), std::max(most.slot_bytes, m.slot_bytes), most.stages || m.stages,
                most.streamed + m.streamed, most.streaming + m.streaming};
    });
    // What the ring does not need at once.
    constexpr std::uint64_t kRing = kRingHead + kWindow;
    if (most.stages && limits.shared_bytes > kSharedHead + most.bytes + kRing) {
        most.bytes =
            std::max(most.bytes, std::min<std::uint64_t>(kMostStageBytes, limits.shared_bytes - kSharedHead - kRing));
    }
    if (kSharedHead + most.bytes > limits.shared_bytes) {
        throw UnsupportedError("these commands take " + std::to_string(kSharedHead + most.bytes) +
                               " bytes of a block's memory, of which " + limits.name + " has " +
                               std::to_string(limits.shared_bytes));
    }
    launch.ring = static_cast<u32>((kSharedHead + most.bytes + 127) / 128 * 128);
    launch.slot_bytes = static_cast<u32>((most.slot_bytes + 127) / 128 * 128);
    if (launch.ring + kRingHead >= limits.shared_bytes) return;
    const auto slots = (limits.shared_bytes - launch.ring - kRingHead) / launch.slot_bytes;
    if (slots < kLeastSlots) return;
    launch.slots = static_cast<u32>(std::min<std::uint64_t>(slots, kMostSlots));
    launch.window = static_cast<u32>(std::clamp<std::uint64_t>(window / launch.slot_bytes, 1, launch.slots));
    // Where a command's weights are less than the ring holds, it is full at any time, and where the memory is nearly as
    // fast as the second-level cache nothing is gained by that: fetching would only be in the way. But a ring that is
    // too small for what has to be on its way is filled from that cache. What is fetched takes up to three fifths of
    // it.
    constexpr u32 kAhead = 12, kCacheCyclesOfKb = 48;
    const std::uint64_t slots_of_all = std::uint64_t{launch.slot_bytes} * limits.multiprocessors;
    const bool is_short = std::uint64_t{launch.slots} * launch.slot_bytes < window;
    if (!most.stages && (is_short || 2 * limits.cycles_of_kb > 3 * kCacheCyclesOfKb) &&
        2 * most.streamed > 3 * most.streaming * launch.slots * slots_of_all) {
        launch.ahead = static_cast<u32>(std::min<std::uint64_t>(kAhead, limits.cache_bytes * 3 / 5 / slots_of_all));
        launch.cycles_of_kb = limits.cycles_of_kb;
    }
}

std::span<const Command> running(const CudaProgram& p, const ReplayArgs& args, std::uint32_t most) {
    return p.list(args, most).commands().first(p.segment(args, most).n_commands);
}
std::uint32_t rows_of(const Chain& chain) {
    return std::ranges::max(chain.segments | std::views::transform([](const auto& s) { return s.args.rows; }));
}

std::string CudaDevice::Impl::command_name(const Chain& chain) const {
    std::size_t at = std::size_t{begun} + box().command;
    std::string name = "the end of the step";
    each_segment(chain, [&](const CudaProgram& p, const ReplayArgs& args, std::uint32_t most) {
        const auto commands = running(p, args, most);
        if (at < commands.size()) {
            name = std::string("[").append(p.table.labels[commands[at].label].full_name()).append("]");
        }
        at -= commands.size();  // far beyond all, once the name is found
    });
    return name;
}

void CudaDevice::Impl::wait(const Chain& chain, const Control* control, const Poll& poll) {
    constexpr auto kPollInterval = std::chrono::milliseconds(20), kBusy = std::chrono::milliseconds(2);
    const auto start = Clock::now();
    auto next_poll = start + kPollInterval;
    CUresult result;
    while ((result = d.cuStreamQuery(stream)) == kNotReady) {
        const auto now = Clock::now();
        bool halt = control && __atomic_load_n(&control->yield, __ATOMIC_RELAXED) != 0;
        if (poll && now >= next_poll) {
            next_poll = now + kPollInterval;
            halt = poll() || halt;
        }
        if (halt) __atomic_store_n(&box().halt, 1u, __ATOMIC_RELAXED);
        if (now - start > kBusy) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    d.check(result, command_name(chain));
}

void CudaDevice::Impl::start(LaunchParams& given) {
    Launch& of = given.launch;
    const auto segments = std::span(given.segments).first(of.n_segments);
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < segments.size(); ++i) {
        all += std::uint64_t{segments[i].n_commands} * of.steps;
        // What a program shares with the host is copied once, however often it runs.
        const auto is_same = [&](const LaunchSegment& s) { return s.mirrors == segments[i].mirrors; };
        if (std::ranges::any_of(segments.first(i), is_same)) segments[i].n_mirrors = 0;
    }
    of.number = numbers(all);
    of.parity = parity;
    box() = {};
    void* params[] = {&given};
    d.check(d.cuLaunchCooperativeKernel(function, limits.multiprocessors, 1, 1, kBlockThreads, 1, 1,
                                        static_cast<unsigned>(limits.shared_bytes), stream, params),
            "starting the interpreter");
    parity = 1 - parity;  // behind the check: what was not launched has not cleared the other counter
}

void CudaDevice::Impl::end(const Chain& chain, const Control* control, const Poll& poll) {
    wait(chain, control, poll);
    if (box().error != kNoError) clear(barrier);
    if (box().error == kSharedElsewhere) {
        throw DeviceError("a block's shared memory does not begin at " + std::to_string(limits.shared_base) +
                          ", behind what the driver says that CUDA keeps");
    }
    if (box().error != kNoError) {
        throw DeviceError(command_name(chain) + " did not end in time on the GPU: some block waited for " +
                          std::to_string(timeout_ms) + " ms");
    }
}

bool CudaDevice::Impl::prepare(const Chain& chain, Control* control, const Poll& poll, u64* times) {
    static_assert(kLaunchSegments == kMaxSegments);
    context.use();
    prepared = {};
    Launch& launch = prepared.launch;
    lists.clear();
    begun = commands = 0;
    Needs needs;
    each_segment(chain, [&](const CudaProgram& program, const ReplayArgs& args, std::uint32_t most) {
        LaunchSegment& s = prepared.segments[launch.n_segments];
        s = program.segment(args, most);
        needs.add(*program.list(args, most).needs());
        if (s.n_commands == 0) return;
        ++launch.n_segments;
        commands += s.n_commands;
        lists.push_back(running(program, args, most));
    });
    if (launch.n_segments == 0 || chain.times == 0) return false;
    Needs all = wanted_now();
    all.add(needs);
    function = modules.interpreter(needs, all, poll);
    if (!function) return false;
    launch.steps = chain.times;
    launch.more_steps = chain.more_steps;
    launch.more_keys = chain.more_keys;
    launch.timeout_ns = timeout_ms * 1'000'000;
    launch.barrier = reinterpret_cast<Barrier*>(barrier.device);
    launch.parts = reinterpret_cast<u64>(parts.device);
    launch.words = reinterpret_cast<u64*>(words.device);
    launch.mailbox = reinterpret_cast<Mailbox*>(Memory::allocation(mailbox).host_seen);
    launch.cards = cards;
    launch.stop = reinterpret_cast<const u32*>(control ? memory.device_copy(&control->stop) : 0);
    launch.times = times;
    set_ring(chain, launch);
    const auto takes_ring = [](std::span<const Command> list) {
        return std::ranges::any_of(list, [](const Command& c) { return is_adapted(c) || is_norm_of_rows(c); });
    };
    if (launch.slots == 0 && std::ranges::any_of(lists, takes_ring)) {
        throw UnsupportedError("some of these matmuls take a ring of weights in a block's memory, for which " +
                               limits.name + " has no room");
    }
    return true;
}

std::uint32_t CudaDevice::Impl::run(const Chain& chain, Control* control, const Poll& poll, u64* times,
                                    const Meanwhile& meanwhile) {
    if (!prepare(chain, control, poll, times)) return 0;
    const std::uint32_t rows = rows_of(chain);
    const bool cuts = longest > 0 && chain.times == 1 && rows > kFewRows && !times;
    bool told = true;
    while (begun < commands) {
        Piece piece = piece_of(prepared, lists, begun, cuts ? pace.commands(longest, rows) : commands);
        const auto began = Clock::now();
        start(piece.launch);
        if (begun == 0 && meanwhile) told = meanwhile();
        end(chain, control, poll);
        if (cuts) {
            pace.learn(piece.commands, rows, std::chrono::duration<double>(Clock::now() - began).count());
        }
        begun += piece.commands;
    }
    return told ? box().steps : 0;
}

PartedChain parted(const Chain& chain) {
    const auto done = static_cast<std::uint32_t>(chain.segments.front().program->table.commands.size());
    Chain first = chain, rest = chain;
    first.times = rest.times = 1;
    first.segments = chain.segments.first(1);
    rest.segments = chain.segments.subspan(1);
    rest.commands -= std::min(rest.commands, done);
    return {first, rest};
}

CudaDevice::CudaDevice(int number) : impl_(std::make_unique<Impl>(gpu_numbered(number))) {}

CudaDevice::~CudaDevice() {
    // In a process that was forked nothing of the GPU's can be given back.
    if (!impl_->context.is_here()) static_cast<void>(impl_.release());
}

std::string CudaDevice::name() const { return impl_->limits.name; }

std::string CudaDevice::isa() const { return impl_->limits.arch; }

std::uint64_t CudaDevice::memory() const { return impl_->limits.memory; }

std::optional<std::uint64_t> CudaDevice::memory_left() const {
    impl_->context.use();
    std::size_t free = 0, total = 0;
    impl_->d.check(impl_->d.cuMemGetInfo(&free, &total), "asking how much GPU memory is free");
    return free;
}

Buffer CudaDevice::allocate(std::uint64_t bytes, MemoryKind kind) {
    impl_->context.use();
    return impl_->memory.allocate(bytes, kind);
}

void CudaDevice::release(Buffer& buffer) {
    if (impl_->context.try_use()) impl_->memory.release(buffer);
}

void CudaDevice::upload(const Binding& to, std::span<const std::byte> bytes) {
    impl_->context.use();
    impl_->memory.upload(to, bytes);
}

void CudaDevice::download(const Binding& from, std::span<std::byte> bytes) {
    impl_->context.use();
    impl_->memory.download(from, bytes);
}

Weight CudaDevice::prepare_weight(const HostTensor& t) {
    const Weight w = allocate_weight(t);
    if (t.scales.empty()) {
        upload_packed(impl_->memory, w.data, t);
        return w;
    }
    upload(w.data, t.bytes);
    upload(w.scales, t.scales);
    if (w.biases) upload(w.biases, t.biases);
    return w;
}

Weight CudaDevice::prepare_experts(std::span<const HostTensor> experts) {
    const Weight w = allocate_experts(experts);
    const HostTensor& first = experts.front();
    const ExpertLayout layout = expert_layout(first.dtype, first.rows, first.cols);
    for (std::uint64_t i = 0; i < experts.size(); ++i) {
        const HostTensor& t = experts[i];
        const Binding at{w.data.buffer, i * layout.bytes};
        if (t.scales.empty()) {
            upload_packed(impl_->memory, at, t);
            continue;
        }
        upload(at, t.bytes);
        upload({at.buffer, at.offset + layout.extras}, t.scales);
        if (!t.biases.empty()) upload({at.buffer, at.offset + layout.biases}, t.biases);
    }
    return w;
}

Weight CudaDevice::map_weight(const HostTensor& t) { return prepare_weight(t); }

std::unique_ptr<Program> CudaDevice::compile(DispatchTable table) {
    impl_->context.use();
    const Geometry geometry{impl_->limits.shared_bytes, impl_->limits.multiprocessors};
    Schedules schedules = compile_schedules(table, geometry);
    impl_->make_parts(result_bytes(table));
    DeviceBuffer maps;
    if (impl_->limits.compute_major >= kBoxCompute) maps = map_boxes(impl_->d, *this, table, schedules);
    auto program = std::make_unique<CudaProgram>(std::move(table), *this, std::move(schedules), std::move(maps));
    for (const auto& needs : program->needs()) impl_->wanted.push_back(needs);
    return program;
}

void CudaDevice::prepare_kernels(const Report& report) {
    impl_->context.use();
    const Needs all = impl_->wanted_now();
    const std::string what = "compiling kernels for " + name() + " (once)";
    impl_->modules.interpreter(all, all, [&] {
        report(what);
        return false;
    });
}

std::uint32_t CudaDevice::replay(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile) {
    if (!meanwhile) return impl_->run(chain, &control, poll, nullptr, {});
    // A launch of its own for the first segment of the first step, which the others wait for.
    const auto [first, rest] = parted(chain);
    if (impl_->run(first, &control, poll, nullptr, meanwhile) == 0) return 0;
    return impl_->run(rest, &control, poll, nullptr, {}) == 0 ? 0 : 1;
}

void CudaDevice::profile(Segments segments, std::span<double> seconds) {
    const Chain once{.segments = segments};
    std::vector<std::size_t> places;  // in `seconds`, of what runs
    std::size_t before = 0;
    each_segment(once, [&](const CudaProgram& p, const ReplayArgs& args, std::uint32_t most) {
        for (const Command& c : running(p, args, most)) places.push_back(before + c.label);
        before += p.table.commands.size();
    });
    const DeviceBuffer times(*this, (places.size() + 1) * sizeof(u64), MemoryKind::kDevice);
    impl_->run(once, nullptr, {}, times.at().as<u64>(), {});
    std::vector<u64> at(places.size() + 1);
    download(times.at(), std::as_writable_bytes(std::span(at)));
    for (std::size_t i = 0; i < places.size(); ++i) {
        seconds[places[i]] += static_cast<double>(at[i + 1] - at[i]) * 1e-9;
    }
}

std::future<std::shared_ptr<void>> open_ahead() {
    return std::async(std::launch::async, []() -> std::shared_ptr<void> {
        std::string why;
        if (find_gpus(why).empty()) return nullptr;
        try {
            return std::make_shared<Context>(driver(), 0);
        } catch (const DeviceError&) {
            return nullptr;  // whoever needs it is told
        }
    });
}

std::vector<Gpu> find_gpus(std::string& why) {
    const Driver* d = find_driver(why);
    if (!d || !has_compiler(why)) return {};
    std::vector<Gpu> found;
    try {
        int count = 0;
        d->check(d->cuDeviceGetCount(&count), "counting the GPUs");
        for (int number = 0; number < count; ++number) {
            const Limits limits = limits_of(*d, number);
            if (!limits.cooperative) {
                why = limits.name + " does not start kernels whose blocks wait for one another";
            } else if (limits.compute_major < kLeastCompute) {
                why = limits.name + " is of " + limits.arch + "; the tensor cores of sm_80 or later are needed";
            } else {
                found.push_back({limits.name, limits.arch, limits.memory, number});
                continue;
            }
            if (number == 0) return {};
        }
    } catch (const DeviceError& e) {
        why = e.what();
        if (found.empty()) return {};
    }
    return found;
}

Buffer CudaDevice::mirror(const Buffer& shared) {
    impl_->context.use();
    return impl_->memory.mirror(shared);
}

void CudaDevice::reach(const CudaDevice& other) {
    const Limits &mine = impl_->limits, &its = other.impl_->limits;
    if (mine.name != its.name || mine.arch != its.arch || mine.multiprocessors != its.multiprocessors ||
        mine.shared_bytes != its.shared_bytes) {
        const auto text = [](const Impl& of) {
            return "GPU " + std::to_string(of.device) + " is " + of.limits.name + " with " +
                   std::to_string(of.limits.multiprocessors) + " multiprocessors";
        };
        throw DeviceError(text(*impl_) + ", " + text(*other.impl_) +
                          "; a model is spread over GPUs of one kind, else the faster one waits");
    }
    impl_->context.reach(other.impl_->context);
}

void CudaDevice::set_cards(u32 count, u32 mine) {
    impl_->cards.count = static_cast<unsigned short>(count);
    impl_->cards.mine = static_cast<unsigned short>(mine);
    impl_->modules.set_cards(count);
}

u64* CudaDevice::make_card_words(std::uint64_t words) {
    impl_->context.use();
    impl_->memory.release(impl_->card_words);
    const std::uint64_t all = kCardEnds + 2 * words * impl_->cards.count;
    impl_->card_words = impl_->memory.allocate(all * sizeof(u64), MemoryKind::kDevice);
    return reinterpret_cast<u64*>(impl_->card_words.device);
}

void CudaDevice::set_card_words(std::span<u64* const> of_cards, std::uint64_t words) {
    impl_->cards.apart = static_cast<u32>(words);
    std::ranges::copy(of_cards, impl_->cards.words);
}

u32 CudaDevice::number() const { return impl_->number; }

bool CudaDevice::prepare(const Chain& chain, Control* control, const Poll& poll, u32 number) {
    impl_->number = number;
    if (!impl_->prepare(chain, control, poll, nullptr)) return false;
    // Should numbers begin again: before another GPU's do.
    impl_->number = impl_->numbers(std::uint64_t{impl_->commands} * chain.times);
    return true;
}

void CudaDevice::start() {
    impl_->context.use();
    impl_->start(impl_->prepared);
}

std::uint32_t CudaDevice::finish(const Chain& chain, const Control* control, const Poll& poll) {
    impl_->context.use();
    impl_->end(chain, control, poll);
    return impl_->box().steps;
}

}  // namespace akunu::cuda
