// Merges signals that ask for a checkpoint. A launcher sends one to all ranks, which notice it a
// few steps apart: that is one request.
#pragma once

#include <limits>

namespace fleet {

class CheckpointRequests {
 public:
  static constexpr double kMaxSkewSeconds =
      1;  // seconds between the first and the last rank that notices

  // Call before a turn of the ranks: returns whether this rank asks. signals: number received so
  // far. now: seconds.
  bool is_new(int signals, double now) {
    if (signals == seen_) return false;
    seen_ = signals;
    return signals > handled_ || now - handled_at_ > kMaxSkewSeconds;
  }
  // Call after the turn: returns whether all ranks save. asked: whether any rank asked. Ignores a
  // request right after another: its rank did not know of the first one yet. Returns the same on
  // all ranks.
  bool agree(bool asked, double now) {
    const bool again = asked && asked_before_;
    asked_before_ = asked;
    if (!asked || again) return false;
    ++handled_;
    handled_at_ = now;
    return true;
  }

 private:
  int seen_ = 0, handled_ = 0;
  double handled_at_ = -std::numeric_limits<double>::infinity();
  bool asked_before_ = false;
};

}  // namespace fleet
