// Formats: cgroups(7); Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and
// scheduler/sched-bwc.rst of Linux.
#include "cpu/cgroup.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace akunu::cpu {

std::string read_line(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    return line;
}

namespace {

// CPUs of "quota period", both in microseconds; "max" and -1 mean no quota.
double cpus(const std::string& quota, const std::string& period) {
    const double q = std::atof(quota.c_str()), p = std::atof(period.c_str());
    return q > 0 && p > 0 ? q / p : 0;
}

double unified_quota(const std::string& group) {  // version 2
    std::string quota, period;
    std::istringstream(read_line(group + "/cpu.max")) >> quota >> period;
    return cpus(quota, period);
}

double legacy_quota(const std::string& group) {  // version 1
    return cpus(read_line(group + "/cpu.cfs_quota_us"), read_line(group + "/cpu.cfs_period_us"));
}

double less(double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

// Bytes; "max" is none. So is what version 1 says of groups without a limit, a number above all memories: 2^63 - 1 in
// whole pages.
double bytes(const std::string& limit) {
    const double n = std::atof(limit.c_str());
    return n < 0x1p62 ? n : 0;
}

// Above `high` the kernel slows the group down so that it hardly runs.
double unified_memory(const std::string& group) {
    return less(bytes(read_line(group + "/memory.max")), bytes(read_line(group + "/memory.high")));
}

double legacy_memory(const std::string& group) { return bytes(read_line(group + "/memory.limit_in_bytes")); }

// What the process' group and those above it grant, the least of them; 0 where there is no limit. `controller` is the
// one that version 1 has for it.
double least_of_groups(const std::string& root, const std::string& controller, double (*unified)(const std::string&),
                       double (*legacy)(const std::string&)) {
    double least = 0;
    // `path` in the hierarchy mounted at `mount`, and each group above it. A path of another namespace is not found
    // there; the mount's own group then still counts.
    const auto walk = [&](const std::string& mount, std::string path, double (*limit)(const std::string&)) {
        for (;;) {
            least = less(least, limit(mount + path));
            if (path.empty()) return;
            path.resize(path.rfind('/'));
        }
    };
    const std::string mount = root + "/sys/fs/cgroup", legacy_mount = mount + "/" + controller;
    walk(mount, "", unified);
    walk(mount + "/unified", "", unified);  // beside version 1
    walk(legacy_mount, "", legacy);
    // Lines "hierarchy:controllers:path"; version 2 has no controllers there.
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
        if (!path.starts_with('/')) continue;
        if (controllers.empty()) {
            walk(mount, path, unified);
            walk(mount + "/unified", path, unified);
        }
        if (("," + controllers + ",").find("," + controller + ",") != std::string::npos) {
            walk(legacy_mount, path, legacy);
        }
    }
    return least;
}

}  // namespace

double cgroup_cpus(const std::string& root) { return least_of_groups(root, "cpu", unified_quota, legacy_quota); }

std::uint64_t cgroup_memory(const std::string& root) {
    return static_cast<std::uint64_t>(least_of_groups(root, "memory", unified_memory, legacy_memory));
}

}  // namespace akunu::cpu
