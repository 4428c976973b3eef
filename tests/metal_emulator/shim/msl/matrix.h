// floatCxR matrices: column-major, of C columns with R rows.
#pragma once
#include "construct.h"

namespace metal {
template <class T, int C, int R>
struct matrix {
    vec<T, R> columns[C];
    matrix() = default;
    explicit matrix(T diagonal) {
        for (int c = 0; c < C; ++c)
            for (int r = 0; r < R; ++r) columns[c][r] = c == r ? diagonal : T(0);
    }
    template <class... A, class = std::enable_if_t<sizeof...(A) == C && (C > 1)>>
    matrix(A... a) : columns{vec<T, R>(a)...} {}
    template <class U>
    explicit matrix(const matrix<U, C, R>& m) {
        for (int c = 0; c < C; ++c) columns[c] = __builtin_convertvector(m.columns[c], vec<T, R>);
    }
    vec<T, R>& operator[](int c) { return columns[c]; }
    const vec<T, R>& operator[](int c) const { return columns[c]; }
    friend matrix operator*(matrix m, T s) {
        for (auto& c : m.columns) c *= s;
        return m;
    }
    friend matrix operator*(T s, matrix m) { return m * s; }
    friend matrix operator+(matrix a, const matrix& b) {
        for (int c = 0; c < C; ++c) a.columns[c] += b.columns[c];
        return a;
    }
    friend matrix operator-(matrix a, const matrix& b) {
        for (int c = 0; c < C; ++c) a.columns[c] -= b.columns[c];
        return a;
    }
    friend vec<T, R> operator*(const matrix& m, vec<T, C> v) {
        vec<T, R> r = m.columns[0] * v[0];
        for (int c = 1; c < C; ++c) r += m.columns[c] * v[c];
        return r;
    }
    template <int K>
    friend matrix<T, K, R> operator*(const matrix& a, const matrix<T, K, C>& b) {
        matrix<T, K, R> r;
        for (int k = 0; k < K; ++k) r.columns[k] = a * b.columns[k];
        return r;
    }
};
template <class T, int C, int R>
inline matrix<T, R, C> transpose(const matrix<T, C, R>& m) {
    matrix<T, R, C> r;
    for (int c = 0; c < C; ++c)
        for (int k = 0; k < R; ++k) r.columns[k][c] = m.columns[c][k];
    return r;
}
#define MSL_MATRICES(T)             \
    typedef matrix<T, 2, 2> T##2x2; \
    typedef matrix<T, 2, 3> T##2x3; \
    typedef matrix<T, 2, 4> T##2x4; \
    typedef matrix<T, 3, 2> T##3x2; \
    typedef matrix<T, 3, 3> T##3x3; \
    typedef matrix<T, 3, 4> T##3x4; \
    typedef matrix<T, 4, 2> T##4x2; \
    typedef matrix<T, 4, 3> T##4x3; \
    typedef matrix<T, 4, 4> T##4x4;
MSL_MATRICES(float) MSL_MATRICES(half)
#undef MSL_MATRICES
}  // namespace metal
