#include "cuda/host/schedule.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "core/error.h"
#include "cuda/host/streams.h"
#include "cuda/host/words.h"
#include "cuda/kernels/few_layout.h"
#include "cuda/kernels/kv_layout.h"

namespace akunu::cuda {

namespace {

constexpr std::size_t kNone = SIZE_MAX;

// Where a buffer of a command lies in the table: so many commands behind the one of its label, and which of its
// buffers.
struct BufferAt {
    int behind;
    std::size_t buffer;
};
// Those of commands that do the work of three, in their order, whose label is the second's. Sinks are the last of
// attention's: where keys are split they are those of the merge.
constexpr BufferAt kNormRouteBuffers[] = {{-1, 0}, {-1, 1}, {-1, 2}, {-1, 3}, {0, 2}, {0, 3},
                                          {1, 1},  {1, 2},  {1, 3},  {1, 4},  {3, 3}, {3, 4}};
// The same, and of the gates and ups behind it, whose label it has.
constexpr BufferAt kNormExpertsBuffers[] = {{-3, 0}, {-3, 1}, {-1, 1}, {0, 3},  {0, 4},  {-1, 3},
                                            {-2, 1}, {0, 7},  {-1, 4}, {-1, 2}, {-2, 3}, {-3, 3}};
// The same, and of a shared expert, whose gate and up stand behind that label; and of one with a router, which stands
// before it with its choice.
constexpr BufferAt kPlainNormExpertsBuffers[] = {{-3, 0}, {-3, 1}, {-1, 1}, {1, 1},  {1, 2},  {-1, 3},
                                                 {-2, 1}, {0, 7},  {-1, 4}, {-1, 2}, {-2, 3}, {1, 4}};
constexpr BufferAt kSharedNormExpertsBuffers[] = {{-5, 0}, {-5, 1}, {-3, 1}, {1, 1},  {1, 2},  {-3, 3},
                                                  {-4, 1}, {0, 7},  {-3, 4}, {-1, 4}, {-2, 1}, {1, 7}};
// The same without one, where the router has a norm of its own.
constexpr BufferAt kOwnNormExpertsBuffers[] = {{-1, 0}, {-1, 1}, {-4, 1}, {0, 3},  {0, 4},  {-2, 3},
                                               {-3, 1}, {0, 7},  {-2, 4}, {-2, 2}, {-3, 3}, {-1, 3}};
// Those of a norm and matmuls of a few rows, whose label is the first matmul's.
constexpr BufferAt kNormQkvBuffers[] = {{-1, 0}, {-1, 1}, {0, 1}, {1, 1}, {2, 1}, {0, 2}, {0, 3}};
constexpr BufferAt kNormGateUpBuffers[] = {{-1, 0}, {-1, 1}, {0, 1}, {0, 2}, {0, 3}, {0, 4}};
constexpr BufferAt kSharedDownBuffers[] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {1, 0}, {1, 5}};
constexpr BufferAt kDecodeAttentionBuffers[] = {{-1, 0}, {-1, 1}, {-1, 2}, {-1, 3}, {-1, 4}, {-1, 5},
                                                {-1, 6}, {-1, 7}, {0, 2},  {1, 1},  {1, 2},  {0, 5}};
constexpr BufferAt kSplitSinks = {1, 4};
constexpr BufferAt kLatentQueriesBuffers[] = {{-1, 0}, {-1, 1}, {-1, 2}, {-1, 3}, {-1, 4}, {-1, 5}, {-1, 6}, {0, 2}};
constexpr BufferAt kNormSumsBuffers[] = {{-1, 0}, {-1, 1}, {0, 0}, {0, 1}, {1, 2}, {1, 1}};
constexpr BufferAt kLatentValuesBuffers[] = {{-1, 0}, {-1, 3}, {1, 2}};
// Those of matmuls with adapters, whose label is the first one's.
std::vector<BufferAt> adapted_buffers(const Command& c) {
    const AdaptedPlaces places(c);
    const auto of = [](std::size_t behind, int more, std::size_t buffer) {
        return BufferAt{static_cast<int>(behind) + more, buffer};
    };
    const auto matmul = [&](std::size_t i, std::size_t buffer) { return of(places.at[i], 0, buffer); };
    const auto adapter = [&](std::size_t buffer) { return of(places.at[places.first()], -1, buffer); };
    const auto norm = [&](std::size_t buffer) { return of(0, -1 - static_cast<int>(places.has(0)), buffer); };
    const auto activation = [&](std::size_t buffer) { return of(places.end, -1, buffer); };
    const BufferAt none = adapter(5);  // rows of logits, of which such a command has none
    std::vector<BufferAt> out(std::size(c.buffers), none);
    std::size_t n = 0;
    if (places.normed) out[n++] = norm(0);
    out[n++] = places.normed ? norm(1) : matmul(0, 0);
    for (std::size_t i = 0; i < places.matmuls; ++i) out[n++] = matmul(i, 1);
    out[n++] = places.gated ? activation(2) : matmul(0, 2);
    out[n++] = places.gated ? activation(3) : matmul(0, 3);
    for (std::size_t i = 0; i < places.matmuls; ++i) {
        if (places.has(i)) out[kAdapterParts + i] = of(places.at[i], -1, 1);
    }
    out[kAdaptedRows] = adapter(3);
    out[kAdapterChoices] = adapter(4);
    return out;
}
// The ops of the table that such a command does the work of.
std::vector<Op> adapted_ops(const Command& c) {
    const AdaptedPlaces places(c);
    std::vector<Op> out(places.normed, Op::kNorm);
    for (std::size_t i = 0; i < places.matmuls; ++i) {
        if (places.has(i)) out.push_back(Op::kLoraA);
        out.push_back(Op::kMatmul);
        if (places.has(i)) out.push_back(Op::kLoraB);
    }
    if (places.gated) out.push_back(Op::kGateAct);
    return out;
}
std::span<const BufferAt> joined_buffers(const Command& c) {
    if (c.op == kOpDecodeAttention) return kDecodeAttentionBuffers;
    if (is_norm_of_rows(c) && c.op == kOpNormQkv) return kNormQkvBuffers;
    if (is_norm_of_rows(c)) return kNormGateUpBuffers;
    if (c.op == kOpNormSums) return kNormSumsBuffers;
    if (c.op == kOpLatentQueries) return kLatentQueriesBuffers;
    if (c.op == kOpLatentValues) return kLatentValuesBuffers;
    const bool shared = shared_expert_of(c) != 0;
    if (c.op == kOpExpertsDown && shared) {
        const std::span<const BufferAt> down = kSharedDownBuffers;
        return c.buffers[kSharedFactor] ? down : down.first(kSharedFactor);
    }
    if (c.op == kOpNormExperts && covered_by(c).before == 5) return kSharedNormExpertsBuffers;
    if (c.op == kOpNormExperts && covered_by(c).before == 4) return kOwnNormExpertsBuffers;
    if (c.op == kOpNormExperts) return shared ? kPlainNormExpertsBuffers : kNormExpertsBuffers;
    const std::span<const BufferAt> route = kNormRouteBuffers;
    if (c.op == kOpNormRoute) return covered_by(c).behind == 3 ? route : route.first(route.size() - 2);
    return {};
}

class Check {
  public:
    Check(const DispatchTable& table, std::span<const Command> commands, const BlockSizes& sizes)
        : table_(table), commands_(commands), sizes_(sizes) {}

