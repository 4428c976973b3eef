// Lifetimes: which activations a model's tables need at the same time. The others may share memory.
//
// An activation lives from the command that writes it, without reading it, to the last one that reads it before it is
// written so again. What a table reads before it writes it lives outside of tables too, and shares with nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/dispatch.h"

namespace akunu {

// A part of the workspace: an activation in f32, or in its compact format.
struct ActivationKey {
    std::string name;
    bool compact = false;
    auto operator<=>(const ActivationKey&) const = default;
};

class Lifetimes {
  public:
    // Which part a command's buffer is of; null where it is of none.
    using PartOf = std::function<const ActivationKey*(const Binding&)>;

    void add(const DispatchTable& table, const PartOf& part_of);
    bool lives_outside(const ActivationKey& part) const { return outside_.contains(part); }
    // Whether some table needs both at a time, or lets a device overlap commands that use the one and the other.
    bool overlap(const ActivationKey& a, const ActivationKey& b) const;

  private:
    // From the first to the last stage: commands with no barrier between are one.
    struct Range {
        std::size_t first, last;
    };
    std::set<ActivationKey> outside_;
    std::vector<std::map<ActivationKey, std::vector<Range>>> tables_;
};

}  // namespace akunu
