// The sampler's cuts: an order of the tokens, the place in it where a count or a mass is reached, and what survives.

namespace akunu::cpu::AKUNU_ISA {

// ---- cutting an order ----------------------------------------------------------------------

// Orders of the tokens, by keys >= 0 of their relative logits, smallest first; dropped tokens have +inf.
struct ByLogit {
    vf operator()(vf t) const { return zero() - t; }
};
struct ByDistance {  // from the mean logit
    float mean;
    vf operator()(vf t) const {
        const vf d = t - set1(mean);
        return max_(d, zero() - d);
    }
};
template <typename Key>
static inline float key_of(const Key& key, float t) {
    return key(set1(t))[0];
}

// What comes after this (key, id) is dropped.
struct Cut {
    float key;
    u32 id;
};

// Where the tokens before, with their masses (or, for `kCount`, as many of them), first reach `want`. A histogram of
// the keys' leading bits finds the bucket, one of the next bits within it the part of it, and so on.
template <bool kCount, typename Key>
static Cut find_cut(const float* x, u32 n, const Key& key, double want, SampleScratch& scratch) {
    constexpr u32 kChunk = 256;
    alignas(64) float keys[kChunk], masses[kChunk];
    const auto for_each = [&](auto&& visit) {  // until it returns true
        for (u32 begin = 0; begin < n; begin += kChunk) {
            const u32 count = n - begin < kChunk ? n - begin : kChunk;
            for (u32 i = 0; i < count; i += L) {
                const vf t = load_tokens(x + begin + i, count - i);
                store(keys + i, key(t));
                store(masses + i, kCount ? t > set1(-kInfinity) ? set1(1) : zero() : exp_(t));
            }
            for (u32 i = 0; i < count; ++i) {
                u32 bits;
                std::memcpy(&bits, keys + i, 4);
                if (visit(begin + i, bits, masses[i])) return;
            }
        }
    };
    double before = 0;
    u32 prefix = 0;
    int known = 32;  // bits below this one are still to be found; the sign is known to be 0
    for (const int shift : {21, 10, 0}) {
        std::memset(scratch.weight, 0, sizeof scratch.weight);
        for_each([&](u32, u32 bits, float mass) {
            if (known == 32 || bits >> known == prefix) {
                scratch.weight[(bits >> shift) & ((1u << (known - shift)) - 1)] += static_cast<double>(mass);
            }
            return false;
        });
        // Where rounding keeps the sum below `want`, the last bucket that holds anything.
        u32 chosen = 0;
        double sum = before, before_chosen = before;
        for (u32 b = 0; b < 1u << (known - shift); ++b) {
            if (scratch.weight[b] == 0) continue;
            chosen = b;
            before_chosen = sum;
            sum += scratch.weight[b];
            if (sum >= want) break;
        }
        before = before_chosen;
        prefix = (known == 32 ? 0 : prefix << (known - shift)) | chosen;
        known = shift;
    }
    Cut cut{0, 0};
    std::memcpy(&cut.key, &prefix, 4);
    for_each([&](u32 id, u32 bits, float mass) {
        if (bits != prefix) return false;
        cut.id = id;
        before += static_cast<double>(mass);
        return before >= want;
    });
    return cut;
}

// Sets what comes after the cut to -inf.
template <typename Key>
static void drop_after(float* x, u32 n, const Key& key, Cut cut) {
    const auto keep = [&](u32 begin, u32 end, auto&& kept) {
        for (u32 i = begin; i < end; i += L) {
            const vf t = load_tokens(x + i, end - i);
            store_tokens(x + i, kept(key(t)) ? t : set1(-kInfinity), end - i);
        }
    };
    keep(0, cut.id + 1, [&](vf k) { return k <= set1(cut.key); });
    keep(cut.id + 1, n, [&](vf k) { return k < set1(cut.key); });
}

// ---- survivors -----------------------------------------------------------------------------

struct Survivors {
    float* x;  // [n] relative logits of all tokens, when not `listed`
    u32 n;
    SampleScratch& scratch;
    bool listed = false;
    u32 count = 0;  // of the list

