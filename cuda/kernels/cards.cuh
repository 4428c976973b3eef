// A model on several GPUs of a host: each multiplies with its part of the weights, and what they make is added up.
//
// Cards store words of eight bytes in one another's memory: a value and the number of the command that it is of, as
// mailbox words are. So a card polls its own memory, no fence is needed, and a sum costs the way to the other card
// once. All cards run the same commands in grids of the same size, and add in the same order: so they have the same
// bits, sample the same tokens, and nothing else has to be told.
//
// Sums use two buffers in turn. A card stores to the second next one once it has all of the next one's words, which the
// others store when they have read those of this one.
#pragma once

#include "block.cuh"

namespace akunu::cuda {

#if AKUNU_CARDS > 1

// Where card `to` finds what card `from` stores for a sum.
AKUNU_DEVICE u64* card_words(const Cards& cards, u32 to, u32 from, u32 sum) {
    return in_global(cards.words[to]) + kCardEnds + u64(sum % 2 * cards.count + from) * cards.apart;
}

AKUNU_DEVICE void tell_cards(const Cards& cards, u32 sum, u64 place, u32 value, u32 number) {
    for (u32 to = 0; to < cards.count; ++to) {
        if (to != cards.mine)
            store_card_word(card_words(cards, to, cards.mine, sum) + place, u64(number) << 32 | value);
    }
}

// By a warp, of lanes that are `there`: what card `from` has told, or the card's own value.
AKUNU_DEVICE float told_by_card(const Cards& cards, u32 from, u32 sum, u64 place, float own, u32 number, bool there) {
    if (from == cards.mine) return own;
    const u64* at = card_words(cards, cards.mine, from, sum) + place;
    u32 value = 0;
    wait_for_words([&] {
        const u64 word = there ? load_card_word(at) : u64(number) << 32;
        value = value_of(word);
        return number_of(word) == number;
    });
    return bits_to_float(value);
}

// By a warp: the sum of all cards' values at a place, in the cards' order.
AKUNU_DEVICE float sum_of_cards(u32 sum, u64 place, float own, u32 number, bool there) {
    const Cards& cards = block_state().launch.cards;
    if (there) tell_cards(cards, sum, place, float_to_bits(own), number);
    float all = told_by_card(cards, 0, sum, place, own, number, there);
    for (u32 from = 1; from < cards.count; ++from) all += told_by_card(cards, from, sum, place, own, number, there);
    return all;
}

// Behind the barrier that a step's end is, by all warps: whether some card's host wants the chain to end. All cards
// have come so far then, so what they copied from the host's memory may be overwritten.
AKUNU_DEVICE bool cards_end(const Launch& launch, u32 step, u32 number, bool halt) {
    const Cards& cards = launch.cards;
    if (any_of_warp(cards.count < 2)) return false;
    const u32 first = step % 2 * kMostCards, lane = lane_id();
    if (block_id() == 0 && thread_id_anew() == 0) {
        for (u32 to = 0; to < cards.count; ++to) {
            if (to == cards.mine) continue;
            store_card_word(in_global(cards.words[to]) + first + cards.mine, u64(number) << 32 | u32(halt));
        }
    }
    bool ends = halt;
    wait_for_words([&] {
        if (lane >= cards.count || lane == cards.mine) return true;
        const u64 word = load_card_word(in_global(cards.words[cards.mine]) + first + lane);
        ends = value_of(word) != 0;
        return number_of(word) == number;
    });
    return any_of_warp(ends);
}

AKUNU_DEVICE_CALL void all_reduce(Block b) {
    const auto& p = b.params<AllReduceParams>();
    const float* x = b.buffer<float>(0);
    float* y = b.buffer<float>(1);
    const u64 all = u64(p.rows) * p.dim, apart = u64(b.blocks()) * kThreads;
    const u64 mine = u64(b.first()) * kThreads + thread_id();
    const auto put = [&](u64 i, u32 part, float v) {
        float& out = y[i / p.dim * p.y_stride + u64(part) * p.dim + i % p.dim];
        out = p.accumulate ? out + v : v;
    };
    const auto in = [&](u64 i) { return x[i / p.dim * p.x_stride + i % p.dim]; };
    const Cards& cards = block_state().launch.cards;
    if (any_of_warp(cards.count > 1)) {
        const u32 number = block_state().walk[b.slot].number, sum = block_state().walk[b.slot].sums;
        for (u64 i = mine; i < all; i += apart) tell_cards(cards, sum, i, float_to_bits(in(i)), number);
        // By whole warps.
        for (u64 i = mine; i - lane_id() < all; i += apart) {
            const bool there = i < all;
            const float own = there ? in(i) : 0.0f;
            float v = 0.0f;
            for (u32 from = 0; from < cards.count; ++from) {
                const float told = told_by_card(cards, from, sum, i, own, number, there);
                v = from == 0 ? told : v + told;
                if (p.gather && there) put(i, from, told);
            }
            if (!p.gather && there) put(i, 0, v);
        }
        return;
    }
    for (u64 i = mine; i < all; i += apart) put(i, 0, in(i));
}

#endif

}  // namespace akunu::cuda
