#include "dequant_k.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(q3_k, Q3_K)
