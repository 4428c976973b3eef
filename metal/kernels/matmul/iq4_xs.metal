#include "dequant_table.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(iq4_xs, IQ4_XS)