    void run(std::span<const Stream> streams) {
        place_commands();
        for (const Command& c : commands_) check_fields(c);
        check_shapes();
        check_streams(streams);
        find_cells();
        for (std::size_t i = 0; i < table_.commands.size(); ++i) check_order(i);
    }

  private:
    // A command of the table, use of a part of memory.
    struct Use {
        u64 begin, end;
        bool reads, writes;
        std::size_t buffer;
    };
    // A part of memory that some command writes, whole or not at all. Indices of the table.
    struct Cell {
        std::size_t writer = kNone;      // the first
        std::size_t defined_by = kNone;  // the first that reads nothing of it
        std::size_t last_write = kNone;
        std::vector<std::size_t> readers;  // since then
    };
    // A command of the table: where the one is that does its work, how many barriers stand before that, and how many
    // of them words do not take the place of.
    struct Run {
        std::size_t at = kNone, stage = 0, held = 0;
    };

    std::string name(std::size_t i) const { return std::string("[").append(table_.labels[i].full_name()).append("]"); }
    [[noreturn]] void refuse(const std::string& why) const {
        throw DeviceError("the commands of table '" + table_.phase + "' are not launched, a defect of Akunu: " + why);
    }
    void expect(bool ok, const Command& c, const char* what) const {
        if (!ok) refuse(name(c.label) + " has " + what);
    }

