// The devices of this build, by name.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"

namespace akunu {

struct DeviceEntry {
    std::string id;       // what `device=` takes
    std::string backend;  // column "backend" of akunu-bench
    std::string name, isa;
    int threads = 1;
    std::uint64_t memory = 0;
    std::map<int, int> nodes = {};  // cores of each memory node, where memory has nodes
    std::uint32_t prompt_rows = DeviceTraits{}.prompt_rows;
};

// Usable devices, best first.
std::vector<DeviceEntry> list_devices();
// Kinds of devices that this build has and this machine does not, and why.
struct MissingDevice {
    std::string backend, why;
};
std::vector<MissingDevice> missing_devices();
// Opens in a thread of its own what of the best device takes long to open, a GPU's driver and context, while its caller
// does something else. It stays open as long as somebody has what comes of it.
std::future<std::shared_ptr<void>> open_ahead();
// Whether an id is that of a device that only plans: "plan:M4 Max", for a chip that need not be here.
bool is_planned(std::string_view id);
// `id` "auto" takes the best. Throws DeviceError for one that is not there.
std::unique_ptr<Device> open_device(const std::string& id, int threads);

// The processor's kernels, once for each instruction set: those of this build, best first, and whether they run here.
struct InstructionSet {
    std::string name;
    bool supported = false;
};
std::vector<InstructionSet> instruction_sets();
// The processor with the kernels of this set. InvalidArgumentError where it has none of that name, or cannot run them.
std::unique_ptr<Device> open_processor(int threads, const std::string& isa);
Peaks measure_peaks(int threads, double seconds);

}  // namespace akunu
