// Libraries from source, functions with constants, pipelines.
#include <cctype>
#include <cstring>
#include <fstream>
#include <sstream>

#import "fake.h"

using namespace fakemetal;
using mslrt::ConstantDesc;
using mslrt::ConstantValue;
using mslrt::KernelDesc;

NSErrorDomain const MTLLibraryErrorDomain = @"MTLLibraryErrorDomain";

namespace {
constexpr char kFileMagic[] = "akunu-metal-emulator-library", kTextMark[] = "---- text";

struct TypeRow {
    MTLDataType type;
    const char* name;
    uint32_t size;
};
constexpr TypeRow kTypes[] = {
    {MTLDataTypeBool, "bool", 1},     {MTLDataTypeChar, "char", 1},     {MTLDataTypeUChar, "uchar", 1},
    {MTLDataTypeShort, "short", 2},   {MTLDataTypeUShort, "ushort", 2}, {MTLDataTypeInt, "int", 4},
    {MTLDataTypeUInt, "uint", 4},     {MTLDataTypeLong, "long", 8},     {MTLDataTypeULong, "ulong", 8},
    {MTLDataTypeHalf, "half", 2},     {MTLDataTypeFloat, "float", 4},   {MTLDataTypeInt2, "int2", 8},
    {MTLDataTypeInt4, "int4", 16},    {MTLDataTypeUInt2, "uint2", 8},   {MTLDataTypeUInt3, "uint3", 16},
    {MTLDataTypeUInt4, "uint4", 16},  {MTLDataTypeFloat2, "float2", 8}, {MTLDataTypeFloat4, "float4", 16},
    {MTLDataTypeHalf2, "half2", 4},   {MTLDataTypeHalf4, "half4", 8},   {MTLDataTypeChar, "int8_t", 1},
    {MTLDataTypeUChar, "uint8_t", 1}, {MTLDataTypeShort, "int16_t", 2}, {MTLDataTypeUShort, "uint16_t", 2},
    {MTLDataTypeInt, "int32_t", 4},   {MTLDataTypeUInt, "uint32_t", 4},
};
uint32_t size_of(MTLDataType t) {
    for (const TypeRow& r : kTypes)
        if (r.type == t) return r.size;
    invalid("setConstantValue: unknown data type " + std::to_string(t));
}
MTLDataType type_of(const char* name) {
    for (const TypeRow& r : kTypes)
        if (!strcmp(r.name, name)) return r.type;
    return MTLDataTypeNone;
}
struct GivenValue {
    MTLDataType type;
    NSUInteger index;
    std::string name;  // empty: by index
    std::string data;
};
bool needs_constant(const KernelDesc* k, uint32_t index) {
    return strstr(k->required, (" " + std::to_string(index) + " ").c_str());
}
}  // namespace

// ---- options ---------------------------------------------------------------------------------

@implementation MTLCompileOptions
@synthesize mathMode = _mathMode;
- (instancetype)init {
    _mathMode = MTLMathModeFast;  // Metal's default
    _languageVersion = MTLLanguageVersion3_1;
    return self;
}
- (BOOL)fastMathEnabled {
    return _mathMode == MTLMathModeFast;
}
- (void)setFastMathEnabled:(BOOL)b {
    _mathMode = b ? MTLMathModeFast : MTLMathModeSafe;
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    MTLCompileOptions* o = [MTLCompileOptions new];
    o.preprocessorMacros = self.preprocessorMacros;
    o.mathMode = self.mathMode;
    o.mathFloatingPointFunctions = self.mathFloatingPointFunctions;
    o.languageVersion = self.languageVersion;
    o.preserveInvariance = self.preserveInvariance;
    o.optimizationLevel = self.optimizationLevel;
    return o;
}
@end

@implementation MTLFunctionConstantValues {
  @public
    std::vector<GivenValue> values;
}
- (void)setConstantValue:(const void*)v type:(MTLDataType)t atIndex:(NSUInteger)i {
    if (!v) invalid("setConstantValue: no value");
    values.push_back({t, i, "", std::string(static_cast<const char*>(v), size_of(t))});
}
- (void)setConstantValues:(const void*)v type:(MTLDataType)t withRange:(NSRange)r {
    for (NSUInteger i = 0; i < r.length; ++i)
        [self setConstantValue:static_cast<const char*>(v) + i * size_of(t) type:t atIndex:r.location + i];
}
- (void)setConstantValue:(const void*)v type:(MTLDataType)t withName:(NSString*)n {
    values.push_back({t, 0, n.UTF8String, std::string(static_cast<const char*>(v), size_of(t))});
}
- (void)reset {
    values.clear();
}
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    MTLFunctionConstantValues* c = [MTLFunctionConstantValues new];
    c->values = values;
    return c;
}
@end

