// emulator_cases NAME: runs one case.  Here: the sample device end to end.
#include "cases.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "metal/control.h"
#include "sample_device.h"

namespace sample {
std::string kernel_source(const std::string& name) {
    std::ifstream in(std::string(EMULATOR_ROOT) + "/sample/kernels/" + name + ".metal");
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

namespace {
template <class T>
std::vector<unsigned char> bytes_of(const T& v) {
    const auto* p = reinterpret_cast<const unsigned char*>(&v);
    return {p, p + sizeof v};
}
struct RmsParams {
    unsigned dim;
    float eps;
};

/// argmax over 1000 values and an RMS norm, many command buffers in flight.
void end_to_end() {
    {
        Device d(kernel_source("rmsnorm") + kernel_source("argmax"));
        printf("device=%s cores=%d\n", d.name().c_str(), d.core_count());
        constexpr unsigned kN = 1000, kDim = 256, kRows = 4;
        Buffer x = d.allocate(kN * 4), out = d.allocate(4), a = d.allocate(kRows * kDim * 2), w = d.allocate(kDim * 2),
               r = d.allocate(kRows * kDim * 2);
        for (unsigned i = 0; i < kN; ++i) static_cast<float*>(x.data)[i] = std::sin(static_cast<float>(i) * 0.7f);
        static_cast<float*>(x.data)[617] = 5;
        for (unsigned i = 0; i < kRows * kDim; ++i)
            static_cast<_Float16*>(a.data)[i] = static_cast<_Float16>(static_cast<int>(i % 7) - 3);
        for (unsigned i = 0; i < kDim; ++i) static_cast<_Float16*>(w.data)[i] = 2;
        uint64_t last = 0;
        constexpr int kBuffers = 100;
        for (int i = 0; i < kBuffers; ++i) {
            d.begin();
            d.encode({"argmax_f32", {}, {{&x, 0}, {&out, 0}}, bytes_of(kN), 0, {1, 1, 1}, {1024, 1, 1}});
            d.encode({"rmsnorm_f16",
                      {{0, 1}},
                      {{&a, 0}, {&w, 0}, {&r, 0}},
                      bytes_of(RmsParams{kDim, 1e-5f}),
                      0,
                      {kRows, 1, 1},
                      {64, 1, 1}});
            last = d.commit();
        }
        d.wait(last);
        double sum = 0;
        for (unsigned i = 0; i < kDim; ++i) sum += std::pow(static_cast<double>(static_cast<_Float16*>(a.data)[i]), 2);
        const double expected = -3 / std::sqrt(sum / kDim + 1e-5) * 2,
                     got = static_cast<double>(static_cast<_Float16*>(r.data)[0]);
        printf("argmax=%u rms_error=%.5f\n", *static_cast<unsigned*>(out.data), std::fabs(got - expected));
        try {
            d.begin();
            d.encode({"nope", {}, {}, {}, 0, {1, 1, 1}, {1, 1, 1}});
        } catch (const std::exception& e) {
            printf("caught: %s\n", e.what());
            d.commit();
        }
        for (Buffer* b : {&x, &out, &a, &w, &r}) {
            metal_emulator_drain();
            d.release(*b);
        }
        metal_emulator_drain();
        printf("completed=%d\n", d.completed());
    }
    printf("live=%ld\n", static_cast<long>(metal_emulator_get("live_objects")));
    metal_emulator_print_live();
}

void compile_error() {
    try {
        Device d("#include <metal_stdlib>\nusing namespace metal;\nkernel void f(device float* a [[buffer(0)]]) {\n  "
                 "a[0] = undefined_thing;\n}\n");
    } catch (const std::exception& e) {
        printf("%s\n", e.what());
    }
    printf("live=%ld\n", static_cast<long>(metal_emulator_get("live_objects")));
}

/// Reads the result without waiting: it must still be the old value.
void missing_wait() {
    metal_emulator_set("delay_us", 20000);
    Device d(kernel_source("argmax"));
    constexpr unsigned kN = 64;
    Buffer x = d.allocate(kN * 4), out = d.allocate(4);
    memset(x.data, 0, kN * 4);
    static_cast<float*>(x.data)[5] = 1;
    *static_cast<unsigned*>(out.data) = 1234;
    d.begin();
    d.encode({"argmax_f32", {}, {{&x, 0}, {&out, 0}}, bytes_of(kN), 0, {1, 1, 1}, {32, 1, 1}});
    const uint64_t v = d.commit();
    printf("before=%u\n", *static_cast<volatile unsigned*>(out.data));
    d.wait(v);
    printf("after=%u\n", *static_cast<volatile unsigned*>(out.data));
    metal_emulator_drain();
    d.release(x);
    d.release(out);
}

/// One producer and one consumer in a concurrent encoder, with or without a barrier.
void concurrent(bool with_barrier) {
    Device d("#include <metal_stdlib>\nusing namespace metal;\n"
             "kernel void put(device float* o [[buffer(0)]], uint i [[thread_position_in_grid]]) { o[i] = float(i); }\n"
             "kernel void sum(device const float* a [[buffer(0)]], device float* o [[buffer(1)]], uint i "
             "[[thread_position_in_grid]]) {\n"
             "  float s = 0; for (uint k = 0; k < 64; ++k) s += a[k]; o[i] = s; }\n",
             true);
    Buffer a = d.allocate(64 * 4), o = d.allocate(64 * 4);
    d.begin();
    d.encode({"put", {}, {{&a, 0}}, {}, 0, {2, 1, 1}, {32, 1, 1}});
    if (with_barrier) d.barrier();
    d.encode({"sum", {}, {{&a, 0}, {&o, 0}}, {}, 0, {2, 1, 1}, {32, 1, 1}});
    d.wait(d.commit());
    printf("sum=%g\n", static_cast<double>(static_cast<float*>(o.data)[63]));
    metal_emulator_drain();
    d.release(a);
    d.release(o);
}

void failing(const char* setting, int64_t value) {
    Device d(kernel_source("argmax"));
    metal_emulator_set(setting, value);
    try {
        Buffer x = d.allocate(256), out = d.allocate(4);
        memset(x.data, 0, 256);
        d.begin();
        d.encode({"argmax_f32", {}, {{&x, 0}, {&out, 0}}, bytes_of(64u), 0, {1, 1, 1}, {32, 1, 1}});
        d.commit();
        metal_emulator_drain();
        printf("error=%s\n", d.last_error().c_str());
        d.release(x);
        d.release(out);
    } catch (const std::bad_alloc&) {
        printf("bad_alloc\n");
    }
}

/// A kernel that reads behind its buffer: the process lives, the command buffer fails.
void out_of_bounds() {
    Device d(kernel_source("argmax"));
    Buffer x = d.allocate(4096), out = d.allocate(4);
    memset(x.data, 0, 4096);
    d.begin();
    d.encode({"argmax_f32", {}, {{&x, 0}, {&out, 0}}, bytes_of(100000u), 0, {1, 1, 1}, {32, 1, 1}});
    d.commit();
    metal_emulator_drain();
    printf("error=%s\n", d.last_error().c_str());
    d.release(x);
    d.release(out);
}

/// Host cost of encoding one command in the no-op mode, ns.
void encode_cost() {
    Device d(kernel_source("rmsnorm"));
    Buffer a = d.allocate(4096);
    const Call call{"rmsnorm_f16", {{0, 1}},  {{&a, 0}, {&a, 0}, {&a, 0}}, bytes_of(RmsParams{16, 1e-5f}), 0,
                    {1, 1, 1},     {32, 1, 1}};
    metal_emulator_set("noop", 1);
    constexpr int kTokens = 50, kCommands = 300;
    double best = 1e9;
    for (int t = 0; t < kTokens; ++t) {
        const auto begin = std::chrono::steady_clock::now();
        d.begin();
        for (int i = 0; i < kCommands; ++i) d.encode(call);
        const double ns =
            std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kCommands;
        best = std::min(best, ns);
        d.wait(d.commit());
    }
    printf("ns_per_command=%.0f dispatches=%ld\n", best, static_cast<long>(metal_emulator_get("dispatches")));
    metal_emulator_drain();
    d.release(a);
}
}  // namespace
}  // namespace sample

int main(int n, char** args) {
    using namespace sample;
    Cases cases;
    cases["end_to_end"] = end_to_end;
    cases["compile_error"] = compile_error;
    cases["missing_wait"] = missing_wait;
    cases["concurrent_with_barrier"] = [] { concurrent(true); };
    cases["concurrent_without_barrier"] = [] { concurrent(false); };
    cases["fail_command_buffer"] = [] { failing("fail_command_buffer", 1); };
    cases["fail_allocation"] = [] { failing("fail_allocation", 2); };
    cases["allocation_limit"] = [] { failing("allocation_limit", 200); };
    cases["out_of_bounds"] = out_of_bounds;
    cases["encode_cost"] = encode_cost;
    add_usage_cases(cases);
    const auto found = cases.find(n > 1 ? args[1] : "");
    if (found == cases.end()) {
        for (const auto& [name, run] : cases) printf("%s\n", name.c_str());
        return n > 1 ? 2 : 0;
    }
    found->second();
    return 0;
}
