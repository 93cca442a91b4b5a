// Reads PNG files whose pixels are numbers, such as the classes of a mask: palettes are left alone.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace fleet::data {

// Reusable; use one per thread. A damaged file is reported by value (false, and why()).
class IndexPng {
 public:
  IndexPng() = default;
  ~IndexPng() { close(); }
  IndexPng(const IndexPng&) = delete;

  // Reads the header. `bytes` must stay valid until read() has returned. False, with is_usage(),
  // for colours, transparency or 16 bits: such a file has no numbers that a byte holds.
  bool open(std::span<const uint8_t> bytes);
  // Calls `row` for the rows first to end - 1, with the numbers of its pixels. Once after open().
  bool read(int first, int end, const std::function<void(int y, const uint8_t* numbers)>& row);
  int height() const { return height_; }
  int width() const { return width_; }
  const std::string& why() const { return why_; }
  // Whether the file is whole, but of another kind.
  bool is_usage() const { return is_usage_; }

 private:
  struct Reader;
  void close();
  bool refuse(const std::string& what);

  Reader* reader_ = nullptr;
  int height_ = 0, width_ = 0;
  bool is_usage_ = false;
  std::string why_;
};

}  // namespace fleet::data
