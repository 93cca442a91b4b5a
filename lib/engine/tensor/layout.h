// The memory layout of a tensor's elements.
#pragma once

#include <string>
#include <vector>

#include "tensor/shape.h"

namespace fleet {

// Outer dimensions have strides and inner dimensions blocks, as in oneDNN. With `inner` listing the
// innermost blocks from the outside in, element (i0, i1, ...) is at sum(strides[d] * (i[d] /
// block of d)) + its offset in the block. Axes are padded to whole blocks; the padding holds zeros.
// An opaque layout is private to a backend: only its size is known.
class Layout {
 public:
  struct Block {
    int axis;
    int64_t size;
    bool operator==(const Block&) const = default;
  };

  Layout() = default;                               // a scalar's
  static Layout plain(const Shape& shape);          // row-major, no padding
  static Layout channels_last(const Shape& shape);  // N, C, spatial... with C innermost
  static Layout blocked(const Shape& padded, const std::vector<int64_t>& strides,
                        const std::vector<Block>& inner);
  static Layout opaque(int64_t elements, std::string tag);

  bool is_plain() const;  // row-major without padding: memory order is logical order
  bool is_opaque() const { return !tag_.empty(); }
  int64_t elements() const { return elements_; }  // including padding
  const Shape& padded() const { return padded_; }
  const std::vector<int64_t>& strides() const { return strides_; }
  const std::vector<Block>& inner() const { return inner_; }
  // The position of the element with these logical indices, in elements. Not for opaque layouts.
  int64_t offset(std::span<const int64_t> indices) const;

  bool operator==(const Layout& other) const = default;
  std::string text() const;  // "abcd", "acdb", "aBcd16b", or the opaque tag

 private:
  Shape padded_;
  std::vector<int64_t> strides_;
  std::vector<Block> inner_;
  std::string tag_;
  int64_t elements_ = 1;
};

// Copies between layouts on the host, one element at a time: for tests, checkpoints and feeds, not
// within a step. Zeroes the destination's padding. `size` is the element size in bytes.
void relayout(const Shape& shape, size_t size, const Layout& from, const void* source,
              const Layout& to, void* target);

}  // namespace fleet
