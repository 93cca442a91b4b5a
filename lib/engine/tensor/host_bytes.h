// Host memory with its size, as an argument: any contiguous range of trivially copyable elements,
// or a span of bytes.
#pragma once

#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>

namespace fleet {

template <typename Range>
concept PlainRange = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::is_trivially_copyable_v<std::ranges::range_value_t<Range>>;

// Refers to memory of the caller; valid as long as that. Copy it, do not keep it.
class ConstHostBytes {
 public:
  template <PlainRange Range>
  ConstHostBytes(const Range& range)  // NOLINT(runtime/explicit)
      : data_(std::ranges::data(range)),
        size_(std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>)) {}
  const void* data() const { return data_; }
  size_t size() const { return size_; }  // in bytes

 private:
  const void* data_;
  size_t size_;
};

// The same, to write to.
class HostBytes {
 public:
  template <PlainRange Range>
  requires(!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>)
      HostBytes(Range&& range)  // NOLINT(bugprone-forwarding-reference-overload): not a range
      : data_(std::ranges::data(range)),
        size_(std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>)) {}
  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* data_;
  size_t size_;
};

}  // namespace fleet
