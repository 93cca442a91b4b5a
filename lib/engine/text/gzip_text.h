// Reads .gz files, by zlib.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace fleet::text {

// Not thread-safe.
class GzipText {
 public:
  // kNotFound, kIo, kUsage if it is not a regular file, naming the path.
  explicit GzipText(const std::string& path);
  ~GzipText();
  GzipText(const GzipText&) = delete;
  // Appends up to `bytes` bytes; returns their number, 0 at the end. kUsage naming the path for a
  // file that is damaged or cut off.
  size_t read(std::string* text, size_t bytes);
  // Bytes of the file that are read.
  int64_t compressed_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fleet::text
