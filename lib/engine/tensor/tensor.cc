#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/layout.h"
#include "tensor/shape.h"

namespace fleet {

namespace {

// In the order of DType.
struct TypeFacts {
  const char* name;
  size_t size;
};
constexpr TypeFacts kTypes[] = {{"float32", 4}, {"float64", 8}, {"float16", 2}, {"bfloat16", 2},
                                {"int64", 8},   {"int32", 4},   {"uint8", 1}};

}  // namespace

size_t size_of(DType dtype) { return kTypes[static_cast<size_t>(dtype)].size; }
const char* name_of(DType dtype) { return kTypes[static_cast<size_t>(dtype)].name; }
bool is_floating(DType dtype) { return dtype <= DType::kBFloat16; }

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  if (dims.size() > kMaxRank) {
    throw Error(ErrorCode::kUsage, "a shape of " + std::to_string(dims.size()) + " dimensions", {},
                "a tensor has at most " + std::to_string(kMaxRank));
  }
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

int64_t Shape::elements() const {
  return std::accumulate(begin(), end(), int64_t{1}, std::multiplies<>());
}

std::string Shape::text() const {
  std::string text = "[";
  for (int d = 0; d < rank_; ++d) text += (d ? ", " : "") + std::to_string(dims_[d]);
  return text + "]";
}

Layout Layout::plain(const Shape& shape) {
  std::vector<int64_t> strides(shape.rank());
  int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return blocked(shape, strides, {});
}

Layout Layout::channels_last(const Shape& shape) {
  std::vector<int64_t> strides(shape.rank());
  int64_t stride = shape[1];
  strides[1] = 1;
  for (int d = shape.rank() - 1; d >= 2; --d) {
    strides[d] = stride;
    stride *= shape[d];
  }
  strides[0] = stride;
  return blocked(shape, strides, {});
}

Layout Layout::blocked(const Shape& padded, const std::vector<int64_t>& strides,
                       const std::vector<Block>& inner) {
  Layout layout;
  layout.padded_ = padded;
  layout.strides_ = strides;
  layout.inner_ = inner;
  layout.elements_ = padded.elements();
  return layout;
}

Layout Layout::opaque(int64_t elements, std::string tag) {
  FLEET_CHECK(!tag.empty(), "an opaque layout needs a tag");
  Layout layout;
  layout.tag_ = std::move(tag);
  layout.elements_ = elements;
  return layout;
}

bool Layout::is_plain() const {
  if (is_opaque() || !inner_.empty()) return false;
  int64_t stride = 1;
  for (int d = padded_.rank() - 1; d >= 0; --d) {
    if (padded_[d] != 1 && strides_[d] != stride) return false;
    stride *= padded_[d];
  }
  return true;
}

int64_t Layout::offset(std::span<const int64_t> indices) const {
  std::array<int64_t, Shape::kMaxRank> rest{};
  std::copy(indices.begin(), indices.end(), rest.begin());
  int64_t offset = 0, stride = 1;
  for (auto block = inner_.rbegin(); block != inner_.rend(); ++block) {
    offset += rest[block->axis] % block->size * stride;
    rest[block->axis] /= block->size;
    stride *= block->size;
  }
  for (size_t d = 0; d < indices.size(); ++d) offset += rest[d] * strides_[d];
  return offset;
}

std::string Layout::text() const {
  if (is_opaque()) return tag_;
  std::vector<int> order(padded_.rank());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return strides_[a] > strides_[b]; });
  std::string text;
  for (int axis : order) {
    const bool has_block = std::any_of(inner_.begin(), inner_.end(),
                                       [&](const Block& block) { return block.axis == axis; });
    text += static_cast<char>((has_block ? 'A' : 'a') + axis);
  }
  for (const Block& block : inner_) {
    text += std::to_string(block.size) + static_cast<char>('a' + block.axis);
  }
  return text.empty() ? "scalar" : text;
}

}  // namespace fleet
