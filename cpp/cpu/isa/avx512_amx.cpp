// AVX-512 with VNNI, and tiles (AMX: Sapphire Rapids and later) for the floats of encoders. All else is the set for
// VNNI's.
#define AKUNU_ISA isa_avx512_amx

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/q8.h"
#include "cpu/digits.h"
#include "cpu/fixed.h"
#include "cpu/kernel.h"
#include "cpu/kv_layout.h"

// Order matters: each file uses the ones before it.
// clang-format off
#include "cpu/simd/avx512.h"
#include "cpu/simd/amx.h"
#include "cpu/kernels/activation.inl"
#include "cpu/kernels/kv_cache.inl"
#include "cpu/kernels/matmul_output.inl"
#include "cpu/kernels/matmul_whole.inl"
#include "cpu/kernels/matmul_digits.inl"
#include "cpu/kernels/attention_rows.inl"
#include "cpu/kernels/attention_heads.inl"
#include "cpu/kernels/attention_split.inl"
// clang-format on

namespace akunu::cpu {

extern const KernelSet kKernels_avx512_vnni;

}  // namespace akunu::cpu

namespace akunu::cpu::AKUNU_ISA {

static Kernel find_kernel(const DispatchCmd& cmd) {
    if (cmd.whole == Whole::kSequences) return find_matmul_whole<DigitProducts>(cmd.op);
    return can_split_attention(cmd) ? attention_split_floats : kKernels_avx512_vnni.find(cmd);
}

// Whether the processor has AMX, and Linux lets this process use it: its state is large, so that one has to ask.
static bool may_use_tiles() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25, kAvx512Bf16 = 1u << 5;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (~d & (kBf16 | kTile | kInt8))) return false;
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & kAvx512Bf16)) return false;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // of arch_prctl
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace akunu::cpu::AKUNU_ISA

namespace akunu::cpu {

extern const KernelSet kKernels_avx512_amx;
const KernelSet kKernels_avx512_amx{
    "avx512_amx",
    isa_avx512_amx::L,
    [] { return kKernels_avx512_vnni.supported() && isa_avx512_amx::may_use_tiles(); },
    isa_avx512_amx::find_kernel,
    [](DType type) { return kKernels_avx512_vnni.quantizer(type); },
    [](std::uint64_t iterations) { return kKernels_avx512_vnni.probe_f32(iterations); },
    [](std::uint64_t iterations) { return kKernels_avx512_vnni.probe_int8(iterations); },
    [](const std::byte* data, std::uint64_t bytes) { return kKernels_avx512_vnni.probe_read(data, bytes); },
    &kDigitFormat,
    &kFixedFormat,
};

}  // namespace akunu::cpu
