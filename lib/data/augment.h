// Augmentation as a chain built from the job file. A new one is one new file with one
// FLEET_REGISTER_AUGMENT.
//
// Two steps for each image: place() decides which part of the source image becomes the output, so
// that only that part is decoded; colour() changes finished pixels. Draws are keyed by (seed,
// epoch, sample) and the augmentation's name, so they do not depend on rank, thread, world size or
// the other augmentations.
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

// Where the output's pixels come from, in source pixels (x to the right, y down). The box is
// resized to the output's size; where it already has that size and lies on whole pixels it is
// copied, and may then reach over the edge: there pixels are 0 (black). A filter takes pixels from
// [tap_*] only: the box for a crop that is then resized, the whole image for an image that is
// resized and then cropped.
struct Placement {
  int source_height = 0, source_width = 0;
  int out_height = 0, out_width = 0;
  double x = 0, y = 0, width = 0, height = 0;
  int tap_x = 0, tap_y = 0, tap_width = 0, tap_height = 0;
  bool flip = false;    // mirrored left to right
  bool placed = false;  // an augmentation chose the box; otherwise sizes must match
  bool scaled = true;   // a JPEG may be decoded at a half, a quarter or an eighth of its size
};

class Augment {
 public:
  virtual ~Augment() = default;
  virtual void place(Placement&, Draws&) const {}
  // Whether place() chooses the box: at most one augmentation of a chain does.
  virtual bool places() const { return false; }
  virtual bool colours() const { return false; }
  // pixels: planes of shape, RGB or grey, each value in [0, 1], in place.
  virtual void colour(float* /*pixels*/, const ImageShape&, Draws&) const {}
};

struct AugmentType {
  // Smaller comes first: crops 10, flips 20, colours 30.
  int order;
  // In training (data.augment.*), in evaluation (data.eval.*), or in both.
  bool train, evaluation;
  Schema (*schema)();
  // Null where the settings (data.augment or data.eval) leave it off. kUsage where they are wrong
  // for this image.
  std::unique_ptr<Augment> (*make)(const Settings& settings, const ImageShape& image);
};

Registry<AugmentType>& augments();

#define FLEET_REGISTER_AUGMENT(name, ...)                                         \
  namespace {                                                                     \
  [[maybe_unused]] const bool fleet_augment_registered = [] {                     \
    ::fleet::data::augments().add(name, ::fleet::data::AugmentType{__VA_ARGS__}); \
    return true;                                                                  \
  }();                                                                            \
  }

// All keys of data.augment (train) or data.eval.
Schema augment_schema(bool train);

// Immutable once made: thread-safe.
class AugmentChain {
 public:
  AugmentChain() = default;
  // What the settings switch on, and normalisation: (value/255 - mean) / std. mean and std have one
  // entry or one a channel; kUsage otherwise.
  AugmentChain(const Settings& augment, bool train, const ImageShape& image,
               const std::vector<double>& mean, const std::vector<double>& std);

  // kUsage naming the image (name() is called only then) where it does not fit the output and
  // nothing resizes it.
  Placement place(int source_height, int source_width, uint64_t key,
                  const std::function<std::string()>& name) const;
  bool colours() const;
  // On planes of values in [0, 1].
  void colour(float* pixels, uint64_t key) const;
  // (value - mean) / std on such planes.
  void normalise(float* pixels) const;

  const ImageShape& image() const { return image_; }
  // Normalised = value * scale + bias, value 0..255; one a channel.
  const std::vector<float>& scale() const { return scale_; }
  const std::vector<float>& bias() const { return bias_; }

 private:
  struct Link {
    std::string placing, colouring;  // the streams its two steps draw from
    std::shared_ptr<const Augment> augment;
  };
  ImageShape image_;
  bool scaled_ = true;
  std::vector<Link> links_;
  std::vector<float> scale_, bias_;
};

}  // namespace fleet::data
