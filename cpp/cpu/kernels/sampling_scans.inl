// What the sampler has in common: candidates, scratch memory, and passes over all tokens of a row. docs/sampling.md
// defines what each step means.
//
// A vocabulary may have 250,000 tokens, so the steps read it in whole vectors and sort only short lists. Survivors are
// either all tokens, with those that were dropped at -inf, or a list of a few. All memory is the worker's scratch.

namespace akunu::cpu::AKUNU_ISA {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMaxFloat = std::numeric_limits<float>::max();
constexpr u32 kBlock = 1024;    // floats summed before they are added to a double
constexpr u32 kMaxList = 2048;  // candidates in a list
constexpr u32 kMaxHeap = 1024;  // a larger top-k is found by histogram
constexpr u32 kBuckets = 2048;  // of a histogram
static_assert(kMaxLogprobs <= kMaxHeap && kMaxHeap <= kMaxList);

struct Candidate {
    float key;    // what the list is ordered by, smallest first
    float logit;  // relative to the best of all tokens, and divided by the temperature
    u32 id;
    friend bool operator<(const Candidate& a, const Candidate& b) {
        return a.key < b.key || (a.key == b.key && a.id < b.id);
    }
};

struct SampleScratch {
    double weight[kBuckets];
    Candidate list[kMaxList];
};
static_assert(sizeof(SampleScratch) <= kWorkerScratch);

// ---- passes over all tokens ----------------------------------------------------------------

// NaN, which only a damaged model gives, counts as -inf; too large counts as the largest float.
static inline vf finite(vf x) { return min_(max_(x, set1(-kInfinity)), set1(kMaxFloat)); }
static inline float finite(float x) { return !(x > -kInfinity) ? -kInfinity : x < kMaxFloat ? x : kMaxFloat; }

// x[i..i + lanes); missing lanes are dropped tokens.
static inline vf load_tokens(const float* x, u32 lanes) {
    return lanes >= u32{L} ? load(x) : load_first(x, static_cast<int>(lanes), -kInfinity);
}
static inline void store_tokens(float* x, vf v, u32 lanes) {
    if (lanes >= u32{L}) {
        store(x, v);
    } else {
        store_first(x, v, static_cast<int>(lanes));
    }
}

// The largest of x; NaN is passed over.
static inline float max_of(const float* x, u32 n) {
    vf top = set1(-kInfinity), top2 = top;
    u32 i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
        top = max_(load(x + i), top);
        top2 = max_(load(x + i + L), top2);
    }
    for (; i < n; i += L) top = max_(load_tokens(x + i, n - i), top);
    return reduce_max(max_(top, top2));
}

struct Best {
    float logit;
    u32 id;
};

// The best token, the lowest id where several are equal. Without any above -inf: token 0.
static inline Best best_of(const float* x, u32 n) {
    Best best{-kInfinity, 0};
    for (u32 i = 0; i < n; i += kBlock) {
        const float m = max_of(x + i, n - i < kBlock ? n - i : kBlock);
        if (m > best.logit) best = {m, i};
    }
    if (best.logit == -kInfinity) return {-kInfinity, 0};
    while (x[best.id] != best.logit) ++best.id;
    return best;
}

// Sum of exp(x - shift).
static inline double sum_exp(const float* x, u32 n, float shift) {
    double total = 0;
    for (u32 begin = 0; begin < n; begin += kBlock) {
        vf sum = zero();
        const u32 end = n - begin < kBlock ? n : begin + kBlock;
        for (u32 i = begin; i < end; i += L) sum += exp_(load_tokens(x + i, end - i) - set1(shift));
        total += static_cast<double>(reduce_add(sum));
    }
    return total;
}

// A row whose logits were asked for: where its token's successor goes.
struct LogitRow {
    u32 slot, position;  // of the token to be sampled
};
static inline LogitRow logit_row(const Row* rows, const u32* logit_rows, const SampleParams& p, u32 i) {
    const Row& row = rows[logit_rows[i]];
    return {row.slot, row.position + p.step + 1};
}

// Calls f(i) for the rows that this worker gets.
template <typename F>
static inline void for_logit_rows(const SampleParams& p, const Worker& worker, F&& f) {
    auto rows = worker.claim(p.rows, 16 * std::uint64_t{p.vocab});
    while (rows.next()) {
        for (auto i = static_cast<u32>(rows.begin); i < rows.end; ++i) f(i);
    }
}

}  // namespace akunu::cpu::AKUNU_ISA