    std::span<Candidate> list() const { return {scratch.list, count}; }
};

// The k best of x, in any order.
static u32 k_best(const float* x, u32 n, u32 k, Candidate* heap) {
    const auto candidate = [&](u32 id) { return Candidate{-finite(x[id]), finite(x[id]), id}; };
    for (u32 i = 0; i < k; ++i) heap[i] = candidate(i);
    std::make_heap(heap, heap + k);  // the worst on top
    constexpr u32 kStep = 8 * L;
    for (u32 i = k; i < n; i += kStep) {
        const u32 count = n - i < kStep ? n - i : kStep;
        if (!(max_of(x + i, count) > heap[0].logit)) continue;
        for (u32 id = i; id < i + count; ++id) {
            if (!(x[id] > heap[0].logit)) continue;  // an equal logit with a higher id loses
            std::pop_heap(heap, heap + k);
            heap[k - 1] = candidate(id);
            std::push_heap(heap, heap + k);
        }
    }
    return k;
}

static void keep_top_k(Survivors& s, u32 k) {
    if (k >= s.n) return;
    if (k <= kMaxHeap) {
        s.count = k_best(s.x, s.n, k, s.scratch.list);
        s.listed = true;
    } else {
        drop_after(s.x, s.n, ByLogit{}, find_cut<true>(s.x, s.n, ByLogit{}, k, s.scratch));
    }
}

// Lists the tokens with keys up to `depth`; false when they are too many.
template <typename Key>
static bool list_within(Survivors& s, const Key& key, float depth) {
    s.count = 0;
    for (u32 i = 0; i < s.n; i += 2 * L) {
        const u32 lanes = s.n - i, more = lanes > u32{L} ? lanes - u32{L} : 0;
        const vf a = load_tokens(s.x + i, lanes);
        const vf b = more ? load_tokens(s.x + i + L, more) : set1(-kInfinity);
        if (reduce_max(zero() - min_(key(a), key(b))) < -depth) continue;
        for (u32 id = i; id < i + 2 * L && id < s.n; ++id) {
            const float k = key_of(key, s.x[id]);
            if (!(k <= depth)) continue;
            if (s.count == kMaxList) return false;
            s.scratch.list[s.count++] = {k, s.x[id], id};
        }
    }
    s.listed = true;
    return true;
}

// Keeps the fewest tokens, smallest keys first, that hold a share `p` of the probability, but `least` if there are.
template <typename Key>
static void keep_mass(Survivors& s, const Key& key, double p, u32 least) {
    constexpr float kDepths[] = {1, 2, 4, 8, 16};
    double total = 0;
    if (s.listed) {
        for (Candidate& c : s.list()) {
            c.key = key_of(key, c.logit);
            total += std::exp(static_cast<double>(c.logit));
        }
    } else {
        double within[std::size(kDepths)] = {};
        for (u32 begin = 0; begin < s.n; begin += kBlock) {
            vf all = zero(), sums[std::size(kDepths)] = {};
            const u32 end = s.n - begin < kBlock ? s.n : begin + kBlock;
            for (u32 i = begin; i < end; i += L) {
                const vf t = load_tokens(s.x + i, end - i), e = exp_(t), k = key(t);
                all += e;
                for (std::size_t d = 0; d < std::size(kDepths); ++d) sums[d] += k <= set1(kDepths[d]) ? e : zero();
            }
            total += static_cast<double>(reduce_add(all));
            for (std::size_t d = 0; d < std::size(kDepths); ++d) within[d] += static_cast<double>(reduce_add(sums[d]));
        }
        constexpr double kRounding = 1 + 1e-5;
        std::size_t d = 0;
        while (d < std::size(kDepths) && within[d] < p * total * kRounding) ++d;
        if (d == std::size(kDepths) || !list_within(s, key, kDepths[d]) || s.count < std::min(least, s.n)) {
            s.listed = false;
            Cut cut = find_cut<false>(s.x, s.n, key, p * total, s.scratch);
            if (least > 1) {
                const Cut other = find_cut<true>(s.x, s.n, key, least, s.scratch);
                if (other.key > cut.key || (other.key == cut.key && other.id > cut.id)) cut = other;
            }
            drop_after(s.x, s.n, key, cut);
            return;
        }
    }
    const auto list = s.list();
    std::sort(list.data(), list.data() + list.size());
    double mass = 0;
    for (u32 i = 0; i < s.count; ++i) {
        mass += std::exp(static_cast<double>(list[i].logit));
        if (mass >= p * total && i + 1 >= least) s.count = i + 1;
    }
}

// Drops the tokens that are more than `sigmas` standard deviations of the logits below the best.
static void keep_sigmas(float* x, u32 n, float best, float sigmas) {
    double sum = 0, squares = 0, count = 0;
    for (u32 begin = 0; begin < n; begin += kBlock) {
        vf one = zero(), two = zero(), left = zero();
        const u32 end = n - begin < kBlock ? n : begin + kBlock;
        for (u32 i = begin; i < end; i += L) {
            const vf t = load_tokens(x + i, end - i);
            const auto valid = t > set1(-kInfinity);
            const vf d = valid ? t - set1(best) : zero();
            one += d;
            two = fma(d, d, two);
            left += valid ? set1(1) : zero();
        }
        sum += static_cast<double>(reduce_add(one));
        squares += static_cast<double>(reduce_add(two));
        count += static_cast<double>(reduce_add(left));
    }
    const double mean = sum / count, variance = squares / count - mean * mean;
    if (!std::isfinite(variance)) return;  // logits too large for it
    const auto floor = static_cast<float>(-static_cast<double>(sigmas) * std::sqrt(std::max(variance, 0.0)));
    for (u32 i = 0; i < n; i += L) {
        const vf t = load_tokens(x + i, n - i);
        store_tokens(x + i, t - set1(best) >= set1(floor) ? t : set1(-kInfinity), n - i);
    }
}

// Keeps the tokens from `gap` below the best on, but `least` if there are.
static void keep_above(Survivors& s, float gap, u32 least) {
    if (s.listed) {
        const auto list = s.list();
        for (Candidate& c : list) c.key = -c.logit;
        std::sort(list.data(), list.data() + list.size());
        const float top = list.front().logit;
        u32 n = 0;
        while (n < s.count && (n < least || s.scratch.list[n].logit - top >= gap)) ++n;
        s.count = n;
        return;
    }
    const float floor = best_of(s.x, s.n).logit + gap;
    u32 n = 0;
    for (u32 i = 0; i < s.n; ++i) n += s.x[i] >= floor;
    if (n < least) {
        drop_after(s.x, s.n, ByLogit{}, find_cut<true>(s.x, s.n, ByLogit{}, least, s.scratch));
        return;
    }
    for (u32 i = 0; i < s.n; i += L) {
        const vf t = load_tokens(s.x + i, s.n - i);
        store_tokens(s.x + i, t >= set1(floor) ? t : set1(-kInfinity), s.n - i);
    }
}

// XTC: drops the tokens with a probability from `threshold` on, but for the last of them. False where it drops none.
static bool exclude_top(Survivors& s, float threshold, u32 least) {
    double total = 0;
    if (s.listed) {
        for (const Candidate& c : s.list()) total += std::exp(static_cast<double>(c.logit));
    } else {
        total = sum_exp(s.x, s.n, 0);
    }
    const auto floor = std::log(static_cast<double>(threshold) * total);  // -inf where all reach it
    const auto each = [&](auto&& f) {                                     // f(logit, id), which may change the logit
        for (u32 i = 0; i < (s.listed ? s.count : s.n); ++i) {
            float& logit = s.listed ? s.scratch.list[i].logit : s.x[i];
            if (logit > -kInfinity) f(logit, s.listed ? s.scratch.list[i].id : i);
        }
    };
    u32 left = 0, likely = 0;
    Best last{kInfinity, 0};
    each([&](float logit, u32 id) {
        ++left;
        if (static_cast<double>(logit) < floor) return;
        ++likely;
        if (logit < last.logit || (logit == last.logit && id > last.id)) last = {logit, id};
    });
    if (likely < 2 || left - (likely - 1) < least) return false;
    each([&](float& logit, u32 id) {
        if (static_cast<double>(logit) >= floor && id != last.id) logit = -kInfinity;
    });
    return true;
}

// Mean of the relative logits under their own distribution. A token's surprise differs from the entropy as its logit
// does from this: |-log p - H| = |t - E[t]|.
static float mean_logit(const Survivors& s) {
    double total = 0, moment = 0;
    if (s.listed) {
        for (const Candidate& c : s.list()) {
            const double e = std::exp(static_cast<double>(c.logit));
            total += e;
            moment += e > 0 ? e * static_cast<double>(c.logit) : 0;
        }
    } else {
        for (u32 begin = 0; begin < s.n; begin += kBlock) {
            vf sum = zero(), weighted = zero();
            const u32 end = s.n - begin < kBlock ? s.n : begin + kBlock;
            for (u32 i = begin; i < end; i += L) {
                const vf t = load_tokens(s.x + i, end - i), e = exp_(t);
                sum += e;
                weighted += e * max_(t, set1(-100));  // exp is 0 there
            }
            total += static_cast<double>(reduce_add(sum));
            moment += static_cast<double>(reduce_add(weighted));
        }
    }
    return static_cast<float>(moment / total);
}

}  // namespace akunu::cpu::AKUNU_ISA
