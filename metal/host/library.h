// Kernels by name: libraries compiled when first needed, pipelines per function and constants.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "metal/choose/kernel_choice.h"
#include "metal/host/kernel_sources.h"
#import "metal/host/objc.h"

namespace akunu::metal {

class Library {
  public:
    explicit Library(id<MTLDevice> device);
    ~Library();

    // Lives as long as this object. UnsupportedError when there is no such function; DeviceError with the compiler's
    // message when it does not compile.
    id<MTLComputePipelineState> pipeline(const Pass& pass);
    // As above, for an indirect command buffer.
    id<MTLComputePipelineState> indirect_pipeline(const Pass& pass);

  private:
    struct Key {
        std::string function;
        std::vector<Constant> constants;
        std::uint32_t threads;  // of a threadgroup
        bool indirect;
        // Not <=>, which older standard libraries of Apple's lack for vectors.
        bool operator<(const Key& o) const {
            return std::tie(function, constants, threads, indirect) <
                   std::tie(o.function, o.constants, o.threads, o.indirect);
        }
    };
    static Key key_of(const Pass& pass, bool indirect);
    id<MTLComputePipelineState> find(Key key);
    id<MTLComputePipelineState> build(const Key& key);
    id<MTLLibrary> library_of(const std::string& function);
    void save_archive();

    id<MTLDevice> device_;
    id<MTLLibrary> compiled_;  // where the build had Apple's compiler
    std::set<std::string> compiled_functions_;
    std::map<std::string_view, id<MTLLibrary>> libraries_;
    std::map<Key, id<MTLComputePipelineState>> pipelines_;
    id<MTLBinaryArchive> archive_;
    std::string archive_path_;
    bool archive_changed_ = false;
};

}  // namespace akunu::metal