@implementation MTLFunctionConstant {
  @public
    const ConstantDesc* desc;
    bool needed;
}
- (NSString*)name {
    return @(desc->name);
}
- (MTLDataType)type {
    return type_of(desc->type);
}
- (NSUInteger)index {
    return desc->index;
}
- (BOOL)required {
    return needed;
}
@end

// ---- functions -------------------------------------------------------------------------------

@implementation FMFunction
- (MTLFunctionType)functionType {
    return MTLFunctionTypeKernel;
}
- (NSString*)name {
    return @(kernel->name);
}
- (NSDictionary<NSString*, MTLFunctionConstant*>*)functionConstantsDictionary {
    std::vector<id> keys, values;
    for (const ConstantDesc* c = library->constants; c->name; ++c) {
        MTLFunctionConstant* f = [MTLFunctionConstant new];
        f->desc = c;
        f->needed = needs_constant(kernel, c->index);
        keys.push_back(f.name);
        values.push_back(f);
    }
    return [NSDictionary dictionaryWithObjects:(id __unsafe_unretained*)(void*)values.data()
                                       forKeys:(id __unsafe_unretained*)(void*)keys.data()
                                         count:keys.size()];
}
@end

@interface FMLibrary : NSObject <MTLLibrary> {
  @public
    std::vector<const mslrt::LibraryDesc*> texts;
}
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@end
@implementation FMLibrary
- (NSArray<NSString*>*)functionNames {
    std::vector<id> names;
    for (const mslrt::LibraryDesc* text : texts)
        for (const KernelDesc* k = text->kernels; k->name; ++k) names.push_back(@(k->name));
    return [NSArray arrayWithObjects:(id __unsafe_unretained*)(void*)names.data() count:names.size()];
}
- (FMFunction*)find:(NSString*)n {
    for (const mslrt::LibraryDesc* text : texts)
        for (const KernelDesc* k = text->kernels; k->name; ++k)
            if (!strcmp(k->name, n.UTF8String)) {
                FMFunction* f = [FMFunction new];
                f->library = text;
                f->kernel = k;
                return f;
            }
    return nil;
}
/// Empty, or the first constant the kernel cannot do without.
static std::string missing_constant(FMFunction* f) {
    for (const ConstantDesc* c = f->library->constants; c->name; ++c) {
        bool given = false;
        for (const ConstantValue& v : f->constants) given |= v.index == c->index;
        if (!given && needs_constant(f->kernel, c->index))
            return std::string("function '") + f->kernel->name + "' requires function constant '" + c->name +
                   "' (index " + std::to_string(c->index) + ")";
    }
    return "";
}
- (id<MTLFunction>)newFunctionWithName:(NSString*)n {
    FMFunction* f = [self find:n];
    if (f) f->problem = missing_constant(f);
    return f;
}
- (id<MTLFunction>)newFunctionWithName:(NSString*)n
                        constantValues:(MTLFunctionConstantValues*)given
                                 error:(NSError* __autoreleasing*)e {
    FMFunction* f = [self find:n];
    const auto fail = [&](NSInteger code, const std::string& text) {
        if (e) *e = make_error(MTLLibraryErrorDomain, code, text);
        return nil;
    };
    if (!f)
        return fail(MTLLibraryErrorFunctionNotFound,
                    std::string("function '") + n.UTF8String + "' not found in the library");
    for (const GivenValue& v : given->values)
        for (const ConstantDesc* c = f->library->constants; c->name; ++c) {
            if (v.name.empty() ? v.index != c->index : v.name != c->name) continue;
            if (type_of(c->type) != v.type)
                return fail(MTLLibraryErrorCompileFailure, std::string("function constant '") + c->name + "' is " +
                                                               c->type + ", the value given has another type");
            ConstantValue value{c->index, static_cast<uint32_t>(v.data.size()), {}};
            memcpy(value.data, v.data.data(), v.data.size());
            f->constants.push_back(value);
        }
    const std::string missing = missing_constant(f);
    if (!missing.empty()) return fail(MTLLibraryErrorCompileFailure, missing);
    return f;
}
@end

