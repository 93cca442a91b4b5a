#include "backend/cuda/padded_image.h"

#include "backend/cuda/copies.h"
#include "backend/cuda/device.h"

namespace fleet::cuda {

size_t padded_image_bytes(const ConvolutionProblem& problem) {
  if (!problem.is_padded()) return 0;
  constexpr size_t kAlignment = 256;
  const size_t bytes =
      static_cast<size_t>(problem.conv().x.elements()) * size_of(problem.conv().dtype);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

PaddedImage::PaddedImage(const ConvolutionProblem& problem, void* image, void* workspace)
    : own_(problem.own()),
      padded_shape_(problem.conv().x),
      padded_(problem.is_padded()),
      bytes_(padded_image_bytes(problem)),
      image_(image),
      workspace_(workspace) {}

// Between the image and its place in the copy.
std::shared_ptr<Kernel> PaddedImage::copy(bool fills) const {
  const int64_t pixel = own_.in_pixel, width = padded_shape_[3];
  const int64_t top = own_.window.paddings[0], left = own_.window.paddings[1];
  std::vector<CopyAxis> axes = {
      {own_.batch, own_.in[0] * own_.in[1] * pixel, padded_shape_[2] * width * pixel},
      {own_.in[0], own_.in[1] * pixel, width * pixel},
      {own_.in[1], pixel, pixel},
      {pixel, 1, 1}};
  const size_t element = size_of(own_.dtype);
  void* place =
      static_cast<char*>(workspace_) + static_cast<size_t>((top * width + left) * pixel) * element;
  if (!fills) {
    for (CopyAxis& axis : axes) std::swap(axis.from, axis.to);
  }
  const Copy inner(axes, element, fills ? image_ : place, fills ? place : image_);
  return make_kernel([=, whole = workspace_, bytes = bytes_](Stream& stream) {
    if (fills) check(cudaMemsetAsync(whole, 0, bytes, stream_of(stream)), "cudaMemsetAsync");
    inner.run(stream_of(stream));
  });
}

std::shared_ptr<Kernel> PaddedImage::filled(std::shared_ptr<Kernel> product) const {
  if (!padded_ || !product) return product;
  return make_kernel([product, fill = copy(/*fills=*/true)](Stream& stream) {
    fill->run(stream);
    product->run(stream);
  });
}

std::unique_ptr<Kernel> PaddedImage::cropped(std::unique_ptr<Kernel> product) const {
  if (!padded_) return product;
  std::shared_ptr<Kernel> first = std::move(product);
  return make_kernel([first, crop = copy(/*fills=*/false)](Stream& stream) {
    first->run(stream);
    crop->run(stream);
  });
}

}  // namespace fleet::cuda
