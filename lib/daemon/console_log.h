// What a job has shown, as far as it is kept: the last of it, for those who attach later.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace fleet {

// Of each job, bytes.
inline constexpr size_t kKeptOutput = 512 << 10;

class ConsoleLog {
 public:
  struct Piece {
    bool error = false;  // from standard error
    std::string text;
  };
  ConsoleLog() : ConsoleLog(kKeptOutput) {}
  explicit ConsoleLog(size_t bytes) : limit_(bytes) {}

  void add(bool error, std::string_view text);
  // Positions count every byte ever added. What lies before begin() is gone.
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  // The piece at *at (or at begin(), where that is later), at most `most` bytes of it; *at moves
  // behind it. An empty text: nothing is there yet.
  Piece next(uint64_t* at, size_t most) const;

 private:
  size_t limit_;
  std::deque<Piece> pieces_;
  uint64_t begin_ = 0, end_ = 0;
};

}  // namespace fleet
