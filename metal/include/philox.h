// Random numbers and noise of docs/sampling.md. Included by .metal files only.
#pragma once

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
static inline uint4 philox4x32(uint4 c, uint2 key) {
    for (ushort round = 0; round < 10; ++round) {
        const uint low0 = 0xD2511F53u * c.x, high0 = mulhi(0xD2511F53u, c.x);
        const uint low1 = 0xCD9E8D57u * c.z, high1 = mulhi(0xCD9E8D57u, c.z);
        c = uint4(high1 ^ c.y ^ key.x, low1, high0 ^ c.w ^ key.y, low0);
        key += uint2(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}

// -log(-log1p(-u)) with u = (word + 1/2)·2^-32, to about 1e-6. Fast math may reorder sums, so nothing here cancels:
// log1p(-u) = -2·atanh(u / (2 - u)) as a series for u < 1/2, and log(1 - u) with 1 - u from the inverted word else.
static inline float gumbel(uint word) {
    constexpr float kScale = 0x1p-32f;
    float e;
    if (word < 0x80000000u) {
        const float u = (float(word) + 0.5f) * kScale;
        const float z = u / (2.0f - u), s = z * z;  // s <= 1/9
        float sum = 1.0f / 15.0f;
        sum = fma(sum, s, 1.0f / 13.0f);
        sum = fma(sum, s, 1.0f / 11.0f);
        sum = fma(sum, s, 1.0f / 9.0f);
        sum = fma(sum, s, 1.0f / 7.0f);
        sum = fma(sum, s, 1.0f / 5.0f);
        sum = fma(sum, s, 1.0f / 3.0f);
        e = 2.0f * fma(z * s, sum, z);
    } else {
        e = -precise::log((float(~word) + 0.5f) * kScale);
    }
    return -precise::log(e);
}

// The random word of one token.
static inline uint random_word(uint2 seed, uint position, uint id) {
    const uint4 words = philox4x32(uint4(id / 4, position, 0, 0), seed);
    return words[id % 4];
}
