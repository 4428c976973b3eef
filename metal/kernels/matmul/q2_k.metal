#include "dequant_k.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(q2_k, Q2_K)
