// ImageEncoder: a loaded encoder of images. Of an image's patches, which are in one step, it makes rows for a decoder's
// sequence. Nothing of one image outlives its step but these.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "engine/encoded_rows.h"
#include "engine/loaded_model.h"
#include "engine/profile.h"

namespace akunu {

// An image as its processor left it. Patches that become one row stand together.
struct ImagePatches {
    std::span<const float> pixels;  // [patches, values]
    // What is added to each patch's product [patches, dim], where the model has vectors of positions, else nothing. Of
    // one number, which is not 0, they are the same: those of the image before stay on the device then.
    std::span<const float> added;
    std::uint64_t added_id;
    // By which rotary sets turn, one for each patch; or none, where the model has no such sets.
    std::span<const std::array<u32, kPositionAxes>> positions;
    // Where some blocks see windows alone: how many patches each has, which stand together.
    std::span<const u32> windows;
};

class ImageEncoder : public LoadedModel {
  public:
    ImageEncoder(std::shared_ptr<Device> device, const ModelConfig& config, std::shared_ptr<WeightSource> source,
                 const Progress& progress);

    // The rows of an image; null when it was cancelled. No two calls may overlap.
    std::shared_ptr<const EncodedRows> encode(const ImagePatches& image, const Poll& poll);

    // The commands of an image of so many patches; and run on one, as `profile` of profile.h says.
    std::vector<CommandInfo> commands(std::uint32_t patches);
    std::vector<CommandInfo> profile(std::uint32_t patches, std::size_t repeats, const Poll& poll);

    // Floats of a row.
    std::uint32_t width() const { return config_.image->dim * config_.image->parts; }

  private:
    // Makes room for so many patches, and pages of windows. It grows by doubling, as pictures may be small.
    void make_room(std::uint32_t patches, std::uint32_t window_pages = 0);
    bool has_windows() const;
    void place_windows(std::span<const u32> windows);
    void check(const ImagePatches& image) const;
    void place(const ImagePatches& image, std::uint32_t patches);
    Segment segment(std::uint32_t patches) const;

    std::unique_ptr<Program> body_;
    std::size_t fixed_ = 0;  // of owned_, what stays when room is made
    std::uint64_t fixed_scratch_ = 0;
    std::uint64_t added_id_ = 0;  // of what is there
    Binding window_rows_, window_tables_;
    std::uint32_t pages_ = 0;
};

}  // namespace akunu
