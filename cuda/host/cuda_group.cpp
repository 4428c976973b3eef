#include "cuda/host/cuda_group.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/split.h"

namespace akunu::cuda {

namespace {

// What a buffer of the group is: one of each GPU.
struct Parts {
    std::vector<Buffer> of;
};
const Buffer& part_of(const Buffer& buffer, std::size_t card) {
    return static_cast<const Parts*>(buffer.handle)->of.at(card);
}
Binding part_of(const Binding& b, std::size_t card) {
    return b ? Binding{part_of(b.buffer, card), b.offset, b.bytes} : Binding{};
}

class GroupProgram final : public Program {
  public:
    GroupProgram(DispatchTable t, std::vector<std::unique_ptr<Program>> of)
        : Program(std::move(t)), cards(std::move(of)) {
        for (std::size_t i = 0; i < table.commands.size(); ++i) {
            table.commands[i].merged = cards.front()->table.commands[i].merged;
        }
    }
    std::vector<std::unique_ptr<Program>> cards;
};

// A chain as one GPU runs it.
struct CardChain {
    std::vector<akunu::Segment> segments;
    Chain chain;

    CardChain(const Chain& whole, std::size_t card) : segments(whole.segments.begin(), whole.segments.end()) {
        for (akunu::Segment& s : segments) {
            s.program = static_cast<const GroupProgram&>(*s.program).cards.at(card).get();
        }
        chain = whole;
        chain.segments = segments;
    }
};
std::deque<CardChain> chains_of(const Chain& whole, std::size_t cards) {
    std::deque<CardChain> out;
    for (std::size_t i = 0; i < cards; ++i) out.emplace_back(whole, i);
    return out;
}

// Of the process: what two groups started at the same time might begin on their GPUs in different orders, and wait for
// each other.
std::timed_mutex run_mutex;

// Words that a table's sums need of a GPU.
std::uint64_t words_of(const DispatchTable& table) {
    std::uint64_t most = 0;
    for (const DispatchCmd& c : table.commands) {
        if (c.op != Op::kAllReduce) continue;
        const auto p = c.params_as<AllReduceParams>();
        most = std::max(most, std::uint64_t{p.rows} * p.dim);
    }
    return most;
}

}  // namespace

CudaGroup::CudaGroup(std::span<const int> numbers) {
    if (numbers.size() > kMostCards) {
        throw UnsupportedError("a model is spread over " + std::to_string(numbers.size()) + " GPUs; at most " +
                               std::to_string(kMostCards) + " are supported");
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (std::ranges::find(numbers.first(i), numbers[i]) != numbers.begin() + static_cast<std::ptrdiff_t>(i)) {
            throw DeviceError("GPU " + std::to_string(numbers[i]) + " is named twice; each is named once");
        }
    }
    for (const int number : numbers) cards_.push_back(std::make_unique<CudaDevice>(number));
    for (std::size_t i = 0; i < cards_.size(); ++i) {
        for (std::size_t other = 0; other < cards_.size(); ++other) {
            if (i != other) cards_[i]->reach(*cards_[other]);
        }
        cards_[i]->set_cards(static_cast<u32>(cards_.size()), static_cast<u32>(i));
    }
    traits_.cards = static_cast<std::uint32_t>(cards_.size());
    make_words(1);
}

CudaGroup::~CudaGroup() = default;

void CudaGroup::make_words(std::uint64_t words) {
    if (words <= words_) return;
    if (words > UINT32_MAX) throw UnsupportedError("steps of so many rows are too many for several GPUs");
    words_ = 0;  // until all have theirs
    std::vector<u64*> at;
    for (const auto& card : cards_) at.push_back(card->make_card_words(words));
    for (const auto& card : cards_) card->set_card_words(at, words);
    words_ = words;
}

std::string CudaGroup::name() const { return std::to_string(cards_.size()) + " × " + cards_.front()->name(); }

std::optional<std::uint64_t> CudaGroup::memory_left() const {
    std::optional<std::uint64_t> least;
    for (const auto& card : cards_) {
        const auto left = card->memory_left();
        least = std::min(least.value_or(*left), *left);
    }
    return least;
}

Buffer CudaGroup::joined(std::vector<Buffer> parts) {
    const Buffer first = parts.front();
    return {new Parts{std::move(parts)}, first.device, first.host, first.size};
}

Buffer CudaGroup::allocate(std::uint64_t bytes, MemoryKind kind) {
    std::vector<Buffer> parts;
    try {
        for (const auto& card : cards_) {
            const bool copies = kind == MemoryKind::kShared && !parts.empty();
            parts.push_back(copies ? card->mirror(parts.front()) : card->allocate(bytes, kind));
        }
    } catch (...) {
        for (std::size_t i = 0; i < parts.size(); ++i) cards_[i]->release(parts[i]);
        throw;
    }
    return joined(std::move(parts));
}

void CudaGroup::release(Buffer& buffer) {
    if (!buffer.handle) return;
    const std::unique_ptr<Parts> parts(static_cast<Parts*>(buffer.handle));
    // The first one's last: others use its memory of the host.
    for (std::size_t i = cards_.size(); i-- > 0;) cards_[i]->release(parts->of[i]);
    buffer = {};
}

void CudaGroup::upload(const Binding& to, std::span<const std::byte> bytes) {
    const std::size_t copies = to.buffer.host ? 1 : cards_.size();
    for (std::size_t i = 0; i < copies; ++i) cards_[i]->upload(part_of(to, i), bytes);
}

void CudaGroup::upload_part(const Binding& to, std::uint32_t card, std::span<const std::byte> bytes) {
    cards_.at(card)->upload(part_of(to, card), bytes);
}

void CudaGroup::download(const Binding& from, std::span<std::byte> bytes) {
    cards_.front()->download(part_of(from, 0), bytes);
}

Weight CudaGroup::joined(std::span<const Weight> parts) {
    std::vector<Buffer> buffers;
    for (const Weight& w : parts) buffers.push_back(w.data.buffer);
    Weight all = parts.front();
    const Buffer buffer = joined(std::move(buffers));
    for (Binding* b : {&all.data, &all.scales, &all.biases}) {
        if (*b) b->buffer = buffer;
    }
    return all;
}

Weight CudaGroup::prepare_weight(const HostTensor& t) {
    std::vector<Weight> parts;
    try {
        for (std::uint32_t i = 0; i < traits_.cards; ++i) {
            parts.push_back(cards_[i]->prepare_weight(TensorPart(t, i, traits_.cards).tensor()));
        }
    } catch (...) {
        for (std::size_t i = 0; i < parts.size(); ++i) cards_[i]->release(parts[i].data.buffer);
        throw;
    }
    return joined(parts);
}

Weight CudaGroup::prepare_experts(std::span<const HostTensor> experts) {
    std::vector<Weight> parts;
    try {
        for (const auto& card : cards_) parts.push_back(card->prepare_experts(experts));
    } catch (...) {
        for (std::size_t i = 0; i < parts.size(); ++i) cards_[i]->release(parts[i].data.buffer);
        throw;
    }
    return joined(parts);
}

std::unique_ptr<Program> CudaGroup::compile(DispatchTable table) {
    make_words(words_of(table));
    std::vector<std::unique_ptr<Program>> programs;
    for (std::size_t i = 0; i < cards_.size(); ++i) {
        DispatchTable own = table;
        for (DispatchCmd& c : own.commands) {
            for (std::size_t b = 0; b < c.n_buffers; ++b) c.buffers[b] = part_of(c.buffers[b], i);
        }
        programs.push_back(cards_[i]->compile(std::move(own)));
    }
    return std::make_unique<GroupProgram>(std::move(table), std::move(programs));
}

void CudaGroup::prepare_kernels(const Report& report) {
    for (const auto& card : cards_) card->prepare_kernels(report);
}

std::uint32_t CudaGroup::run(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile) {
    std::unique_lock lock(run_mutex, std::defer_lock);
    while (!lock.try_lock_for(std::chrono::milliseconds(20))) {
        if (poll && poll()) return 0;
    }
    // Kernels first, which may take long: who runs waits for the others.
    const std::deque<CardChain> of = chains_of(chain, cards_.size());
    const u32 number = cards_.front()->number();
    for (std::size_t i = 0; i < cards_.size(); ++i) {
        if (!cards_[i]->prepare(of[i].chain, &control, poll, number)) return 0;
    }
    std::exception_ptr failure;
    const auto attempt = [&](auto&& f) {
        try {
            f();
        } catch (...) {
            if (!failure) failure = std::current_exception();
        }
    };
    std::size_t started = 0;
    attempt([&] {
        for (; started < cards_.size(); ++started) cards_[started]->start();
    });
    const bool told = failure || !meanwhile || meanwhile();
    std::uint32_t steps = 0;
    for (std::size_t i = 0; i < started; ++i) {
        attempt([&] {
            // All end with the first one, which alone is told when to.
            const std::uint32_t done =
                cards_[i]->finish(of[i].chain, i == 0 ? &control : nullptr, i == 0 ? poll : Poll{});
            if (i == 0) steps = done;
        });
    }
    if (failure) std::rethrow_exception(failure);
    return told ? steps : 0;
}

std::uint32_t CudaGroup::replay(const Chain& chain, Control& control, const Poll& poll, const Meanwhile& meanwhile) {
    if (!meanwhile) return run(chain, control, poll, {});
    const auto [first, rest] = parted(chain);
    if (run(first, control, poll, meanwhile) == 0) return 0;
    return run(rest, control, poll, {}) == 0 ? 0 : 1;
}

void CudaGroup::profile(Segments segments, std::span<double> seconds) {
    const std::lock_guard lock(run_mutex);
    const std::deque<CardChain> of = chains_of({.segments = segments}, cards_.size());
    // So that the first one's kernels are there; it is prepared again when it runs.
    if (!cards_.front()->prepare(of.front().chain, nullptr, {}, cards_.front()->number())) return;
    const u32 number = cards_.front()->number();
    for (std::size_t i = 1; i < cards_.size(); ++i) cards_[i]->prepare(of[i].chain, nullptr, {}, number);
    for (std::size_t i = 1; i < cards_.size(); ++i) cards_[i]->start();
    cards_.front()->profile(of.front().segments, seconds);
    for (std::size_t i = 1; i < cards_.size(); ++i) cards_[i]->finish(of[i].chain, nullptr, {});
}

}  // namespace akunu::cuda
