#include "dequant_legacy.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(q5_0, Q5_0)
