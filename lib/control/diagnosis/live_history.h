// A job from its start, as points for curves: its loss, accuracy, speed and GPUs, and the times of
// its ranks. Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "transport/control_messages.h"

namespace fleet {

// Takes less than 10 MB for any length and size of a job: once it is full, every second point goes,
// and later ones are twice as far apart. In a large job only some points have values of the ranks.
class LiveHistory {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr int kMaxPoints = 480;
  // Of the ranks of all points together, at 11 bytes each.
  static constexpr size_t kMaxCells = 384 << 10;
  static constexpr int kUnknownShare = 255;

  // Whether add() takes a report at this time: reports cost more than the question.
  bool wants(Time now) const;
  void add(const LiveReport& report, Time now);
  // Continues a history that another process gathered up to `now`, unless this one began earlier.
  void take(wire::LiveHistory other, Time now);
  // Keeps the curves of the job only.
  void forget_ranks();

  bool empty() const { return history_.points().empty(); }
  const wire::LiveHistory& points() const { return history_; }  // now_ms is not set
  wire::LiveHistory snapshot(Time now) const;

 private:
  int64_t milliseconds_at(Time now) const;
  void bound();
  void thin_points();
  void thin_ranks();
  void drop_ranks(wire::LiveHistory::Point* point);

  wire::LiveHistory history_;
  Time began_{};
  size_t cells_ = 0;
  int rank_stride_ = 1;  // every so many points have ranks, beginning with the first
};

}  // namespace fleet
