// Ahead of cpp/cpu/isa/avx2_vnni.cpp: the processor is said to have its instruction (tests/kernels/test_drivers.py).
#pragma once

#include <cpuid.h>

#define __get_cpuid_count(leaf, subleaf, a, b, c, d) (*(a) = 1u << 4, *(b) = *(c) = *(d) = 0, 1)
