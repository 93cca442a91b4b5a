#include "ps/trainer_roster.h"

#include <algorithm>
#include <limits>

namespace fleet::ps {

TrainerRoster::TrainerRoster(int trainers, double timeout)
    : timeout_(timeout), incarnations_(place(trainers)), lost_(place(trainers)) {}

void TrainerRoster::lose(int trainer, int connection, double now) {
  lost_[place(trainer)] = now;
  retired_.insert(connection);
}

void TrainerRoster::replace(int trainer, uint32_t incarnation, int connection) {
  incarnations_[place(trainer)] = incarnation;
  lost_[place(trainer)].reset();
  if (connection >= 0) retired_.insert(connection);
}

std::vector<int> TrainerRoster::abandon() {
  std::vector<int> abandoned;
  for (size_t t = 0; t < lost_.size(); ++t) {
    if (!lost_[t]) continue;
    lost_[t].reset();
    abandoned.push_back(static_cast<int>(t));
  }
  return abandoned;
}

std::vector<int> TrainerRoster::overdue(double now) const {
  std::vector<int> late;
  for (size_t t = 0; t < lost_.size(); ++t) {
    if (lost_[t] && now >= *lost_[t] + timeout_) late.push_back(static_cast<int>(t));
  }
  return late;
}

double TrainerRoster::next_deadline() const {
  double next = std::numeric_limits<double>::infinity();
  for (const std::optional<double>& since : lost_) {
    if (since) next = std::min(next, *since + timeout_);
  }
  return next;
}

}  // namespace fleet::ps
