#include "dequant_k.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(q6_k, Q6_K)
