#include "launch/tools/cifar_to_idx.h"

#include <cstdint>

#include "base/error.h"
#include "base/file.h"

namespace fleet {
namespace {

constexpr size_t kPlane = size_t{32} * 32;

// Magic number (unsigned bytes, number of dimensions) and dimensions, big-endian.
std::string idx_head(const std::vector<uint32_t>& dimensions) {
  std::string head = {0, 0, 8, static_cast<char>(dimensions.size())};
  for (const uint32_t size : dimensions) {
    for (const int shift : {24, 16, 8, 0}) head += static_cast<char>(size >> shift & 255);
  }
  return head;
}

}  // namespace

void cifar_to_idx(const std::vector<std::string>& parts, int labels, const std::string& images,
                  const std::string& label_file) {
  std::string pixels, classes;
  const size_t record = labels + 3 * kPlane;
  for (const std::string& part : parts) {
    const std::string bytes = read_file(part);
    if (bytes.empty() || bytes.size() % record != 0) {
      throw Error(ErrorCode::kIo, "it does not hold whole images", part, "get the data set again");
    }
    for (size_t at = 0; at < bytes.size(); at += record) {
      classes += bytes[at + labels - 1];
      const size_t first = at + labels;
      for (size_t i = 0; i < kPlane; ++i) {
        for (size_t c = 0; c < 3; ++c) pixels += bytes[first + c * kPlane + i];
      }
    }
  }
  const auto count = static_cast<uint32_t>(classes.size());
  write_file_atomically(images, idx_head({count, 32, 32, 3}) + pixels);
  write_file_atomically(label_file, idx_head({count}) + classes);
}

}  // namespace fleet
