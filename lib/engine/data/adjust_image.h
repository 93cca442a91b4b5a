// Changes of colours and moves of pixels, each as torchvision's function of the same name computes
// it on float images (torchvision.transforms.v2.functional, checked by tests/golden/augment.json).
#pragma once

#include "data/augment.h"

namespace fleet::data {

// The values between an operation's own steps, such as the grey of a pixel.
enum class Steps {
  kExact,
  kBytes,  // rounded to 8 bits, as by Pillow; the result is then within 1/255 of its result
};
// A value from 0 to 1 to the nearest of 8 bits.
inline float as_byte(float value) {
  constexpr float kMagic = 12582912;  // 1.5 * 2^23: a sum with it has no bits behind the point
  return ((value * 255 + kMagic) - kMagic) * (1.0f / 255);
}

// factor 1 changes nothing; values are clamped to [0, 1].
void adjust_brightness(const ImagePlanes& planes, float factor);
void adjust_contrast(const ImagePlanes& planes, float factor, Steps steps = Steps::kExact);
// Grey images stay as they are.
void adjust_saturation(const ImagePlanes& planes, float factor, Steps steps = Steps::kExact);
// Rotates the hue by `turn` of the colour circle, keeping HSV's saturation and value. RGB only.
void adjust_hue(const ImagePlanes& planes, float turn);
// factor 0 blurs, 2 sharpens. The outermost pixels stay as they are.
void adjust_sharpness(const ImagePlanes& planes, float factor, Steps steps = Steps::kExact);
// Keeps this number of bits, 0 to 8.
void posterize(const ImagePlanes& planes, int bits);
// Inverts values of at least the threshold.
void solarize(const ImagePlanes& planes, float threshold);
// Stretches each channel to [0, 1].
void autocontrast(const ImagePlanes& planes);
// Equalizes the histogram of each channel, of 256 values.
void equalize(const ImagePlanes& planes);

void invert(const ImagePlanes& planes);
// Adds `more` to values below one half, at most up to 1, as timm does.
void solarize_add(const ImagePlanes& planes, float more);
// Replaces colours by their grey; the image keeps its channels.
void make_grey(const ImagePlanes& planes);
// kernel_size: odd, at most twice the shorter side. Beyond the edges the image is reflected.
void gaussian_blur(const ImagePlanes& planes, int kernel_size, double sigma);
// Pillow's GaussianBlur: three boxes along each axis, each rounded to 8 bits. Beyond the edges
// pixels are repeated.
void blur_like_pillow(const ImagePlanes& planes, double radius);

// How pixels are moved by an affine map.
struct Sampling {
  enum class Filter { kNearest, kBilinear, kBicubic };
  enum class Outside {
    kBlack,  // pixels outside the image are 0, as in torchvision
    kMean,   // as in timm on Pillow: places outside get round(255 * data.mean) / 255, and a filter
             // takes the nearest pixel of the image for one outside
  };
  Filter filter = Filter::kNearest;
  Outside outside = Outside::kBlack;
};

// To the right and down, in pixels.
void translate(const ImagePlanes& planes, double x, double y, const Sampling& sampling = {});
// Around the image's upper left corner; slopes as of RandAugment's ShearX and ShearY.
void shear(const ImagePlanes& planes, double x_slope, double y_slope,
           const Sampling& sampling = {});
// Around the image's centre, counter-clockwise.
void rotate(const ImagePlanes& planes, double degrees, const Sampling& sampling = {});

// torchvision's affine(): around the image's centre, angles in degrees, clockwise.
struct Affine {
  double degrees = 0, right = 0, down = 0, scale = 1, shear_x = 0, shear_y = 0;
};
void move(const ImagePlanes& planes, const Affine& by, const Sampling& sampling = {});

}  // namespace fleet::data
