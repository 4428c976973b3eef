// norm_qkv where v has another type than q and k.
#include "dequant_k.h"
#include "dequant_table.h"
#include "instantiate.h"
#include "matmul_gemv.h"
#include "core/mixed_qkv.h"

#define AKUNU_NORM_QKV(qk, QK, v, V) AKUNU_KERNEL("norm_qkv_" #qk "_" #v, norm_qkv<QK, V>)

AKUNU_MIXED_QKV(AKUNU_NORM_QKV)
