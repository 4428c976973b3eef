// Does what a sanitizer must report, so that a silent run of the other drivers means something:
// canary overflow | undefined | device | race
#include <cstdio>
#include <limits>
#include <string_view>
#include <thread>
#include <vector>

#include "cpu/cpu_device.h"

int main(int argc, char** argv) {
    const std::string_view what = argc == 2 ? argv[1] : "";
    if (what == "overflow") {
        volatile int n = 8;  // what is wrong is not for the compiler to see
        std::vector<int> v(n);
        volatile int* beyond = v.data() + n;
        std::printf("%d\n", *beyond);
    } else if (what == "undefined") {
        volatile int largest = std::numeric_limits<int>::max();
        std::printf("%d\n", largest + 1);
    } else if (what == "device") {  // the host looks into memory that is the device's alone
        akunu::cpu::CpuDevice device(1);
        const akunu::DeviceBuffer memory(device, 64, akunu::MemoryKind::kDevice);
        std::printf("%d\n", *memory.at().host<int>());
    } else if (what == "race") {
        int n = 0;
        std::thread other([&] { ++n; });
        ++n;
        other.join();
        std::printf("%d\n", n);
    } else {
        std::fprintf(stderr, "usage: canary overflow | undefined | device | race\n");
        return 2;
    }
    return 0;
}