    static std::string_view buffer_name(const DispatchCmd& c, std::size_t buffer) {
        return op_info(c.op).buffers[buffer].name;
    }
    static u64 address(const Binding& b) { return b ? reinterpret_cast<u64>(b.as()) : 0; }
    static bool is_inside(const Binding& b) { return !b || (b.offset < b.end() && b.end() <= b.buffer.size); }

    void place_commands() {
        runs_.resize(table_.commands.size());
        std::size_t stage = 0, held = 0;
        std::array<std::size_t, kWordBuffers> told;  // the stages whose blocks told something there
        told.fill(kNone);
        for (std::size_t at = 0; at < commands_.size(); ++at) {
            const Command& c = commands_[at];
            if (c.label >= runs_.size()) refuse("command " + std::to_string(at) + " has no place in the table");
            // Commands of the table that it does the work of, before its label's and behind it.
            const auto [before, behind] = covered_by(c);
            if (c.label < before || c.label + behind >= runs_.size()) {
                refuse(name(c.label) + " is not " + std::to_string(before + 1 + behind) + " commands");
            }
            if (at != 0 && c.barrier) ++stage;
            if (at != 0 && c.barrier && !c.reads_words) ++held;
            check_words(at);
            if (is_adapted(c)) {
                expect(told[at % kWordBuffers] != stage, c, "words in the place of those that blocks may still read");
                told[at % kWordBuffers] = stage;
            }
            for (std::size_t i = c.label - before; i <= c.label + behind; ++i) {
                if (runs_[i].at != kNone) refuse(name(i) + " is there twice");
                runs_[i] = {at, stage, held};
            }
        }
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            if (runs_[i].at == kNone) refuse(name(i) + " is missing");
        }
    }

    void check_words(std::size_t at) const {
        const Command& c = commands_[at];
        const u32 taken = at + 1 < commands_.size() ? commands_[at + 1].reads_words : 0;
        expect(c.writes_words == taken, c, "words that no command reads, or none for the one that reads them");
        if (!c.reads_words) return;
        const bool alone = at != 0 && c.barrier && (at == 1 || commands_[at - 1].barrier) &&
                           (at + 1 == commands_.size() || commands_[at + 1].barrier);
        expect(alone, c, "words where a barrier would order more than it and the command before it");
        const u32 most = table_.max_rows == 1 ? 1 : kByteRows;
        expect(c.reads_words <= rows_by_words(c, commands_[at - 1], most), c, "words that are not what it reads");
    }

