// What a CPU kernel is, and the sets of them: one per instruction set, chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/dispatch.h"

namespace akunu::cpu {

class Team;
struct Seat;
struct WholeFormat;

// Pieces of a command's work that one thread has claimed: [begin, end), then the next ones, until there are none.
// A piece is finished when `next` is called again, or the object ends.
class Claims {
  public:
    Claims(const Team& team, Seat& seat, int index, std::uint64_t tag, std::uint64_t n, std::uint64_t bytes);
    ~Claims();
    Claims(const Claims&) = delete;
    Claims& operator=(const Claims&) = delete;

    bool next();
    std::uint64_t begin = 0, end = 0;

  private:
    bool claim_from(int seat);

    const Team& team_;
    Seat& seat_;
    const int index_;
    const std::uint64_t tag_, n_, pieces_;
    int tried_ = 0;  // seats that have nothing left
    bool holds_ = false;
};

// The thread that runs a kernel.
struct Worker {
    int index = 0;  // among `count`
    int count = 1;
    std::byte* scratch = nullptr;  // kWorkerScratch bytes, private to the thread
    const Team* team = nullptr;
    Seat* seat = nullptr;
    std::uint64_t tag = 0;  // of the command, among all that the team runs

    // A command's work is n items, each worth the time in which a thread reads `bytes` from memory (16 take about a
    // nanosecond). A kernel calls this once, takes all pieces that it gets, and reads and writes buffers only for
    // them: the thread may be a late one, and without a piece nothing keeps the others from going on meanwhile.
    Claims claim(std::uint64_t n, std::uint64_t bytes) const;
};

constexpr std::size_t kWorkerScratch = std::size_t{4} << 20;
// Most f32 of a row, and of a head, that kernels may keep there: attention keeps 64 queries, their outputs and a panel
// of 32 keys, and its merge as many heads as make whole blocks of 32.
constexpr std::size_t kMaxRow = kWorkerScratch / sizeof(float);
constexpr std::size_t kMaxHead = kMaxRow / 256;
// Most experts, and of them those of a row.
constexpr std::size_t kMostExperts = 2048, kMostChosen = 32;
// Bytes of a worker's scratch that the lists of a step's choices may take.
constexpr std::size_t kMostChoiceBytes = kWorkerScratch / 2;

// `params` are the command's parameters with this step's patches applied. Workers that are there call the kernel; each
// does what it claims.
using Kernel = void (*)(const DispatchCmd& cmd, const std::byte* params, const Worker& worker);

template <typename P>
const P& params_as(const std::byte* p) {
    return *reinterpret_cast<const P*>(p);
}

// Consecutive weights to be quantised: whole blocks, at most a batch.
struct Batch {
    const float* values;
    const float* importance;  // of each of `columns`, or null
    std::uint64_t column;     // of the first value
    std::uint64_t columns;
    std::uint64_t n;
};

// Turns batches into blocks; `run` is null for types that are not quantised.
struct Quantizer {
    void (*run)(const Batch& in, std::byte* out) = nullptr;
    std::uint64_t batch = 0;  // weights
};

// All kernels compiled for one instruction set.
struct KernelSet {
    std::string_view isa;
    int lanes;                               // floats in a vector, and rows in a packed group
    bool (*supported)();                     // does this processor have it?
    Kernel (*find)(const DispatchCmd& cmd);  // null when there is none
    Quantizer (*quantizer)(DType type);
    // Peak probes: operations done, for `measure_peaks`.
    double (*probe_f32)(std::uint64_t iterations);
    double (*probe_int8)(std::uint64_t iterations);
    double (*probe_read)(const std::byte* data, std::uint64_t bytes);
    const WholeFormat *whole_sequences = nullptr,
                      *whole_rows = nullptr;  // of Whole::kSequences and kRows: see cpu/whole.h
};

// Best first. Only those compiled into this build.
std::span<const KernelSet* const> kernel_sets();
// The set of that name. Throws InvalidArgumentError, which names `option`, when it is unknown or cannot run here.
const KernelSet& kernel_set(std::string_view isa, std::string_view option);
// The best set that this processor supports, or the one that AKUNU_CPU_ISA names.
const KernelSet& select_kernels();

}  // namespace akunu::cpu
