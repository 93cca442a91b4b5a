#include "train/step_traffic.h"

#include <algorithm>
#include <cmath>

namespace fleet {
namespace {

constexpr struct {
  const char* name;
  int64_t Traffic::*bytes;
} kFigures[] = {{"sent_bytes", &Traffic::sent},
                {"received_bytes", &Traffic::received},
                {"sent_bytes_between_hosts", &Traffic::sent_between_hosts}};

}  // namespace

void StepTraffic::Sum::add(const Traffic& more) {
  traffic += more;
  ++steps;
}

double StepTraffic::Sum::mean(int64_t Traffic::*bytes) const {
  return steps == 0 ? 0 : static_cast<double>(traffic.*bytes) / static_cast<double>(steps);
}

StepTraffic::StepTraffic(std::vector<Communicator*> communicators)
    : communicators_(std::move(communicators)) {
  std::erase(communicators_, nullptr);
  all_tell_ = std::all_of(communicators_.begin(), communicators_.end(),
                          [](const Communicator* one) { return one->traffic(); });
}

Traffic StepTraffic::now() const {
  Traffic sum;
  if (!counted()) return sum;
  for (const Communicator* communicator : communicators_) sum += communicator->traffic().value();
  return sum;
}

void StepTraffic::step_begins() { before_ = now(); }

void StepTraffic::step_done() {
  const Traffic step = now() - before_;
  recent_.add(step);
  overall_.add(step);
}

void StepTraffic::add_to(EventLine* line) {
  if (!counted()) return;
  for (const auto& figure : kFigures) {
    line->add(figure.name, std::lround(recent_.mean(figure.bytes)));
  }
  line->add("sent_bytes_total", overall_.traffic.sent);
  recent_ = {};
}

void StepTraffic::summarize(Control& control, int rank, int ranks, EventLine* line) const {
  std::vector<double> values;  // by figure and rank
  for (const auto& figure : kFigures) {
    values.resize(values.size() + ranks);
    values[values.size() - ranks + rank] = overall_.mean(figure.bytes);
  }
  values.insert(values.end(), {all_tell_ ? 0. : 1., counted() ? 1. : 0.});
  control.sum(values);
  const bool all_tell = values.end()[-2] == 0, any_counted = values.back() > 0;
  if (!line || !all_tell || !any_counted) return;
  auto value = values.begin();
  for (const auto& figure : kFigures) {
    std::vector<int64_t> by_rank;
    for (int r = 0; r < ranks; ++r) by_rank.push_back(std::lround(*value++));
    line->add(figure.name, std::move(by_rank));
  }
}

}  // namespace fleet
