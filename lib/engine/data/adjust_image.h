// Changes of colours and moves of pixels, each as torchvision's function of the same name computes
// it on float images (torchvision.transforms.v2.functional, checked by tests/golden/augment.json).
#pragma once

#include "data/augment.h"

namespace fleet::data {

// factor 1 changes nothing; values are clamped to [0, 1].
void adjust_brightness(const ImagePlanes& planes, float factor);
void adjust_contrast(const ImagePlanes& planes, float factor);
void adjust_saturation(const ImagePlanes& planes, float factor);  // grey images stay as they are
// Rotates the hue by `turn` of the colour circle, keeping HSV's saturation and value. RGB only.
void adjust_hue(const ImagePlanes& planes, float turn);
// factor 0 blurs, 2 sharpens. The outermost pixels stay as they are.
void adjust_sharpness(const ImagePlanes& planes, float factor);
// Keeps this number of bits, 0 to 8.
void posterize(const ImagePlanes& planes, int bits);
// Inverts values of at least the threshold.
void solarize(const ImagePlanes& planes, float threshold);
// Stretches each channel to [0, 1].
void autocontrast(const ImagePlanes& planes);
// Equalizes the histogram of each channel, of 256 values.
void equalize(const ImagePlanes& planes);

// The following move pixels by an affine map, to the nearest pixel; pixels from outside the image
// are 0.

// By whole pixels, to the right and down.
void translate(const ImagePlanes& planes, int x, int y);
// Around the image's upper left corner; slopes as of RandAugment's ShearX and ShearY.
void shear(const ImagePlanes& planes, double x_slope, double y_slope);
// Around the image's centre, counter-clockwise.
void rotate(const ImagePlanes& planes, double degrees);

}  // namespace fleet::data
