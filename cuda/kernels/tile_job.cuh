// What a command multiplies whose weights come through the ring: found out once for the block, ahead of the command, so
// that its threads only look it up.
#pragma once

#include "few_layout.h"
#include "platform.cuh"

namespace akunu::cuda {

// A block's share of what is dealt in equal parts. Where it does not come out even, some blocks have one less, so that
// who comes late to a command has less of it, and who has more to do next is early. Of q, k and v, the output and down
// these are the first blocks, which take attention's units. Of gate and up they begin where blocks have a tile more of
// the output, whose rows are the `k` inputs, and of a command's second stream, which is `behind` so many tiles, where
// blocks have a tile more of the first.
struct Share {
    u32 begin, end;
};
AKUNU_DEVICE u32 blocks_with_less(u32 tiles) { return grid_blocks() - tiles % grid_blocks(); }
// Of the blocks, the first of which have less, which one this is.
AKUNU_DEVICE u32 share_place(u32 pairs, u32 k, u32 behind) {
    const u32 first = pairs ? blocks_with_less(k / kTileRows) : behind ? blocks_with_less(behind) : 0;
    return block_id() + (block_id() < first ? grid_blocks() : 0) - first;
}
AKUNU_DEVICE Share share_of(u32 tiles, u32 pairs, u32 k, u32 behind) {
    const u32 at = share_place(pairs, k, behind);
    const u32 each = tiles / grid_blocks(), less = blocks_with_less(tiles);
    const u32 begin = at * each + (at > less ? at - less : 0);
    return {begin, begin + each + (at >= less)};
}

// The same where the inputs are dealt to blocks, too: which part of them the block has, and of which tiles.
struct SplitShare {
    u32 part;
    Share tiles;
};
AKUNU_DEVICE SplitShare split_share(u32 tiles, u32 parts) {
    const u32 blocks = grid_blocks() / parts, at = block_id() / parts, part = block_id() % parts;
    if (at >= blocks) return {part, {0, 0}};
    return {part, {tiles * at / blocks, tiles * (at + 1) / blocks}};
}

// The tiles of up to three matrices, one behind the other. Pairs: those of two in turn.
struct alignas(16) TileJob {
    u32 k, begin, end;  // inputs of a row, with the zeros behind them; the block's tiles
    u32 pairs;          // 1: each counts for two
    u32 rows[3];        // of the matrices, of a pair of one
    u32 stride;         // floats from a row's results to the next one's; 0: as many as it has
    float factor[3];    // of the matrices' weights
    float cap;
    u64 y[3];       // F32 results of the matrices; of pairs the F32 and F16 ones, in the `formats` that are asked for
    u64 bias[3];    // 0: there is none
    u64* words[3];  // the same results, of pairs the F16 ones, with a number; null: nowhere
    float eps, of_input;  // of the norm; one by the number of inputs
    u32 number;
    unsigned short zeros;  // inputs that are none
    unsigned char normed;  // 1: the inputs are F32 that are to be normalised
    unsigned char adds;    // 1: to what is there
    unsigned char activation, formats;
    unsigned char split, part;  // in how many parts the inputs are dealt to blocks, and which one is the block's
#if AKUNU_CARDS > 1
    u32 sum;  // of all cards, counted from 1; 0: the results are the card's own
#endif

    AKUNU_DEVICE u32 inputs() const { return k - zeros; }
    AKUNU_DEVICE u32 tiles_of(u32 i) const { return (rows[i] + kTileRows - 1) / kTileRows; }
    AKUNU_DEVICE u32 tiles() const { return pairs ? tiles_of(0) : tiles_of(0) + tiles_of(1) + tiles_of(2); }
};

AKUNU_DEVICE float tile_factor(const WeightPlanes& w) {
    return w.reader == kReadBf16 ? bits_to_float(load_weights4(reinterpret_cast<const u8*>(w.extras))) : 1.0f;
}

// By one thread. Of kNormQkv, whose last weights have a type of their own, stream 1 is the job of these.
AKUNU_DEVICE TileJob tile_job(const Command& c, u32 stream, u64* words, u32 number) {
    TileJob job{};
    job.words[0] = words;
    job.number = number;
    u32 first = 0;  // of the command's weights
    u32 split = 0, behind = 0;
    const auto gate_up = [&](u32 n, u32 out, u32 activation, u32 formats) {
        job.pairs = 1;
        job.rows[0] = n;
        job.y[0] = c.buffers[out];
        job.y[1] = c.buffers[out + 1];
        job.activation = static_cast<unsigned char>(activation);
        job.formats = static_cast<unsigned char>(formats);
    };
    switch (c.op) {
        case kOpMatmul: {
            const auto& p = *reinterpret_cast<const MatmulParams*>(c.params);
            job.k = p.k;
            job.rows[0] = p.n;
            job.y[0] = c.buffers[2];
            job.stride = p.y_stride;
            if (p.has_bias) job.bias[0] = c.buffers[3];
            job.adds = p.accumulate != 0;
            job.cap = p.softcap;
            if (p.rows != 1) split = c.params[kSplitWord];
            break;
        }
        case kOpGateUp: {
            const auto& p = *reinterpret_cast<const GateUpParams*>(c.params);
            job.k = p.k;
            gate_up(p.n, 3, p.activation, p.formats);
            break;
        }
        case kOpNormGateUp: {
            const auto& p = *reinterpret_cast<const NormGateUpParams*>(c.params);
            job.k = p.k;
            job.normed = 1;
            job.eps = p.eps;
            gate_up(p.n, 4, p.activation, p.formats);
            break;
        }
        default: {
            const auto& p = *reinterpret_cast<const NormQkvParams*>(c.params);
            job.k = p.k;
            job.normed = 1;
            job.eps = p.eps;
            const u32 rows[3] = {p.n_q, p.n_kv, p.n_kv}, results[3] = {0, p.k_offset, p.v_offset};
            const u32 biases[3] = {0, p.n_q, p.n_q + p.n_kv};
            const u32 end = c.streams == 2 && stream == 0 ? 2 : 3;
            first = stream == 0 ? 0 : 2;
            for (u32 i = 0; i < first; ++i) behind += c.weights[i].codes ? (rows[i] + kTileRows - 1) / kTileRows : 0;
            for (u32 i = first; i < end; ++i) {
                if (c.weights[i].codes) job.rows[i - first] = rows[i];
                job.y[i - first] = c.buffers[5] + results[i] * 4;
                // With nothing between them, those of all rows of a matrix one behind the other.
                job.words[i - first] = words ? words + c.params[kNormedRowsWord] * biases[i] : nullptr;
                if (p.has_bias) job.bias[i - first] = c.buffers[6] + biases[i] * 4;
            }
        }
    }
    for (u32 i = 0; i < 3; ++i) {
        job.factor[i] = first + i < 3 && c.weights[first + i].codes ? tile_factor(c.weights[first + i]) : 1.0f;
    }
    job.of_input = reciprocal(float(job.k));
    const u32 padded = padded_inputs(job.k);
    job.zeros = static_cast<unsigned short>(padded - job.k);
    job.k = padded;
    const SplitShare share =
        split > 1 ? split_share(job.tiles(), split) : SplitShare{0, share_of(job.tiles(), job.pairs, job.k, behind)};
    job.begin = share.tiles.begin;
    job.end = share.tiles.end;
    job.split = static_cast<unsigned char>(split > 1 ? split : 1);
    job.part = static_cast<unsigned char>(share.part);
    return job;
}

}  // namespace akunu::cuda