    void check_fields(const Command& c) const {
        const DispatchCmd& from = table_.commands[c.label];
        const bool attention = c.op == kOpDecodeAttention, route = c.op == kOpNormRoute;
        const bool experts = c.op == kOpNormExperts, shared = shared_expert_of(c) != 0;
        const auto own = is_adapted(c) ? adapted_buffers(c) : std::vector<BufferAt>{};
        const std::span<const BufferAt> places = own.empty() ? joined_buffers(c) : std::span(own);
        const bool joined = !places.empty();
        const auto code = op_code(from.op);
        const auto neighbour = [&](std::size_t label) { return table_.commands[label].op; };
        // From this one on stand a norm, a router and its choice, of one row.
        const auto is_router = [&](std::size_t label) {
            return neighbour(label) == Op::kNorm && neighbour(label + 1) == Op::kMatmul &&
                   neighbour(label + 2) == Op::kRoute && table_.max_rows == 1;
        };
        // What adapters add, of one row where a norm is part of it.
        const auto are_adapted = [&] {
            const std::vector<Op> ops = adapted_ops(c);
            for (std::size_t i = 0; i < ops.size(); ++i) {
                if (neighbour(c.label - covered_by(c).before + i) != ops[i]) return false;
            }
            const AdaptedPlaces at(c);
            for (std::size_t i = 0; i < at.matmuls; ++i) {
                if (!at.has(i)) continue;
                const auto p = table_.commands[c.label + at.at[i] - 1].params_as<LoraParams>();
                const AdaptedParams& own = adapted_params(c);
                if (p.max_rank != own.max_rank[i] || p.slot_words != own.slot_words) return false;
            }
            return ranks_of(c) != 0 && (!at.normed || table_.max_rows == 1);
        };
        // Of a few rows, a norm and what reads it.
        const auto are_normed = [&] {
            const bool qkv = c.op == kOpNormQkv;
            return table_.max_rows != 1 && neighbour(c.label - 1) == Op::kNorm &&
                   (qkv ? from.op == Op::kMatmul && neighbour(c.label + 1) == Op::kMatmul &&
                              neighbour(c.label + 2) == Op::kMatmul
                        : from.op == Op::kGateUp);
        };
        const bool adapted = is_adapted(c), normed = is_norm_of_rows(c);
        expect(
            adapted     ? are_adapted()
            : normed    ? are_normed()
            : attention ? from.op == Op::kAttentionSplit || from.op == Op::kAttention
            : experts   ? from.op == Op::kExpertsGateUp && is_router(c.label - covered_by(c).before) &&
                              (covered_by(c).before == 3 ? !shared || neighbour(c.label + 1) == Op::kGateUp
                               : covered_by(c).before == 4
                                   ? !shared && neighbour(c.label - 1) == Op::kNorm
                                   : neighbour(c.label - 2) == Op::kMatmul && neighbour(c.label - 1) == Op::kRoute &&
                                         neighbour(c.label + 1) == from.op)
            : route ? is_router(c.label - 1) && (covered_by(c).behind == 1 || (neighbour(c.label + 2) == Op::kMatmul &&
                                                                               neighbour(c.label + 3) == Op::kRoute))
            : c.op == kOpNormSums      ? neighbour(c.label - 1) == Op::kNorm && from.op == Op::kNormAdd &&
                                             neighbour(c.label + 1) == Op::kNormAdd && table_.max_rows == 1
            : c.op == kOpLatentQueries ? from.op == Op::kHeadMatmul && neighbour(c.label - 1) == Op::kLatentKv &&
                                             table_.max_rows == 1
            : c.op == kOpLatentValues  ? from.op == Op::kHeadMatmul && neighbour(c.label - 1) == Op::kAttentionMerge &&
                                             neighbour(c.label + 1) == Op::kQuantize && table_.max_rows == 1
            : shared ? from.op == Op::kExpertsDown && table_.max_rows == 1 &&
                           neighbour(c.label + 1) == (c.buffers[kSharedFactor] ? from.op : Op::kMatmul)
                     : code && c.op == *code,
            c, "another op");
        expect(c.kv < kKvPairs && c.streams <= 2, c, "a type that is none");
        expect(c.n_patches <= std::size(c.patch_field), c, "too many patches");
        const DispatchCmd* const sum = c.reduces ? &table_.commands[c.label + 1] : nullptr;
        expect(c.reduces <= 1 && (!sum || (c.op == kOpMatmul && c.streams == 1 && table_.max_rows == 1 &&
                                           sum->op == Op::kAllReduce && !sum->params_as<AllReduceParams>().gather)),
               c, "a sum of several GPUs that is none");
        for (u32 i = 0; i < c.n_patches; ++i) {
            const u32 bytes = normed                                    ? (kNormedRowsWord + 1) * 4
                              : adapted && AdaptedPlaces(c).normed      ? 0
                              : attention                               ? sizeof(DecodeAttentionParams)
                              : route || experts || c.op == kOpNormSums ? 0
                                                                        : from.param_bytes;
            expect(c.patch_field[i] < bytes / 4 && (c.patch_value[i] & kPatchSourceMask) <= kPatchKeys, c,
                   "a patch outside its parameters");
            expect(!normed || (c.n_patches == 1 && c.patch_field[i] == kNormedRowsWord), c, "rows that are none");
        }
        for (std::size_t i = 0; i < std::size(c.buffers); ++i) {
            const Binding* b = nullptr;
            if (!joined && i < from.n_buffers) b = sum && i == 2 ? &sum->buffers[1] : &from.buffers[i];
            if (i < places.size()) {
                const bool split_sinks = i + 1 == places.size() && from.op == Op::kAttentionSplit;
                const BufferAt p = split_sinks ? kSplitSinks : places[i];
                b = &table_.commands[c.label + static_cast<std::size_t>(p.behind)].buffers[p.buffer];
            }
            expect(c.buffers[i] == (b ? address(*b) : 0), c, "a buffer at an address that is not the table's");
            expect(!b || is_inside(*b), c, "a buffer that ends behind its memory");
        }
        if (attention) return;
        u64 known = 0;
        const auto check_weights = [&](const DispatchCmd& of) {
            for (const WeightPlace& w : weights_in(of)) {
                const WeightPlanes& planes = c.weights[of.op == Op::kNormQkv ? w.buffer - 2 : known];
                expect(planes.reader < kReaders, c, "weights of a type that is none");
                expect(planes.codes == address(of.buffers[w.buffer]), c,
                       "weights at an address that is not the table's");
                ++known;
            }
        };
        if (adapted || normed) {
            const auto [before, behind] = covered_by(c);
            for (std::size_t i = c.label - before; i <= c.label + behind; ++i) check_weights(table_.commands[i]);
            return;
        }
        check_weights(from);
        if (route && covered_by(c).behind == 3) check_weights(table_.commands[c.label + 2]);
        if (shared && !experts) check_weights(table_.commands[c.label + 1]);
    }

