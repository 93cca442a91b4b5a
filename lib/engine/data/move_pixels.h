// Moves pixels by an affine map, to the nearest pixel, as torchvision.transforms.v2.functional does
// on float images (checked by tests/golden/augment.json). Pixels from outside the image are 0.
#pragma once

#include "data/augment.h"

namespace fleet::data {

// Moves by whole pixels, to the right and down.
void translate(const ImagePlanes& planes, int x, int y);
// Around the image's upper left corner; slopes as of RandAugment's ShearX and ShearY.
void shear(const ImagePlanes& planes, double x_slope, double y_slope);
// Around the image's centre, counter-clockwise.
void rotate(const ImagePlanes& planes, double degrees);

}  // namespace fleet::data
