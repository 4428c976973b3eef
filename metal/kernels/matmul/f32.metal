#include "dequant_float.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(f32, F32)