    // Attention takes what it found out for the one before it.
    void check_shapes() const {
        const Command* before = nullptr;
        for (const Command& c : commands_) {
            const bool joined = c.op == kOpDecodeAttention;
            expect(c.as_before <= u32(joined && before && same_shape(c, *before)), c, "the shape of another attention");
            if (joined) before = &c;
        }
    }

    // The ring is filled in the order of the streams, by a warp that does not see the commands: what it loads must be
    // what they wait for.
    void check_streams(std::span<const Stream> streams) const {
        std::size_t at = 0;
        for (const Command& c : commands_) {
            for (u32 i = 0; i < c.streams; ++i, ++at) {
                expect(at < streams.size(), c, "weights that the ring does not load");
                check_stream(c, streams[at], i);
            }
        }
        if (at != streams.size()) refuse("the ring loads weights that no command reads");
    }

    void check_stream(const Command& c, const Stream& s, u32 which) const {
        const auto all = ring_weights(table_, c);
        expect(s.tile_bytes != 0 && s.tile_bytes % 16 == 0, c, "tiles of the ring that are no whole copies");
        const auto fits = [](u32 bytes, u32 most) { return bytes != 0 && bytes % 16 == 0 && bytes <= most; };
        const bool codes = input_parts(c.weights[which == 0 ? 0 : 2].reader) == 1;
        expect(fits(s.slot_bytes, sizes_.slot_bytes), c, "parts of a tile that are larger than a slot of the ring");
        expect(codes ? fits(s.byte_slot_bytes, sizes_.byte_slot_bytes) : s.byte_slot_bytes == 0, c,
               "parts of a tile of few rows that are larger than a slot of the ring");
        const auto tiles_of = [&](std::size_t i) { return (all[i].rows + kTileRows - 1) / kTileRows; };
        // Of two streams the second is that of v.
        expect(!all.empty(), c, "no weights for the ring to load");
        std::size_t begin = 0, end = all.size();
        if (c.streams == 2) (which == 0 ? end : begin) = all.size() - 1;
        expect(s.k == padded_inputs(all[begin].cols), c, "other inputs than the ring counts");
        for (std::size_t i = begin; i < end; ++i) {
            const Binding& b = all[i].at;
            const std::size_t n = i - begin;
            expect(s.at[n] == address(b), c, "other weights than the ring loads");
            expect(s.tiles[n] == tiles_of(i), c, "other tiles than the ring loads");
            expect(u64(s.tiles[n]) * s.tile_bytes <= b.end() - b.offset, c, "tiles behind the end of its weights");
        }
        for (std::size_t n = end - begin; n < std::size(s.tiles); ++n) {
            expect(s.tiles[n] == 0, c, "fewer weights than the ring loads");
        }
        expect(s.pairs == (c.op == kOpGateUp || c.op == kOpNormGateUp ? 1u : 0u), c, "tiles that are not in turn");
        // Only where a command has few rows do its weights come through the ring.
        u32 behind = 0;
        for (std::size_t i = 0; i < begin; ++i) behind += tiles_of(i);
        expect(s.behind == behind, c, "a stream in the place of another");
        expect(s.split == (c.op == kOpMatmul ? c.params[kSplitWord] : 0) && s.split <= kMostSplit, c,
               "inputs that are dealt to other blocks than those that the ring loads for");
        expect(s.rows_from == rows_from(c) && (s.rows_from != kRowsGiven || s.rows == c.params[rows_word(c)]), c,
               "other rows than those for which the ring is filled");
    }

