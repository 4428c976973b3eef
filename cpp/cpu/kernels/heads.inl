// Products of each head's part of a row with the weights of the head. Rows come to lie side by side in a worker's
// scratch, where integer formats also have their quantised copy; the kernels that multiply are those of experts.

namespace akunu::cpu::AKUNU_ISA {

// Bytes of a worker's scratch that copies of rows, and their numbers, may take.
constexpr std::size_t kHeadRowBytes = kWorkerScratch - kExpertScratch;

static inline void copy_head_row(const IntegerExperts& products, const float* x, std::byte* to) {
    quantize_row(to, products.at, products.k, x);
}
static inline void copy_head_row(const FloatExperts& products, const float* x, std::byte* to) {
    std::memcpy(to, x, products.k * sizeof(float));
}
static inline void read_from(IntegerExperts& products, const std::byte* rows) { products.x = rows; }
static inline void read_from(FloatExperts& products, const std::byte* rows) {
    products.x = reinterpret_cast<const float*>(rows);
}

template <typename Products>
static void head_matmul(const DispatchCmd& cmd, const std::byte* params, const Worker& worker) {
    const auto& p = params_as<HeadMatmulParams>(params);
    Products products(cmd, p.k);
    const auto* x = cmd.buffers[0].as<float>();
    auto* y = cmd.buffers[2].as<float>();
    const std::size_t group_bytes = products.layout.bytes, groups = (p.n + L - 1) / L, strips = (p.n + 31) / 32;
    const std::size_t y_stride = p.n + p.copied;
    // A head's columns are shared where there are few heads.
    std::size_t together = strips;
    while (together > 1 && p.heads * (strips / together) < 2 * static_cast<std::size_t>(worker.count)) together /= 2;
    const std::size_t parts = (strips + together - 1) / together;
    auto items = worker.claim(p.heads * parts, together * (32 / L) * group_cost(group_bytes, p.rows));
    if (!items.next()) return;

    const std::size_t row_bytes = products.row_bytes() + sizeof(u32);
    const std::size_t most = std::min<std::size_t>(p.rows, (kHeadRowBytes - 128) / row_bytes);
    auto* const numbers = reinterpret_cast<u32*>(worker.scratch);
    std::byte* const rows = worker.scratch + pack_align(most * sizeof(u32));
    for (std::size_t i = 0; i < most; ++i) numbers[i] = static_cast<u32>(i);
    read_from(products, rows);

    const auto run = [&](std::size_t head, std::size_t s0, std::size_t s1, std::size_t row0, std::size_t n_rows) {
        const std::byte* const w = cmd.buffers[1].as<std::byte>() + head * groups * group_bytes;
        const auto at = [&](std::size_t i) { return y + ((row0 + i) * p.heads + head) * y_stride; };
        // [token][group] of `width` groups a token, from column `first` on.
        const auto put = [&](const vf* acc, std::size_t t, std::size_t tokens, int width, std::size_t first) {
            for (std::size_t i = t; i < t + tokens; ++i) {
                for (int g = 0; g < width; ++g, ++acc) {
                    const std::size_t column = first + static_cast<std::size_t>(g) * L;
                    if (column >= p.n) continue;
                    store_first(at(i) + column, *acc, static_cast<int>(std::min<std::size_t>(L, p.n - column)));
                }
            }
        };
        const auto many = [&](const auto& panels, std::size_t first, std::size_t n) {
            const auto group = [&](std::size_t s, int v) {
                return w + std::min(s * kPanelVectors + static_cast<std::size_t>(v), groups - 1) * group_bytes;
            };
            const auto done = [&](std::size_t t, std::size_t m, std::size_t s, const float* sums) {
                put(reinterpret_cast<const vf*>(sums), first + t, m, kPanelVectors, s * kPanel);
            };
            for (std::size_t s = s0; s < s1; s += kExpertStrips) {
                panels.run(0, n, s, std::min(s1, s + kExpertStrips), 1, group, done);
            }
        };
        const auto few = [&](const auto& tiles, std::size_t first) {
            const std::uint64_t end = std::min<std::uint64_t>(s1 * (32 / L), groups);
            tiles.for_tiles([&](std::size_t t, std::size_t m) {
                for (std::uint64_t g = s0 * (32 / L); g < end;) {
                    const int n = tiles.together(m, end - g);
                    vf acc[2 * kMostTokens];
                    tiles.run(n, w + g * group_bytes, t, m, acc);
                    put(acc, first + t, m, n, g * L);
                    g += static_cast<std::uint64_t>(n);
                }
            });
        };
        for_expert_rows(products, numbers, n_rows, worker.scratch + kHeadRowBytes, worker, many, few);
    };
    do {
        for (std::uint64_t i = items.begin; i < items.end;) {
            const std::size_t head = i / parts, first = i % parts;
            const std::size_t end = std::min<std::size_t>(items.end, (head + 1) * parts) - head * parts;
            for (std::size_t r = 0; r < p.rows; r += most) {
                const std::size_t n = std::min<std::size_t>(most, p.rows - r);
                for (std::size_t t = 0; t < n; ++t) {
                    const float* from = x + ((r + t) * p.heads + head) * p.x_stride;
                    copy_head_row(products, from, rows + t * products.row_bytes());
                    if (first == 0) {
                        std::memcpy(y + ((r + t) * p.heads + head) * y_stride + p.n, from + p.k,
                                    p.copied * sizeof(float));
                    }
                }
                run(head, first * together, std::min(strips, end * together), r, n);
            }
            i = head * parts + end;
        }
    } while (items.next());
}

static Kernel find_head_matmul(DType weight) {
    if (find_format(kIntegerFormats, weight)) return head_matmul<IntegerExperts>;
    return find_format(kFloatFormats, weight) ? head_matmul<FloatExperts> : nullptr;
}

}  // namespace akunu::cpu::AKUNU_ISA
