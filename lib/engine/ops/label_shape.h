// The shape rule that losses over classes share.
#pragma once

#include "graph/program.h"

namespace fleet {

// The shape of one value per sample: that of x [..., classes] without its last dimension. The label
// is int64 of that shape, optionally with a trailing dimension of 1, as Paddle feeds it.
inline Shape samples_shape(const ShapeContext& context, int x, int label) {
  const Shape& shape = context.shape(x);
  context.require(shape.rank() >= 2, "expects [samples, classes], not " + shape.text());
  const Shape samples(shape.dims().first(shape.rank() - 1));
  const Shape& labels = context.shape(label);
  const bool fits = labels == samples ||
                    (labels.rank() == shape.rank() && labels.elements() == samples.elements() &&
                     labels[labels.rank() - 1] == 1);
  context.require(fits, "labels " + labels.text() + " do not fit " + shape.text());
  context.require(context.dtype(label) == DType::kInt64,
                  std::string("labels are ") + name_of(context.dtype(label)) + ", not int64");
  return samples;
}

}  // namespace fleet
