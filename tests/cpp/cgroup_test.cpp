// The CPU quota and the memory limit that are found in folders laid out as Linux lays out its control groups.
#include "cpu/cgroup.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "check.h"

namespace {

using akunu::cpu::cgroup_cpus;
using akunu::cpu::cgroup_memory;
using akunu::test::check;
namespace fs = std::filesystem;

struct Root {
    fs::path path = fs::temp_directory_path() / ("cgroup_test." + std::to_string(::getpid()));
    Root() { fs::create_directories(path); }
    ~Root() { fs::remove_all(path); }
    void write(const std::string& name, const std::string& text) const {
        fs::create_directories((path / name).parent_path());
        std::ofstream(path / name) << text << "\n";
    }
    double cpus() const { return cgroup_cpus(path.string()); }
    std::uint64_t memory() const { return cgroup_memory(path.string()); }
};

void check_version_2() {
    const Root root;
    check(root.cpus() == 0, "no groups at all");
    root.write("proc/self/cgroup", "0::/system.slice/app.service/worker");
    root.write("sys/fs/cgroup/system.slice/app.service/worker/cpu.max", "max 100000");
    check(root.cpus() == 0, "max is no quota");
    root.write("sys/fs/cgroup/system.slice/app.service/cpu.max", "350000 100000");
    check(root.cpus() == 3.5, "the quota of a group above");
    root.write("sys/fs/cgroup/system.slice/app.service/worker/cpu.max", "600000 100000");
    check(root.cpus() == 3.5, "the least quota counts");
    root.write("sys/fs/cgroup/system.slice/app.service/worker/cpu.max", "50000 100000");
    check(root.cpus() == 0.5, "the least quota counts, wherever it is");
    root.write("sys/fs/cgroup/other/cpu.max", "10000 100000");
    check(root.cpus() == 0.5, "another process' group does not count");
}

void check_container() {
    const Root root;
    root.write("sys/fs/cgroup/cpu.max", "200000 100000");
    check(root.cpus() == 2, "the mount's own group, without a list of groups");
    root.write("proc/self/cgroup", "0::/");
    check(root.cpus() == 2, "a namespace of its own");
    root.write("proc/self/cgroup", "0::/../../elsewhere");
    check(root.cpus() == 2, "a group outside of the namespace");
    root.write("proc/self/cgroup", "nothing that is known\n::");
    check(root.cpus() == 2, "other lines");
}

void check_version_1() {
    const Root root;
    root.write("proc/self/cgroup", "11:memory:/m\n4:cpu,cpuacct:/docker/abc\n1:cpuset:/only\n0::/user.slice");
    root.write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1");
    root.write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000");
    check(root.cpus() == 0, "-1 is no quota");
    root.write("sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "150000");
    root.write("sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "50000");
    check(root.cpus() == 3, "the quota of a group above");
    root.write("sys/fs/cgroup/cpu/only/cpu.cfs_quota_us", "1000");
    root.write("sys/fs/cgroup/cpu/only/cpu.cfs_period_us", "1000");
    check(root.cpus() == 3, "only the cpu controller's group counts");
    root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "20000");
    root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "10000");
    check(root.cpus() == 2, "the mount's own group");
}

void check_memory_of_version_2() {
    const Root root;
    check(root.memory() == 0, "no groups at all");
    root.write("proc/self/cgroup", "0::/system.slice/app.service/worker");
    root.write("sys/fs/cgroup/system.slice/app.service/worker/memory.max", "max");
    root.write("sys/fs/cgroup/system.slice/app.service/worker/memory.high", "max");
    check(root.memory() == 0, "max is no limit");
    root.write("sys/fs/cgroup/system.slice/app.service/memory.max", "314572800");
    check(root.memory() == 300u << 20, "the limit of a group above");
    root.write("sys/fs/cgroup/system.slice/memory.max", "104857600");
    check(root.memory() == 100u << 20, "the least limit counts");
    root.write("sys/fs/cgroup/system.slice/app.service/worker/memory.high", "52428800");
    check(root.memory() == 50u << 20, "so does the one above which a group is slowed down");
    root.write("sys/fs/cgroup/other/memory.max", "1048576");
    check(root.memory() == 50u << 20, "another process' group does not count");
    root.write("proc/self/cgroup", "0::/../../elsewhere");
    root.write("sys/fs/cgroup/memory.max", "209715200");
    check(root.memory() == 200u << 20, "in a namespace of its own, the mount's own group");
}

void check_memory_of_version_1() {
    const Root root;
    root.write("proc/self/cgroup", "11:memory:/docker/abc\n4:cpu,cpuacct:/c\n0::/user.slice");
    root.write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712");
    check(root.memory() == 0, "a number above all memories is no limit");
    root.write("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "314572800");
    check(root.memory() == 300u << 20, "the limit of a group above");
    root.write("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1048576");
    check(root.memory() == 300u << 20, "only the memory controller's group counts");
    root.write("sys/fs/cgroup/unified/user.slice/memory.max", "104857600");
    check(root.memory() == 100u << 20, "version 2 beside it");
}

}  // namespace

int main() {
    check_version_2();
    check_container();
    check_version_1();
    check_memory_of_version_2();
    check_memory_of_version_1();
}
