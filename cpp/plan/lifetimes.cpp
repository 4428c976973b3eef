#include "plan/lifetimes.h"

#include <algorithm>
#include <cstdint>

namespace akunu {

namespace {

// The first and last stage of each command. A device may run attention with the command before it and the one behind
// it as one, whose buffers are then all in use at once; and what joins the splits of latent attention with the two
// behind it.
std::vector<std::pair<std::size_t, std::size_t>> stages_of(const DispatchTable& table) {
    std::vector<std::pair<std::size_t, std::size_t>> stages;
    std::size_t stage = 0;
    for (const DispatchCmd& c : table.commands) {
        if (!stages.empty() && c.barrier) ++stage;
        stages.emplace_back(stage, stage);
    }
    const auto op_of = [&](std::size_t i) { return table.commands[i].op; };
    for (std::size_t i = 0; i < stages.size(); ++i) {
        const Op op = op_of(i);
        const bool joins = op == Op::kHeadMatmul && i != 0 && op_of(i - 1) == Op::kAttentionMerge;
        if (op != Op::kAttention && op != Op::kAttentionSplit && !joins) continue;
        const std::size_t before = i == 0 ? i : i - 1, behind = std::min(i + 1, stages.size() - 1);
        const std::size_t first = stages[before].first, last = stages[behind].second;
        for (std::size_t k = before; k <= behind; ++k) {
            stages[k] = {std::min(stages[k].first, first), std::max(stages[k].second, last)};
        }
    }
    return stages;
}

// What was written at one place of a part, and is live.
struct Value {
    std::uint64_t begin, end;
    std::size_t first, last;  // stages
    bool read = false;
};

}  // namespace

void Lifetimes::add(const DispatchTable& table, const PartOf& part_of) {
    const auto stages = stages_of(table);
    auto& ranges = tables_.emplace_back();
    std::map<ActivationKey, std::vector<Value>> values;
    const auto use = [&](const ActivationKey& part, const Binding& b, std::size_t i, bool reads) {
        auto& all = values[part];
        const auto [first, last] = stages[i];
        const auto touches = [&](const Value& v) { return v.begin < b.end() && b.offset < v.end; };
        if (reads && std::ranges::none_of(all, touches)) outside_.insert(part);
        bool known = false;
        for (Value& v : all) {
            const bool same = v.begin == b.offset;
            known = known || same;
            if (reads ? !touches(v) : !same) continue;
            if (!reads && v.read) {  // what was there is not needed any more
                ranges[part].push_back({v.first, v.last});
                v = {b.offset, b.end(), first, last, false};
                continue;
            }
            v.first = std::min(v.first, first);
            v.last = std::max(v.last, last);
            v.end = std::max(v.end, reads ? v.end : b.end());
            v.read = v.read || reads;
        }
        if (!reads && !known) all.push_back({b.offset, b.end(), first, last, false});
    };
    for (std::size_t i = 0; i < table.commands.size(); ++i) {
        const DispatchCmd& c = table.commands[i];
        // What it reads of a part it reads before it writes.
        for (const bool reads : {true, false}) {
            for (std::size_t k = 0; k < c.n_buffers; ++k) {
                const Binding& b = c.buffers[k];
                const ActivationKey* const part = b ? part_of(b) : nullptr;
                if (!part) continue;
                const Access access = access_of(c, k);
                if (access == Access::kReadWrite || (access == Access::kRead) == reads)
                    use(*part, b, i, access != Access::kWrite);
            }
        }
    }
    for (const auto& [part, all] : values) {
        for (const Value& v : all) ranges[part].push_back({v.first, v.last});
    }
}

bool Lifetimes::overlap(const ActivationKey& a, const ActivationKey& b) const {
    // A stage lies between the two, so that no command waits for what it did not wait for before, whatever a device
    // makes of the barriers.
    const auto meet = [](const Range& x, const Range& y) { return x.first <= y.last + 1 && y.first <= x.last + 1; };
    return std::ranges::any_of(tables_, [&](const auto& table) {
        const auto x = table.find(a), y = table.find(b);
        if (x == table.end() || y == table.end()) return false;
        return std::ranges::any_of(x->second, [&](const Range& r) {
            return std::ranges::any_of(y->second, [&](const Range& s) { return meet(r, s); });
        });
    });
}

}  // namespace akunu
