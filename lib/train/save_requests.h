// Which signals ask for a checkpoint. A launcher sends one to all ranks, which notice it a few
// steps apart: that is one request.
#pragma once

#include <limits>

namespace fleet {

class SaveRequests {
 public:
  static constexpr double kApart = 1;  // seconds between the first and the last rank that notices

  // Before a turn of the ranks: whether this one asks. signals: how many came so far. now: seconds.
  bool asks(int signals, double now) {
    if (signals == seen_) return false;
    seen_ = signals;
    return signals > agreed_ || now - agreed_at_ > kApart;
  }
  // After it: whether all ranks save. asked: whether any rank did. A request right behind another
  // was made before its rank knew of that one. The same on all ranks.
  bool agree(bool asked, double now) {
    const bool again = asked && asked_before_;
    asked_before_ = asked;
    if (!asked || again) return false;
    ++agreed_;
    agreed_at_ = now;
    return true;
  }

 private:
  int seen_ = 0, agreed_ = 0;
  double agreed_at_ = -std::numeric_limits<double>::infinity();
  bool asked_before_ = false;
};

}  // namespace fleet
