// The most recent console output of a job, for clients that attach later.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace fleet {

// Bytes kept per job.
inline constexpr size_t kConsoleLogBytes = 512 << 10;

class ConsoleLog {
 public:
  struct Chunk {
    bool error = false;  // from standard error
    std::string text;
  };
  ConsoleLog() : ConsoleLog(kConsoleLogBytes) {}
  explicit ConsoleLog(size_t bytes) : limit_(bytes) {}

  void add(bool error, std::string_view text);
  // Positions count every byte ever added. Bytes before begin() have been dropped.
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  // The chunk at *at, or at begin() if that is later, limited to `most` bytes. Advances *at past
  // it. An empty text means that there is no more output yet.
  Chunk next(uint64_t* at, size_t max_bytes) const;

 private:
  size_t limit_;
  std::deque<Chunk> chunks_;
  uint64_t begin_ = 0, end_ = 0;
};

}  // namespace fleet
