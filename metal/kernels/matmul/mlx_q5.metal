#include "mlx_kernels.h"

AKUNU_MLX_KERNELS(5)
