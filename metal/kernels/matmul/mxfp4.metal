#include "dequant_table.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(mxfp4, MXFP4)
