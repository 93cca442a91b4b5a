// Converts pixels to normalised float planes: resized (antialiased), or copied if the box already
// has the output's size.
#pragma once

#include <string>
#include <vector>

#include "data/augment.h"
#include "data/decode.h"

namespace fleet::data {

// "avx512", "avx2", "baseline": those that this CPU supports, fastest first.
std::vector<std::string> resize_instruction_sets();

// Separable triangle ("bilinear") filter whose support grows with the scale when downscaling: the
// filter of Pillow's BILINEAR and of torchvision's Resize(antialias=True). All arithmetic is float,
// without Pillow's rounding to 8 bits between and after the passes, and gives the same bits on
// every instruction set.
//
// Reusable; use one per thread: it keeps its tables and row buffers.
class Resizer {
 public:
  // Uses the fastest instruction set of this CPU, or one of resize_instruction_sets() by name.
  explicit Resizer(const std::string& instruction_set = {});
  // out: channels x out_height x out_width floats: filtered value (0..255) * scale[c] + bias[c].
  // `pixels` covers region_of(geometry); outputs outside the image are geometry.fill. channels 1:
  // pixels.step 1; channels 3: step 3 or 4.
  void run(const Pixels& pixels, const CropGeometry& geometry, int channels, const float* scale,
           const float* bias, float* out);

  struct Kernels;

 private:
  struct Axis {
    int taps = 0;                // weights stored per output
    std::vector<int> from;       // first pixel of each output
    std::vector<int> count;      // pixels of each output
    std::vector<float> weights;  // taps of each output, 0 from count on
    void prepare(double at, double extent, int outputs, int low, int high, int multiple);
  };
  void horizontal(const Pixels& pixels, int row, int out_width, int channels, float* to);
  void run_padded(const Pixels& pixels, const CropGeometry& geometry, int channels,
                  const float* scale, const float* bias, float* out);

  const Kernels* kernels_;
  Axis x_, y_;
  std::vector<float> lanes_;        // x_'s weights, each repeated for 4 lanes, mirrored if flipped
  std::vector<float> rows_;         // ring of filtered rows
  std::vector<const float*> taps_;  // rows for the current output row
  std::vector<float> widened_;      // one row of pixels
  std::vector<float> inner_;        // the part of a padded output that the image covers
};

// Whether the geometry takes pixels unchanged: same size, on whole pixels, no reduction.
bool is_copy(const CropGeometry& geometry);
// Copies pixels, mirrored if flipped; pixels outside the image are geometry.fill. out as for
// Resizer::run().
void copy_pixels(const Pixels& pixels, const CropGeometry& geometry, int channels,
                 const float* scale, const float* bias, float* out);

// In place: value * scale + bias for the values of one plane.
void scale_plane(float* plane, size_t count, float scale, float bias);

// Planes of value * scale, from 0 to 255 and rounded, as bytes: grey, or red, green, blue and 0.
void planes_to_bytes(const float* planes, const ImageShape& image, float scale, uint8_t* bytes);

}  // namespace fleet::data
