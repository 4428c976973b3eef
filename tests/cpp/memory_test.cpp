// Where the pages of a device's memory lie, by what the kernel says of their addresses. The node is the first one,
// which every machine has: spread over it alone, memory works as it does over several.
#include "cpu/memory.h"

#include "check.h"
#include "core/model.h"
#include "cpu/cpu_device.h"

#ifdef __linux__
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

namespace {

using namespace akunu;
using akunu::test::check;

constexpr std::uint64_t kBytes = std::uint64_t{3} << 20;
const std::vector<int> kFirst{0};

// -1 where the system does not tell.
int policy_of(void* address) {
    int policy = 0;
    const auto flags = address ? MPOL_F_ADDR : 0;
    return syscall(SYS_get_mempolicy, &policy, nullptr, 0, address, flags) == 0 ? policy : -1;
}

bool can_spread() {
    const cpu::Mapping memory = cpu::map_memory(kBytes, "");
    const unsigned long first = 1;
    return policy_of(nullptr) == MPOL_DEFAULT &&
           syscall(SYS_mbind, memory.get(), kBytes, MPOL_INTERLEAVE, &first, 8 * sizeof first, 0) == 0;
}

void check_mapping() {
    const cpu::Mapping memory = cpu::map_memory(kBytes, "");
    cpu::spread(memory.get(), kBytes, {});
    check(policy_of(memory.get()) == MPOL_DEFAULT, "no nodes, no policy");
    cpu::spread(memory.get(), kBytes, kFirst);
    check(policy_of(memory.get()) == MPOL_INTERLEAVE, "the first byte");
    check(policy_of(memory.get() + kBytes - 1) == MPOL_INTERLEAVE, "the last byte");
    memory.get()[kBytes - 1] = std::byte{1};
}

void check_device(const std::vector<int>& nodes, int expected) {
    cpu::CpuDevice device(1, cpu::select_kernels(), nodes);
    Buffer pages = device.allocate(kBytes, MemoryKind::kDevice);
    check(pages.host == nullptr, "this is a poisoned build");
    check(policy_of(pages.device) == expected, "a buffer");
    device.release(pages);
    for (const std::uint64_t rows : {std::uint64_t{64}, std::uint64_t{5120}}) {  // in a slab, and in its own mapping
        const std::vector<std::byte> values(rows * 1024 * sizeof(float));
        Weight weight = device.prepare_weight({DType::F32, rows, 1024, values});
        check(policy_of(weight.data.as()) == expected, "a packed weight");
        device.release(weight.data.buffer);
    }
}

void check_users_policy() {
    const unsigned long first = 1;
    check(syscall(SYS_set_mempolicy, MPOL_BIND, &first, 8 * sizeof first) == 0, "set_mempolicy");
    const cpu::Mapping memory = cpu::map_memory(kBytes, "");
    cpu::spread(memory.get(), kBytes, kFirst);
    check(policy_of(memory.get()) != MPOL_INTERLEAVE, "the user's policy stays");
}

}  // namespace

int main() {
    if (!can_spread()) return 0;
    check_mapping();
    check_device(kFirst, MPOL_INTERLEAVE);
    check_device({}, MPOL_DEFAULT);
    check_users_policy();
}

#else

int main() {}

#endif
