#import "metal/host/resolved_command.h"

#include <cstring>

#include "core/error.h"

namespace akunu::metal {

namespace {

template <typename T>
void append(std::string& key, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Equal for commands that resolve to the same.
std::string key_of(const KernelChoice& choice, const Extent& extent, const DispatchCmd& cmd, bool fixed) {
    std::string key;
    append(key, choice.scratch_bytes);
    for (const Pass& p : choice.passes) {
        append(key, p.function.size());
        key += p.function;
        append(key, p.constants.size());
        for (const Constant& c : p.constants) {
            append(key, c.type);
            append(key, c.index);
            append(key, c.value);
        }
        for (const GroupCount& g : {p.x, p.y, p.z}) append(key, g);
        append(key, p.threads);
        append(key, p.counted);
    }
    append(key, extent.rows);
    append(key, extent.follows.has_value());
    append(key, extent.follows.value_or(Patch{}));
    append(key, extent.window);
    if (fixed) key.append(reinterpret_cast<const char*>(cmd.params.data()), cmd.param_bytes);
    return key;
}

}  // namespace

Resolver::~Resolver() {
    for (Buffer& b : params_) memory_.release(b);
    if (scratch_.handle) memory_.release(scratch_);
}

void Resolver::place_params(const DispatchCmd& cmd, ResolvedCommand& resolved) {
    if (params_used_ % kParamsPerBuffer == 0)
        params_.push_back(memory_.allocate(kParamsStride * kParamsPerBuffer, MemoryKind::kShared));
    const Buffer& buffer = params_.back();
    resolved.params = buffer.handle;
    resolved.params_offset = params_used_++ % kParamsPerBuffer * kParamsStride;
    std::memcpy(buffer.host + resolved.params_offset, cmd.params.data(), cmd.param_bytes);
}

const ResolvedCommand* Resolver::resolve(const DispatchCmd& cmd) {
    KernelChoice choice = choose_kernels(cmd, chip_);
    const Extent extent = Extent::of(cmd);
    const bool fixed = is_static(cmd);
    const std::string key = key_of(choice, extent, cmd, fixed);
    if (const auto found = commands_.find(key); found != commands_.end()) return found->second.get();

    auto resolved = std::make_unique<ResolvedCommand>();
    for (const Pass& p : choice.passes) {
        resolved->passes.push_back(
            {library_.pipeline(p), p.x, p.y, p.z, MTLSizeMake(p.threads.x, p.threads.y, p.threads.z), p.counted});
        const NSUInteger threads = std::size_t{p.threads.x} * p.threads.y * p.threads.z;
        const NSUInteger most = resolved->passes.back().pipeline.maxTotalThreadsPerThreadgroup;
        if (threads > most) {
            throw DeviceError("kernel '" + p.function + "' runs with at most " + std::to_string(most) +
                              " threads per threadgroup on this GPU, " + std::to_string(threads) + " were chosen");
        }
    }
    resolved->extent = extent;
    resolved->scratch = choice.scratch_bytes != 0;
    if (choice.scratch_bytes > scratch_.size) {
        Buffer larger = memory_.allocate(choice.scratch_bytes, MemoryKind::kDevice);
        if (scratch_.handle) memory_.release(scratch_);
        scratch_ = larger;
    }
    if (fixed && cmd.param_bytes != 0) place_params(cmd, *resolved);
    resolved->choice = std::move(choice);
    return commands_.emplace(key, std::move(resolved)).first->second.get();
}

}  // namespace akunu::metal
