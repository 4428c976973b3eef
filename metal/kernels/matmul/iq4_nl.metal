#include "dequant_table.h"
#include "matmul_kernels.h"

AKUNU_MATMUL_KERNELS(iq4_nl, IQ4_NL)
