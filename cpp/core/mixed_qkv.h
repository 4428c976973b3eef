// The pairs of types that norm_qkv has kernels for: X(qk, QK, v, V) with the types' names and those that DType and the
// dequantisers have.
//
// They are those that llama.cpp's quantisation mixes make (llama_tensor_get_type and tensor_type_fallback in
// src/llama-quant.cpp), where both types have kernels: Q2_K, Q3_K_M and _L, Q4_K_S and _M, Q5_K_M, IQ4_NL and IQ4_XS,
// and Q2_K to Q4_K of 70B models; then what becomes of these where rows are not whole blocks of 256.
#pragma once

#define AKUNU_MIXED_QKV(X)        \
    X(q2_k, Q2_K, q3_k, Q3_K)     \
    X(q2_k, Q2_K, q4_k, Q4_K)     \
    X(q2_k, Q2_K, q5_k, Q5_K)     \
    X(q3_k, Q3_K, q4_k, Q4_K)     \
    X(q3_k, Q3_K, q5_k, Q5_K)     \
    X(q4_k, Q4_K, q5_k, Q5_K)     \
    X(q4_k, Q4_K, q6_k, Q6_K)     \
    X(q5_k, Q5_K, q6_k, Q6_K)     \
    X(iq4_nl, IQ4_NL, q5_k, Q5_K) \
    X(iq4_xs, IQ4_XS, q5_k, Q5_K) \
    X(q4_0, Q4_0, q5_0, Q5_0)     \
    X(q4_0, Q4_0, q5_1, Q5_1)     \
    X(q5_0, Q5_0, q5_1, Q5_1)     \
    X(q5_0, Q5_0, q8_0, Q8_0)     \
    X(q5_1, Q5_1, q8_0, Q8_0)     \
    X(iq4_nl, IQ4_NL, q5_1, Q5_1)
