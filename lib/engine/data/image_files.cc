#include "data/image_files.h"

#include <algorithm>

#include "base/error.h"
#include "base/regular_file.h"
#include "base/text.h"

namespace fleet::data {
namespace {

// No image that a decoder accepts is this large.
constexpr int64_t kLargest = int64_t{1} << 30;

}  // namespace

Sample ImageFiles::read(int64_t index, std::vector<uint8_t>& scratch) const {
  return read_up_to(index, kLargest, scratch);
}

Sample ImageFiles::read_start(int64_t index, size_t bytes, std::vector<uint8_t>& scratch) const {
  return read_up_to(index, static_cast<int64_t>(bytes), scratch);
}

Sample ImageFiles::read_up_to(int64_t index, int64_t bytes, std::vector<uint8_t>& scratch) const {
  const std::string& path = files_[index].path;
  const RegularFile file = open_regular_file(path);
  if (file.size > kLargest)
    throw Error(ErrorCode::kIo, "it is too large: " + mebibytes(file.size), path);
  const auto size = static_cast<size_t>(std::min(file.size, bytes));
  if (scratch.size() < size) scratch.resize(size);
  return {.bytes = {scratch.data(), read_at(file.fd, scratch.data(), size, 0, path)}};
}

}  // namespace fleet::data
