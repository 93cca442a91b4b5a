// Merges equal lines of many ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fleet {

// A line waits a moment for equal lines of other ranks. Every rank's lines keep their order. Has no
// clock of its own.
class LineCollapse {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using WallTime = std::chrono::system_clock::time_point;

  struct Line {
    std::vector<int> ranks;  // that have written it, in ascending order
    std::string text;
    WallTime written;  // by the first of them
  };

  // At most `most_lines` lines wait.
  explicit LineCollapse(std::chrono::milliseconds window, size_t most_lines = 1024)
      : window_(window), most_lines_(most_lines) {}
  // Adds a rank to wait for; end() removes it.
  void begin(int rank) { writing_.insert(rank); }
  void end(int rank) { writing_.erase(rank); }
  void add(int rank, std::string_view text, Time now, WallTime written);
  // The next line that need not wait any longer.
  std::optional<Line> take(Time now);
  // The next line, even if it could wait longer.
  std::optional<Line> take_any();
  // When take() has another line; nullopt if no line waits.
  std::optional<Time> next_due() const;

 private:
  struct Entry {
    Line line;
    Time due;
    size_t hash;
    uint64_t next = 0;  // number of the next line with this hash; 0: none
  };
  // Numbers of waiting lines with the same hash.
  struct Chain {
    uint64_t first, last;
  };
  struct NoHash {
    size_t operator()(size_t hash) const { return hash; }
  };
  Entry& entry(uint64_t number) { return waiting_[static_cast<size_t>(number - first_)]; }
  bool is_complete(const Entry& entry) const;

  std::chrono::milliseconds window_;
  size_t most_lines_;
  std::set<int> writing_;
  std::deque<Entry> waiting_;
  uint64_t first_ = 1;                       // number of waiting_.front()
  std::unordered_map<int, uint64_t> after_;  // a rank's next line has this number or a higher one
  std::unordered_map<size_t, Chain, NoHash> chains_;
};

}  // namespace fleet
