// Equal lines of many ranks, made one.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fleet {

// A line waits a moment for other ranks to say the same. Every rank's lines come out in the order
// in which it wrote them. No clock of its own.
class LineCollapse {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using WallTime = std::chrono::system_clock::time_point;

  struct Line {
    std::set<int> ranks;  // that have written it
    std::string text;
    WallTime written;  // by the first of them
  };

  // At most `most_bytes` of lines wait.
  explicit LineCollapse(std::chrono::milliseconds window, size_t most_bytes = 1 << 20)
      : window_(window), most_bytes_(most_bytes) {}
  // Whose lines are waited for; a rank that ends no longer is.
  void begin(int rank) { writing_.insert(rank); }
  void end(int rank) { writing_.erase(rank); }
  void add(int rank, std::string_view text, Time now, WallTime written);
  // The next line that need not wait any longer.
  std::optional<Line> take(Time now);
  // The next line, though it might.
  std::optional<Line> take_any();
  // When take() has something again; nothing where nothing waits.
  std::optional<Time> next_due() const;

 private:
  struct Entry {
    Line line;
    Time due;
  };
  bool is_complete(const Entry& entry) const;

  std::chrono::milliseconds window_;
  size_t most_bytes_, bytes_ = 0;
  std::set<int> writing_;
  std::deque<Entry> waiting_;
  uint64_t first_ = 0;                       // number of waiting_.front()
  std::unordered_map<int, uint64_t> after_;  // a rank's next line is this one or a later one
  // By text, the numbers of the lines that wait. Views into waiting_, whose elements stay in place.
  std::unordered_map<std::string_view, std::vector<uint64_t>> numbers_;
};

// "3", or "0-3,5".
std::string ranges_of(const std::set<int>& numbers);

}  // namespace fleet
