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
  all_report_ = std::all_of(communicators_.begin(), communicators_.end(),
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

void StepTraffic::summarize(RankCoordinator& control, EventLine* line) const {
  std::vector<double> values = {all_report_ ? 1. : 0., counted() ? 1. : 0.};
  for (const auto& figure : kFigures) values.push_back(overall_.mean(figure.bytes));
  const auto ranks = control.by_rank(values);
  const auto tells = [](const std::vector<double>& rank) { return rank[0] > 0; };
  const auto counts = [](const std::vector<double>& rank) { return rank[1] > 0; };
  if (!line || !std::all_of(ranks.begin(), ranks.end(), tells)) return;
  if (std::none_of(ranks.begin(), ranks.end(), counts)) return;
  for (size_t f = 0; f < std::size(kFigures); ++f) {
    std::vector<int64_t> by_rank;
    for (const auto& rank : ranks) by_rank.push_back(std::lround(rank[2 + f]));
    line->add(kFigures[f].name, std::move(by_rank));
  }
}

}  // namespace fleet
