#include "dequant_legacy.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(q8_0, Q8_0)