static const mslrt::LibraryDesc* compiled(const std::string& source, MTLCompileOptions* options, std::string& error) {
    if (!options) options = [MTLCompileOptions new];
    std::ostringstream args;
    if (options.mathMode == MTLMathModeFast) args << "--fast-math ";
    args << "--metal-version " << (options.languageVersion >> 16) * 100 + (options.languageVersion & 0xFFFF) * 10
         << " ";
    for (NSString* key in options.preprocessorMacros)
        args << "-D "
             << shell_quote(std::string(key.UTF8String) + "=" +
                            [options.preprocessorMacros[key] description].UTF8String)
             << " ";
    const std::string path = compile({source, args.str()}, error);
    return path.empty() ? nullptr : load(path, error);
}

id<MTLLibrary> FMNewLibrary(NSString* source, MTLCompileOptions* options, NSError* __autoreleasing* e) {
    std::string error;
    const mslrt::LibraryDesc* text = compiled(source.UTF8String, options, error);
    if (!text) {
        if (e) *e = make_error(MTLLibraryErrorDomain, MTLLibraryErrorCompileFailure, error);
        return nil;
    }
    add(kLibraries);
    FMLibrary* l = [FMLibrary new];
    l->texts.push_back(text);
    return l;
}

id<MTLLibrary> FMReadLibrary(const std::string& path, NSError* __autoreleasing* e) {
    const auto fail = [&](NSInteger code, const std::string& text) {
        if (e) *e = make_error(MTLLibraryErrorDomain, code, path + ": " + text);
        return nil;
    };
    std::ifstream in(path);
    if (!in) return fail(MTLLibraryErrorFileNotFound, "cannot be read");
    std::string line, error;
    if (!std::getline(in, line) || line != kFileMagic) return fail(MTLLibraryErrorUnsupported, "is no library");
    std::vector<std::string> texts;
    while (std::getline(in, line)) {
        if (line == kTextMark) {
            texts.emplace_back();
        } else if (!texts.empty()) {
            texts.back() += line + "\n";
        }
    }
    FMLibrary* l = [FMLibrary new];
    MTLCompileOptions* options = [MTLCompileOptions new];
    options.languageVersion = MTLLanguageVersion3_0;  // as cmake/Metal.cmake has it
    for (const std::string& source : texts) {
        l->texts.push_back(compiled(source, options, error));
        if (!l->texts.back()) return fail(MTLLibraryErrorCompileFailure, error);
    }
    add(kLibraries);
    return l;
}

// ---- pipelines -------------------------------------------------------------------------------

@implementation FMPipeline
- (NSString*)label {
    return name;
}
- (NSUInteger)maxTotalThreadsPerThreadgroup {
    return max_threads;
}
- (NSUInteger)threadExecutionWidth {
    return mslrt::kLanes;
}
- (NSUInteger)staticThreadgroupMemoryLength {
    return 0;
}  // known only when the kernel runs
- (BOOL)supportIndirectCommandBuffers {
    return indirect;
}
@end

FMPipeline* FMNewPipeline(FMFunction* f, NSUInteger max_threads, bool indirect, NSError* __autoreleasing* e) {
    if (!f) invalid("newComputePipelineState: no function");
    if (!f->problem.empty()) {
        if (e) *e = make_error(MTLLibraryErrorDomain, MTLLibraryErrorCompileFailure, f->problem);
        return nil;
    }
    FMPipeline* p = [FMPipeline new];
    p->library = f->library;
    p->kernel = f->kernel;
    p->constants = f->constants;
    p->name = @(f->kernel->name);
    p->indirect = indirect;
    p->max_threads = f->kernel->max_threads ? f->kernel->max_threads : 1024;
    if (max_threads && max_threads < p->max_threads) p->max_threads = max_threads;
    executor().specialize(p->library, p->constants.data(), static_cast<uint32_t>(p->constants.size()));
    for (uint32_t i = 0; i < p->kernel->n_params; ++i) {
        const auto enabled = p->kernel->params[i].binding.enabled;
        p->bound.push_back(!enabled || enabled());
    }
    add(kPipelines);
    return p;
}

@implementation MTLComputePipelineDescriptor
- (id)copyWithZone:(NSZone*)z {
    (void)z;
    MTLComputePipelineDescriptor* d = [MTLComputePipelineDescriptor new];
    d.label = self.label;
    d.computeFunction = self.computeFunction;
    d.threadGroupSizeIsMultipleOfThreadExecutionWidth = self.threadGroupSizeIsMultipleOfThreadExecutionWidth;
    d.maxTotalThreadsPerThreadgroup = self.maxTotalThreadsPerThreadgroup;
    d.supportIndirectCommandBuffers = self.supportIndirectCommandBuffers;
    d.binaryArchives = self.binaryArchives;
    return d;
}
@end
