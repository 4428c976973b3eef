// Memory faults of kernels: guard pages around buffers, and the signal handler that turns a
// fault inside a kernel into an error of its dispatch.
#pragma once
#include <xmmintrin.h>

namespace mslrt {

/// Installs the handler once, and an alternate signal stack for the calling OS thread.
void install_fault_handler();

/// Sets flush-to-zero and denormals-are-zero for its lifetime.
class FlushDenormals {
  public:
    FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040u); }
    ~FlushDenormals() { _mm_setcsr(saved_); }
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;

  private:
    unsigned saved_;
};
}  // namespace mslrt
