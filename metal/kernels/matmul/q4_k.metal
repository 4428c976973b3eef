#include "dequant_k.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(q4_k, Q4_K)
