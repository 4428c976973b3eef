#include "dequant_k.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(q5_k, Q5_K)
