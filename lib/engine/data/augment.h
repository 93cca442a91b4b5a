// Augmentation as a chain built from the job file. A new augmentation is one new file with one
// FLEET_AUGMENTATION.
//
// Each image passes two steps: place() decides which part of the source image becomes the output,
// so that only that part is decoded; colour() changes finished pixels. Random draws are keyed by
// (seed, epoch, sample) and the augmentation's name, so they do not depend on rank, thread, world
// size or the other augmentations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/registry.h"
#include "data/random.h"

namespace fleet::data {

struct ImageShape {
  int channels = 0, height = 0, width = 0;
  size_t count() const { return size_t(channels) * height * width; }
  bool operator==(const ImageShape&) const = default;
  std::string text() const;  // "3x224x224"
};

// The source box of the output, in source pixels (x to the right, y down). The box is resized to
// the output's size; if it already has that size and lies on whole pixels, it is copied, and may
// then reach over the edge: pixels outside are 0 (black). A filter reads pixels from [tap_*] only:
// the box for a crop that is then resized, the whole image for an image that is resized and then
// cropped.
struct CropGeometry {
  int source_height = 0, source_width = 0;
  int out_height = 0, out_width = 0;
  double x = 0, y = 0, width = 0, height = 0;
  int tap_x = 0, tap_y = 0, tap_width = 0, tap_height = 0;
  bool flip = false;      // mirrored left to right
  bool crop_set = false;  // an augmentation chose the box; otherwise sizes must match
  bool scaled = true;     // a JPEG may be decoded at a half, a quarter or an eighth of its size
};

class Augment {
 public:
  virtual ~Augment() = default;
  virtual void set_geometry(CropGeometry&, RandomStream&) const {}
  // Whether place() chooses the box: at most one augmentation of a chain may.
  virtual bool sets_crop() const { return false; }
  virtual bool colours() const { return false; }
  // pixels: planes of the given shape, RGB or grey, each value in [0, 1]; changed in place.
  virtual void colour(float* /*pixels*/, const ImageShape&, RandomStream&) const {}
};

struct AugmentType {
  // Position in the chain, ascending: crops 10, flips 20, colours 30.
  int order = 0;
  // For training (data.augment.*), for evaluation (data.eval.*), or for both.
  bool train = false, evaluation = false;
  Schema (*schema)() = nullptr;
  // Null if the settings (data.augment or data.eval) switch it off. kUsage if they are invalid for
  // this image.
  std::unique_ptr<Augment> (*make)(const Settings& settings, const ImageShape& image) = nullptr;
};

Registry<AugmentType>& augments();
bool register_augmentation(const std::string& name, void (*define)(AugmentType&));

// FLEET_AUGMENTATION(flip) { def.order = 20; ... } in lib/engine/data/augment_flip.cc.
#define FLEET_AUGMENTATION(name)                                       \
  FLEET_REGISTER(augmentation_##name, ::fleet::data::AugmentType& def, \
                 ::fleet::data::register_augmentation, #name)

// All keys of data.augment (train) or data.eval.
Schema augment_schema(bool train);

// Immutable after construction: thread-safe.
class AugmentChain {
 public:
  AugmentChain() = default;
  // The augmentations that the settings switch on, and normalisation: (value/255 - mean) / std.
  // mean and std have one entry or one per channel; else kUsage.
  AugmentChain(const Settings& augment, bool train, const ImageShape& image,
               const std::vector<double>& mean, const std::vector<double>& std);

  // kUsage naming the image (name() is called only then) if it does not fit the output and nothing
  // resizes it.
  CropGeometry set_geometry(int source_height, int source_width, uint64_t key,
                            const std::function<std::string()>& name) const;
  bool colours() const;
  // Applies to planes of values in [0, 1].
  void colour(float* pixels, uint64_t key) const;
  // Applies (value - mean) / std to such planes.
  void normalise(float* pixels) const;

  const ImageShape& image() const { return image_; }
  // Normalised = value * scale + bias, value 0..255; one per channel.
  const std::vector<float>& scale() const { return scale_; }
  const std::vector<float>& bias() const { return bias_; }

 private:
  struct Stage {
    std::string placing, colouring;  // names of the random streams for the two steps
    std::shared_ptr<const Augment> augment;
  };
  ImageShape image_;
  bool scaled_ = true;
  std::vector<Stage> stages_;
  std::vector<float> scale_, bias_;
};

}  // namespace fleet::data
