#include "backend/cuda/types.h"
#include "exec/kernel.h"
#include "ops/image_windows.h"

namespace fleet {
namespace {

template <typename T>
struct SplitImage {
  ImageWindows windows;
  int64_t heads, size, parts;
  T* image;
  T* part[3];
};

// One pack of the image a thread, which is within one head of a token.
template <int pack, bool split, typename T>
__global__ void move_heads(int64_t count, SplitImage<T> to) {
  const int64_t at = cuda::thread_index() * pack;
  if (at >= count) return;
  const int64_t run = cuda::quotient(at, to.size), element = at - run * to.size;
  // The token's order is that of its part: windows of the batch, then heads, then tokens.
  const int64_t rows = to.windows.tokens() * to.heads;
  const int64_t line = cuda::quotient(run, to.parts), p = run - line * to.parts;
  const int64_t window = cuda::quotient(line, rows), rest = line - window * rows;
  const int64_t token = cuda::quotient(rest, to.heads), head = rest - token * to.heads;
  const int64_t of_image = cuda::quotient(window, to.windows.count());
  const int64_t place = to.windows.place(window - of_image * to.windows.count(), token);
  const int64_t row = of_image * to.windows.count() * to.windows.tokens() + place;
  const int64_t inside = ((row * to.parts + p) * to.heads + head) * to.size + element;
  const int64_t outside =
      ((window * to.heads + head) * to.windows.tokens() + token) * to.size + element;
  T* other = p == 0 ? to.part[0] : (p == 1 ? to.part[1] : to.part[2]);
  if (split) {
    cuda::store_pack<pack>(other, outside, cuda::load_pack<pack>(to.image, inside));
  } else {
    cuda::store_pack<pack>(to.image, inside, cuda::load_pack<pack>(other, outside));
  }
}

template <bool split>
std::unique_ptr<Kernel> make_split(KernelContext& context) {
  const Argument& whole = split ? context.inputs[0] : context.outputs[0];
  const std::vector<Argument>& pieces = split ? context.outputs : context.inputs;
  return cuda::dispatch(whole.dtype, [&](auto type) {
    using T = decltype(type);
    SplitImage<T> image{.windows = image_windows(context.attributes()),
                        .heads = context.attributes().integer("heads"),
                        .size = 0,
                        .parts = 0,
                        .image = whole.as<T>(),
                        .part = {}};
    bool aligned = cuda::is_aligned(whole.data);
    for (const Argument& piece : pieces) {
      if (!piece) continue;
      image.part[image.parts++] = piece.as<T>();
      aligned = aligned && cuda::is_aligned(piece.data);
    }
    image.size = whole.shape[3] / (image.parts * image.heads);
    constexpr int kWide = cuda::kPack<T>;
    const bool packs = aligned && image.size % kWide == 0;
    const int64_t count = whole.shape.elements();
    const auto wide = move_heads<kWide, split, T>, single = move_heads<1, split, T>;
    return make_kernel([=](Stream& stream) {
      cuda::launch(packs ? wide : single,
                   cuda::blocks_for(count, packs ? cuda::kBlock * kWide : cuda::kBlock),
                   cuda::kBlock, 0, cuda::stream_of(stream), count, image);
    });
  });
}

}  // namespace

FLEET_KERNEL(cuda, window_split) {
  def.dtypes = cuda::floating_types();
  def.create = make_split<true>;
}

FLEET_KERNEL(cuda, window_join) {
  def.dtypes = cuda::floating_types();
  def.create = make_split<false>;
}

}  // namespace fleet
