// LiveReports as people and programs see them: fleetrun top and pages. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

struct LiveViewOptions {
  std::string sort = "rank";  // one of live_sort_keys()
  int columns = 80;           // lines are at most this long, if the terminal is that narrow
  int rows = 0;               // lines of the frame; 0: as many as it needs
  bool colors = false;
};

// What --sort takes: the rank, or a column, whose largest value then comes first.
const std::vector<std::string>& live_sort_keys();

// A frame: the job, its bottleneck, and a line for each rank. Columns that no rank knows are left
// out; so are, in a narrow frame, the least important ones. The slowest rank has a "*".
std::string live_frame(const LiveReport& report, const LiveViewOptions& options);

// A line below a frame: which keys do what, and the key that sorts it.
std::string live_key_line(const std::string& sort, int columns);

// The same for programs, as one line of JSON: unknown values are null. `now`: seconds since 1970.
std::string live_json(const LiveReport& report, const std::string& sort, double now);

// The curves of a page: a job's loss and speed, and the ranks' times, from its reports. Keeps a
// bounded number of points: once it is full, every second one goes, and from then on it
// takes reports half as often. So it always spans the whole time. Not thread-safe.
class LiveHistory {
 public:
  // Of points, and of all points' ranks together: 8 MiB.
  static constexpr size_t kMaxPoints = 480, kMaxCells = 512 << 10;

  // `now`: seconds since 1970.
  void add(const LiveReport& report, double now);
  size_t size() const { return points_.size(); }
  // {"points": [{"time", "step", "loss", "rate", "step_ms", "ranks": [[own ms, input, peers, cpu],
  // ...]}, ...]}: shares in percent; unknown values are null. Ranks are those of the points'
  // reports without parameter servers, in their order.
  std::string json() const;

 private:
  struct Rank {
    float own_ms, input, peers, cpu;  // NaN: unknown
  };
  struct Point {
    double time, loss, rate, step_ms;
    int64_t step;  // -1: unknown
    std::vector<Rank> ranks;
  };
  bool full() const { return points_.size() >= kMaxPoints || cells_ > kMaxCells; }
  void thin_out();

  std::vector<Point> points_;
  size_t cells_ = 0;
  int stride_ = 1, skipped_ = 0;  // reports per point, and those since the last one
};

}  // namespace fleet
