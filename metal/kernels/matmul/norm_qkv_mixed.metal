// norm_qkv where v has another type than q and k.
#include "dequant_k.h"
#include "dequant_table.h"
#include "matmul_gemv.h"
#include "mixed_qkv.h"

#define AKUNU_KERNEL(name, ...) template [[host_name(name)]] [[kernel]] decltype(__VA_ARGS__) __VA_ARGS__;
#define AKUNU_NORM_QKV(qk, QK, v, V) AKUNU_KERNEL("norm_qkv_" #qk "_" #v, norm_qkv<QK, V>)

AKUNU_MIXED_QKV(AKUNU_NORM_QKV)
