#import "metal/host/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/cache_folder.h"
#include "core/error.h"

namespace akunu::metal {

namespace {

namespace fs = std::filesystem;

// A file in the folder of the module that this code is in.
std::string beside_module(const char* name) {
    Dl_info info{};
    static const char here = 0;
    if (dladdr(&here, &info) == 0 || !info.dli_fname) return {};
    return (fs::path(info.dli_fname).parent_path() / name).string();
}

// The archive of compiled kernels: one file per device, system and set of kernel texts. Empty when no folder of the
// user's can be written.
std::string archive_file(id<MTLDevice> device) {
    const fs::path folder = cache_folder();
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed || access(folder.c_str(), W_OK) != 0) return {};
    const NSOperatingSystemVersion os = NSProcessInfo.processInfo.operatingSystemVersion;
    const std::string there = std::string(device.name.UTF8String) + " " + std::to_string(os.majorVersion) + "." +
                              std::to_string(os.minorVersion) + "." + std::to_string(os.patchVersion);
    std::vector<std::string_view> made_of{there};
    for (const KernelSource& s : kernel_sources()) made_of.push_back(s.text);
    return (folder / ("kernels-" + name_of_contents(made_of) + ".metalarchive")).string();
}

}  // namespace

Library::Library(id<MTLDevice> device) : device_(device) {
    pooled([&] {
        // Without it, or where the system is too old for it, the texts are compiled.
        const std::string compiled = beside_module("akunu.metallib");
        if (access(compiled.c_str(), R_OK) == 0) {
            compiled_ = [device_ newLibraryWithURL:[NSURL fileURLWithPath:ns_string(compiled)] error:nil];
            for (NSString* name in compiled_.functionNames) compiled_functions_.insert(name.UTF8String);
        }
        archive_path_ = archive_file(device_);
        MTLBinaryArchiveDescriptor* descriptor = [MTLBinaryArchiveDescriptor new];
        if (!archive_path_.empty() && access(archive_path_.c_str(), R_OK) == 0) {
            descriptor.url = [NSURL fileURLWithPath:ns_string(archive_path_)];
            archive_ = [device_ newBinaryArchiveWithDescriptor:descriptor error:nil];
        }
        if (!archive_) {  // none yet, or one that another system wrote
            descriptor.url = nil;
            archive_ = [device_ newBinaryArchiveWithDescriptor:descriptor error:nil];
        }
    });
}

Library::~Library() {
    @autoreleasepool {
        save_archive();
    }
}

void Library::save_archive() {
    if (!archive_ || !archive_changed_ || archive_path_.empty()) return;
    // Under another name first: a process that reads it must not see half a file.
    const std::string part = archive_path_ + "." + std::to_string(getpid());
    if ([archive_ serializeToURL:[NSURL fileURLWithPath:ns_string(part)] error:nil]) {
        std::error_code failed;
        fs::rename(part, archive_path_, failed);
    }
    unlink(part.c_str());
    archive_changed_ = false;
}

id<MTLLibrary> Library::library_of(const std::string& function) {
    if (compiled_functions_.contains(function)) return compiled_;
    for (const KernelSource& source : kernel_sources()) {
        if (!std::binary_search(source.functions.begin(), source.functions.end(), function)) continue;
        id<MTLLibrary> __strong& library = libraries_[source.name];
        if (library) return library;
        MTLCompileOptions* options = [MTLCompileOptions new];
        options.languageVersion = MTLLanguageVersion3_0;  // of macOS 13
        NSError* error = nil;
        library = [device_ newLibraryWithSource:ns_string(source.text) options:options error:&error];
        if (!library) {
            throw DeviceError("kernels of '" + std::string(source.name) + "' do not compile: " + error_text(error));
        }
        return library;
    }
    throw UnsupportedError("there is no Metal kernel '" + function + "' in this build");
}

id<MTLComputePipelineState> Library::build(const Key& key) {
    MTLFunctionConstantValues* values = [MTLFunctionConstantValues new];
    for (const Constant& c : key.constants) {
        const bool flag = c.value != 0;
        if (c.type == Constant::Type::kBool) {
            [values setConstantValue:&flag type:MTLDataTypeBool atIndex:c.index];
        } else {
            [values setConstantValue:&c.value type:MTLDataTypeUInt atIndex:c.index];
        }
    }
    NSError* error = nil;
    MTLComputePipelineDescriptor* descriptor = [MTLComputePipelineDescriptor new];
    descriptor.label = ns_string(key.function);
    descriptor.computeFunction = [library_of(key.function) newFunctionWithName:ns_string(key.function)
                                                                constantValues:values
                                                                         error:&error];
    if (!descriptor.computeFunction) {
        throw DeviceError("kernel '" + key.function + "': " + error_text(error));
    }
    // The compiler fits the registers to these.
    descriptor.maxTotalThreadsPerThreadgroup = key.threads;
    descriptor.threadGroupSizeIsMultipleOfThreadExecutionWidth = key.threads % kSimdWidth == 0;
    descriptor.supportIndirectCommandBuffers = key.indirect;
    id<MTLComputePipelineState> made = nil;
    if (archive_) {
        descriptor.binaryArchives = @[ archive_ ];
        made = [device_ newComputePipelineStateWithDescriptor:descriptor
                                                      options:MTLPipelineOptionFailOnBinaryArchiveMiss
                                                   reflection:nil
                                                        error:nil];
        if (made) return made;
    }
    made = [device_ newComputePipelineStateWithDescriptor:descriptor
                                                  options:MTLPipelineOptionNone
                                               reflection:nil
                                                    error:&error];
    if (!made) throw DeviceError("kernel '" + key.function + "': " + error_text(error));
    if (archive_ && [archive_ addComputePipelineFunctionsWithDescriptor:descriptor error:nil]) archive_changed_ = true;
    return made;
}

id<MTLComputePipelineState> Library::find(Key key) {
    const auto found = pipelines_.find(key);
    if (found != pipelines_.end()) return found->second;
    id<MTLComputePipelineState> made = pooled([&] { return build(key); });
    return pipelines_.emplace(std::move(key), made).first->second;
}

Library::Key Library::key_of(const Pass& pass, bool indirect) {
    return {pass.function, pass.constants, pass.threads.x * pass.threads.y * pass.threads.z, indirect};
}

id<MTLComputePipelineState> Library::pipeline(const Pass& pass) { return find(key_of(pass, false)); }

id<MTLComputePipelineState> Library::indirect_pipeline(const Pass& pass) { return find(key_of(pass, true)); }

}  // namespace akunu::metal
