// Streams: several residual streams (AltUp; Baykal et al., 2023), one of which, the active one, is what layers read and
// write: "hidden". The others begin as projections of the embedding, of its size, and end as their mean with the first:
//   S_0 = h; S_i = W_i·h · rms(h) / rms(W_i·h)
//   h = (S_0 + Σ_i U_i·S_i · rms(S_0) / rms(U_i·S_i)) / count
// Between them, plan/mix_streams.cpp.
#pragma once

#include <vector>

#include "plan/emitter.h"
#include "plan/loader.h"

namespace akunu {

class Streams {
  public:
    Streams(const ModelConfig& config, Loader& loader);

    void reserve(const Device& device, Activations& a) const;
    void begin(Emitter& e) const;
    void end(Emitter& e) const;

    // All of them, one behind the other, and one of them.
    static Binding all(const Emitter& e) { return e.activations.f32("streams"); }
    static Binding stream(const Emitter& e, std::uint32_t i) { return part_of(all(e), i * stride(e), stride(e)); }
    // Floats from one to the next.
    static std::uint64_t stride(const Emitter& e) { return e.activations.rows() * e.config.dim; }

  private:
    const ModelConfig& config_;
    std::vector<Weight> in_, out_;  // of all streams but the first
};

}  // namespace akunu