    static std::vector<Use> uses_of(const DispatchCmd& c) {
        std::vector<Use> uses;
        for (std::size_t i = 0; i < c.n_buffers; ++i) {
            const Binding& b = c.buffers[i];
            if (!b) continue;
            const Access access = access_of(c, i);
            uses.push_back(
                {address(b), address(b) + (b.end() - b.offset), access != Access::kWrite, access != Access::kRead, i});
        }
        return uses;
    }

    // Calls f(cell) for the cells in a part of memory.
    template <typename F>
    void each_cell(u64 begin, u64 end, F&& f) {
        auto at = static_cast<std::size_t>(std::ranges::upper_bound(edges_, begin) - edges_.begin());
        if (at != 0) --at;
        for (; at + 1 < edges_.size() && edges_[at] < end; ++at) {
            if (edges_[at + 1] > begin) f(cells_[at]);
        }
    }

    void find_cells() {
        for (const DispatchCmd& c : table_.commands) {
            uses_.push_back(uses_of(c));
            for (const Use& u : uses_.back()) {
                if (u.writes) edges_.insert(edges_.end(), {u.begin, u.end});
            }
        }
        std::ranges::sort(edges_);
        edges_.erase(std::ranges::unique(edges_).begin(), edges_.end());
        cells_.resize(edges_.size());
        for (std::size_t i = 0; i < uses_.size(); ++i) {
            for (const Use& u : uses_[i]) {
                if (!u.writes) continue;
                each_cell(u.begin, u.end, [&](Cell& cell) {
                    if (cell.writer == kNone) cell.writer = i;
                    if (!u.reads && cell.defined_by == kNone) cell.defined_by = i;
                });
            }
        }
    }

    // Its row's keys, and where they are: kOpDecodeAttention looks at them while it waits.
    bool reads_ahead(std::size_t i, std::size_t buffer) const {
        if (commands_[runs_[i].at].op != kOpDecodeAttention || table_.commands[i].op != Op::kPrepareHeads) return false;
        const BufferKind kind = op_info(Op::kPrepareHeads).buffers[buffer].kind;
        return kind == BufferKind::kCache || kind == BufferKind::kIndex;
    }

    // What may be read before the wait, because no command writes it: weights, those of a norm, a bias.
    static bool is_constant(const DispatchCmd& c, std::size_t buffer) {
        const BufferKind kind = op_info(c.op).buffers[buffer].kind;
        return kind == BufferKind::kWeight || kind == BufferKind::kScales || kind == BufferKind::kBiases ||
               kind == BufferKind::kConstant;
    }

    // Whether two use other parts of each page of a cache: those of other layers.
    bool are_of_other_layers(std::size_t i, std::size_t before, std::size_t buffer) const {
        const Command &now = commands_[runs_[i].at], &then = commands_[runs_[before].at];
        if (now.op != kOpDecodeAttention || then.op != kOpDecodeAttention) return false;
        if (address(table_.commands[i].buffers[buffer]) != now.buffers[4]) return false;
        const auto& first = now.buffers[4] < then.buffers[4] ? now : then;
        const auto& second = now.buffers[4] < then.buffers[4] ? then : now;
        const auto bytes = [](const Command& c) {
            const auto& p = reinterpret_cast<const DecodeAttentionParams&>(c.params);
            return kv_page_bytes(c.kv, p.n_kv_heads, p.head_dim);
        };
        const u64 page = u64{reinterpret_cast<const DecodeAttentionParams&>(now.params).page_words} * 4;
        return first.buffers[4] + bytes(first) <= second.buffers[4] &&
               second.buffers[4] + bytes(second) <= first.buffers[4] + page;
    }

    // That `i` runs behind `before`, with a barrier between; where it looks ahead, one that is held, before its own.
    void expect_behind(std::size_t i, std::size_t before, std::size_t buffer, const char* does, const char* did,
                       bool ahead) const {
        const Run &now = runs_[i], &then = runs_[before];
        const Command& c = commands_[now.at];
        const std::size_t own = now.at != 0 && c.barrier && !c.reads_words ? 1 : 0;
        if (now.at == then.at || are_of_other_layers(i, before, buffer)) return;
        if (ahead ? now.held > then.held + own : now.stage > then.stage) return;
        const std::string what = std::string("'").append(buffer_name(table_.commands[i], buffer)).append("'");
        const std::string order = now.at < then.at ? ", which runs behind it, " : ", without a barrier between, ";
        refuse(name(i) + " " + does + " " + what + ", which " + name(before) + order + did);
    }

