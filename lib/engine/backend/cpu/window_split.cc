#include <span>

#include "backend/cpu/elementwise.h"
#include "ops/image_windows.h"

namespace fleet {
namespace {

// Parts [windows of the batch, heads, tokens, size] and the image that they are parts of; sizes in
// bytes.
struct SplitImage {
  ImageWindows windows;
  int64_t batch, heads, size, parts;
  char* image;
  char* part[3];

  SplitImage(const Attributes& attributes, const Argument& whole, std::span<const Argument> pieces)
      : windows(image_windows(attributes)), batch(whole.shape[0]), parts(0), part{} {
    heads = attributes.integer("heads");
    image = whole.as<char>();
    for (const Argument& piece : pieces) {
      if (piece) part[parts++] = piece.as<char>();
    }
    size = whole.shape[3] / (parts * heads) * static_cast<int64_t>(size_of(whole.dtype));
  }

  template <bool split>
  void move(int64_t window) const {
    const int64_t tokens = windows.tokens(), row = parts * heads * size;
    char* const from = image + window / windows.count() * windows.count() * tokens * row;
    for (int64_t token = 0; token < tokens; ++token) {
      char* at = from + windows.place(window % windows.count(), token) * row;
      for (int64_t p = 0; p < parts; ++p) {
        char* head = part[p] + (window * heads * tokens + token) * size;
        for (int64_t h = 0; h < heads; ++h, at += size, head += tokens * size) {
          std::memcpy(split ? head : at, split ? at : head, static_cast<size_t>(size));
        }
      }
    }
  }

  template <bool split>
  void run() const {
    const int64_t count = batch * windows.count();
    const int64_t bytes = count * windows.tokens() * parts * heads * size;
#pragma omp parallel for if (bytes >= cpu::kParallelElements * 4)
    for (int64_t window = 0; window < count; ++window) move<split>(window);
  }
};

}  // namespace

FLEET_KERNEL(cpu, window_split) {
  def.dtypes = {DType::kFloat32, DType::kBFloat16, DType::kFloat16};
  def.create = [](KernelContext& context) {
    const SplitImage image(context.attributes(), context.inputs[0], context.outputs);
    return make_kernel([=](Stream&) { image.run<true>(); });
  };
}

FLEET_KERNEL(cpu, window_join) {
  def.dtypes = {DType::kFloat32, DType::kBFloat16, DType::kFloat16};
  def.create = [](KernelContext& context) {
    const SplitImage image(context.attributes(), context.outputs[0], context.inputs);
    return make_kernel([=](Stream&) { image.run<false>(); });
  };
}

}  // namespace fleet
