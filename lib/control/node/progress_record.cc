#include "node/progress_record.h"

#include <algorithm>

namespace fleet {
namespace {

constexpr std::chrono::seconds kWriteInterval{5};

}  // namespace

void ProgressRecord::begin() { *this = {}; }

bool ProgressRecord::update(const StepReport& report, Time now, double unix_time) {
  if (report.ranks().empty()) return false;
  for (const RankSteps& rank : report.ranks()) {
    progress_.set_step(std::max(progress_.step(), rank.step()));
    progress_.set_target(std::max(progress_.target(), rank.target()));
    if (rank.has_loss()) progress_.set_loss(rank.loss());
  }
  time_left_.update(progress_.step(), now);
  progress_.clear_seconds_left();
  if (const auto left = time_left_.seconds(progress_.target())) progress_.set_seconds_left(*left);
  progress_.set_unix_time(unix_time);
  if (now < next_write_) return false;
  next_write_ = now + kWriteInterval;
  return true;
}

}  // namespace fleet