    // That what `i` reads of what `before` wrote comes as words, or that its own threads wrote it, where no barrier
    // is held between.
    void expect_words(std::size_t i, std::size_t before, std::size_t buffer) const {
        const Run &now = runs_[i], &then = runs_[before];
        if (now.at == then.at || now.held > then.held || are_of_other_layers(i, before, buffer)) return;
        const Command &c = commands_[now.at], &writer = commands_[then.at];
        const bool taken =
            c.reads_words && now.at == then.at + 1 &&
            (c.op == kOpDecodeAttention ? table_.commands[i].op == Op::kPrepareHeads && buffer < 3 : buffer == 0);
        const bool added_to = table_.commands[i].op == Op::kAllReduce ? buffer == 1 : buffer == 2;
        // Products of halves of several rows are other threads' than those of bytes.
        const auto are_bytes = [](const Command& of) { return input_parts(of.weights[0].reader) == 1; };
        const bool own = c.op == kOpMatmul && added_to && own_sums(c) != 0 && own_sums(c) == own_sums(writer) &&
                         (table_.max_rows == 1 || (are_bytes(c) && are_bytes(writer)));
        if (taken || own) return;
        refuse(name(i) + " reads '" + std::string(buffer_name(table_.commands[i], buffer)) + "', which " +
               name(before) + ", without a barrier that is held between, writes");
    }
    // That all of `before` is done when `i` writes.
    void expect_done(std::size_t i, std::size_t before, std::size_t buffer) const {
        const Run &now = runs_[i], &then = runs_[before];
        if (now.held > then.held || now.at != then.at + 1 || commands_[now.at].op != kOpDecodeAttention) return;
        if (table_.commands[i].op == Op::kPrepareHeads && buffer < 3) return;  // it turns copies of these
        refuse(name(i) + " overwrites '" + std::string(buffer_name(table_.commands[i], buffer)) + "', which " +
               name(before) + ", whose words it takes some of, uses");
    }

    void check_order(std::size_t i) {
        for (const Use& u : uses_[i]) {
            const bool ahead = is_constant(table_.commands[i], u.buffer);
            const std::string_view buffer = buffer_name(table_.commands[i], u.buffer);
            each_cell(u.begin, u.end, [&](Cell& cell) {
                if (cell.writer == kNone) return;
                if (ahead) refuse(name(i) + " reads weights ahead that " + name(cell.writer) + " writes");
                if (u.reads && cell.last_write == kNone && cell.defined_by != kNone && cell.defined_by != i) {
                    refuse(name(i) + " reads '" + std::string(buffer) + "', which only " + name(cell.defined_by) +
                           " behind it writes");
                }
                if (cell.last_write != kNone) {
                    expect_behind(i, cell.last_write, u.buffer, u.reads ? "reads" : "overwrites", "writes",
                                  reads_ahead(i, u.buffer));
                    if (u.reads) expect_words(i, cell.last_write, u.buffer);
                    if (u.writes) expect_done(i, cell.last_write, u.buffer);
                }
                if (u.reads) cell.readers.push_back(i);
            });
        }
        for (const Use& u : uses_[i]) {
            if (!u.writes) continue;
            each_cell(u.begin, u.end, [&](Cell& cell) {
                for (const std::size_t reader : cell.readers) {
                    if (reader == i) continue;
                    expect_behind(i, reader, u.buffer, "overwrites", "reads", false);
                    expect_done(i, reader, u.buffer);
                }
                cell.readers.clear();
                cell.last_write = i;
            });
        }
    }

    const DispatchTable& table_;
    const std::span<const Command> commands_;
    const BlockSizes sizes_;
    std::vector<Run> runs_;
    std::vector<std::vector<Use>> uses_;
    std::vector<u64> edges_;  // cell i is from edges_[i] to edges_[i + 1]
    std::vector<Cell> cells_;
};

}  // namespace

void check_schedule(const DispatchTable& table, std::span<const Command> commands, std::span<const Stream> streams,
                    const BlockSizes& sizes) {
    Check(table, commands, sizes).run(streams);
}

}  // namespace akunu::cuda
