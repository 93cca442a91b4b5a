// Augmentation as a chain built from the job file. A new augmentation is one new file with one
// FLEET_AUGMENTATION.
//
// Each image passes two steps: set_geometry() decides which part of the source image becomes the
// output, so that only that part is decoded; colour() changes finished pixels. mix() then combines
// the images of a batch. Random draws are keyed by (seed, epoch, sample), those of mix() by (seed,
// epoch, batch), and the augmentation's name, so they do not depend on rank, thread, world size or
// the other augmentations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/registry.h"
#include "data/filter.h"
#include "data/random.h"

namespace fleet::data {

struct ImageShape {
  int channels = 0, height = 0, width = 0;
  size_t count() const { return size_t(channels) * height * width; }
  bool operator==(const ImageShape&) const = default;
  std::string text() const;  // "3x224x224"
};

// The source box of the output, in source pixels (x to the right, y down). The box is resized to
// the output's size; if it already has that size and covers whole pixels, it is copied, and may
// then reach over the edge: pixels outside are `fill`, black by default. So may the box of an image
// that is resized as a whole. A filter reads pixels from [tap_*] only:
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
  // The tap rectangle becomes an image of this size (0: the output's), and the output begins at
  // [resized_x, resized_y) in it; the box is the output's part of the source.
  int resized_width = 0, resized_height = 0;
  int resized_x = 0, resized_y = 0;
  Filter filter = Filter::kFloatBilinear;
  PassOrder passes = PassOrder::kPillow13;
  bool fill_mean = false;  // pixels outside the image have data.mean instead of 0
  uint8_t fill[3] = {};    // their values: set by AugmentChain
};

// The finished pixels of one image: planes of height x width, RGB or grey, each value in [0, 1].
struct ImagePlanes {
  float* pixels;
  ImageShape image;
  // data.mean and data.std, one per channel: (value - mean) / deviation is what the model gets.
  std::span<const double> mean, deviation;
  size_t plane() const { return size_t(image.height) * image.width; }
  float* channel(int c) const { return pixels + c * plane(); }
};

// How all images of a global batch are combined with the previous one of that batch (the first one
// with the last one). The loss counts the image's own label by `own`, the other label by 1 - own.
struct BatchMix {
  float own = 1;
  // Pixels [left, right) x [top, bottom) are taken from the other image; unless `cuts`, all
  // pixels are own * image + (1 - own) * other.
  int left = 0, top = 0, right = 0, bottom = 0;
  bool cuts = false;
};

class Augment {
 public:
  virtual ~Augment() = default;
  virtual void set_geometry(CropGeometry&, RandomStream&) const {}
  // Whether set_geometry() chooses the box: at most one augmentation of a chain may.
  virtual bool sets_crop() const { return false; }
  virtual bool colours() const { return false; }
  virtual void colour(const ImagePlanes&, RandomStream&) const {}
  // Whether the result depends on where a pixel lies: the image must be mirrored before.
  virtual bool depends_on_place() const { return false; }
  // Whether masks of pixels cannot follow what it does to an image.
  virtual bool refuses_masks() const { return mixes(); }
  // Moves a mask, height x width, as colour() moves the pixels, by the same draws.
  virtual void move_mask(uint8_t* /*mask*/, const ImageShape&, RandomStream&) const {}
  virtual bool mixes() const { return false; }
  virtual BatchMix mix(const ImageShape&, RandomStream&) const { return {}; }
};

struct AugmentType {
  // Position in the chain, ascending: crops 10, flips 20, colours 30, erasing 50.
  int order = 0;
  bool evaluation = false;  // not only for training (data.augment.*), but also in data.eval.*
  Schema schema;            // its own keys
  // Null if the settings (data.augment or data.eval) switch it off. kUsage if they are invalid for
  // this image.
  std::function<std::unique_ptr<Augment>(const Settings& settings, const ImageShape& image)> make;
  // Whether these settings make it mix the images of a batch; null: never.
  std::function<bool(const Settings& settings)> mixes;
};

Registry<AugmentType>& augments();

// FLEET_AUGMENTATION(flip) { def.order = 20; ... } in lib/engine/data/augment_flip.cc.
#define FLEET_AUGMENTATION(name)                                       \
  FLEET_REGISTER(augmentation_##name, ::fleet::data::AugmentType& def, \
                 ::fleet::data::augments().define, #name)

// All keys of data.augment (train) or data.eval.
Schema augment_schema(bool train);

// Whether these settings (data.augment) give a training sample two labels.
bool mixes_labels(const Settings& augment);

// kUsage naming an image that does not have data.image's size if nothing resizes it. Such an image
// is not damaged.
struct ImageSizeError : Error {
  using Error::Error;
};

// data.mean and data.std belong to pixel values in [0, 1]: kUsage naming the key and the values
// divided by 255 if one is above 1.
void check_normalization(const std::vector<double>& mean, const std::vector<double>& std);

// Immutable after construction: thread-safe.
class AugmentChain {
 public:
  AugmentChain() = default;
  // The augmentations that the settings switch on, and normalisation: (value/255 - mean) / std.
  // mean and std have one entry or one per channel, and pass check_normalization(); else kUsage.
  AugmentChain(const Settings& augment, bool train, const ImageShape& image,
               const std::vector<double>& mean, const std::vector<double>& std,
               const Interpolation& interpolation = {});

  // ImageSizeError naming the image (name() is called only then) if it does not fit the output and
  // nothing resizes it.
  CropGeometry set_geometry(int source_height, int source_width, uint64_t key,
                            const std::function<std::string()>& name) const;
  // Whether set_geometry() takes images of this size.
  bool fits(int source_height, int source_width) const;
  // Whether it takes images of any size.
  bool resizes() const { return fits(1, 1); }
  bool colours() const;
  // Whether an image must be mirrored before colour() and mixing.
  bool depends_on_place() const;
  // Applies to planes of values in [0, 1].
  void colour(float* pixels, uint64_t key) const;
  // Applies to the mask of such an image, which has its geometry already.
  void move_mask(uint8_t* mask, uint64_t key) const;
  // kUsage, naming an augmentation that masks of pixels cannot follow. train: of data.augment.
  void check_masks(bool train) const;
  bool mixes() const;
  // Of several augmentations that mix, each batch draws one. Only if mixes().
  BatchMix mix(uint64_t key) const;
  // Applies (value - mean) / std to such planes.
  void normalise(float* pixels) const;

  const ImageShape& image() const { return image_; }
  // Normalised = value * scale + bias, value 0..255; one per channel.
  const std::vector<float>& scale() const { return scale_; }
  const std::vector<float>& bias() const { return bias_; }

 private:
  CropGeometry geometry(int source_height, int source_width, uint64_t key) const;
  Filter filter_of(uint64_t key) const;
  struct Stage {
    std::string placing, colouring, mixing;  // names of the random streams for the steps
    std::shared_ptr<const Augment> augment;
  };
  ImageShape image_;
  bool scaled_ = true;
  Interpolation interpolation_;
  std::vector<Stage> stages_;
  std::vector<double> mean_, deviation_;  // one per channel
  std::vector<float> scale_, bias_;
};

// data.augment.KEY as [minimum, maximum], above 0 and at most `most`. Throws kUsage for others.
std::vector<double> range_of(const Settings& settings, const std::string& key, double most);

}  // namespace fleet::data
