#include "dequant_legacy.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(q4_1, Q4_1)
