#include "dequant_legacy.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(q4_0, Q4_0)
