// The CPU quota that is found in folders laid out as Linux lays out its control groups.
#include "cpu/cgroup.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "check.h"

namespace {

using akunu::cpu::cgroup_cpus;
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

}  // namespace

int main() {
    check_version_2();
    check_container();
    check_version_1();
}
