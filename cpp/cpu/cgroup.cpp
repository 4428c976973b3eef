// Formats: cgroups(7); Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst of Linux.
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

}  // namespace

double cgroup_cpus(const std::string& root) {
    double least = 0;
    // `path` in the hierarchy mounted at `mount`, and each group above it. A path of another namespace is not found
    // there; the mount's own group then still counts.
    const auto walk = [&](const std::string& mount, std::string path, double (*quota)(const std::string&)) {
        for (;;) {
            const double found = quota(mount + path);
            if (found > 0) least = least > 0 ? std::min(least, found) : found;
            if (path.empty()) return;
            path.resize(path.rfind('/'));
        }
    };
    const std::string mount = root + "/sys/fs/cgroup";
    walk(mount, "", unified_quota);
    walk(mount + "/cpu", "", legacy_quota);
    // Lines "hierarchy:controllers:path"; version 2 has no controllers there.
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
        if (!path.starts_with('/')) continue;
        if (controllers.empty()) walk(mount, path, unified_quota);
        if (("," + controllers + ",").find(",cpu,") != std::string::npos) walk(mount + "/cpu", path, legacy_quota);
    }
    return least;
}

}  // namespace akunu::cpu
