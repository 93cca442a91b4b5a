#include "diagnosis/straggler_detector.h"

#include <algorithm>
#include <cmath>

#include "base/number_text.h"

namespace fleet {
namespace {

constexpr std::chrono::seconds kWindow{10};  // own times are means over this period
constexpr int64_t kMinSteps = 3;             // and over at least this many steps
constexpr double kSigmas = 4;                // a rank this far above the median is slow
constexpr double kMinSigma = 0.05;           // one sigma is at least this fraction of the median
constexpr double kMinExcess = 0.2;           // and slow is at least this fraction above it
constexpr int kMinWindows = 2;               // slow windows in a row before a report
constexpr double kMaxShownRatio = 100;       // slower ranks are not compared in sigmas

// The lower median: with only two ranks, the faster one sets the expectation.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// In seconds per step.
double own_time(const RankSteps& from, const RankSteps& to) {
  const int64_t passed = to.step_at_ns() - from.step_at_ns(),
                waited = to.waited_ns() - from.waited_ns();
  return 1e-9 * static_cast<double>(std::max<int64_t>(0, passed - waited)) /
         static_cast<double>(to.steps() - from.steps());
}

std::string rank_label(const RankSteps& rank) {
  return "rank " + std::to_string(rank.rank()) + " (local rank " +
         std::to_string(rank.local_rank()) + ") on node " + std::to_string(rank.node_rank());
}

// spread: one standard deviation of the measured times.
std::string slow_line(const RankSteps& rank, double own, double usual, double spread) {
  // With two ranks there is no spread, and a multiple of nearly nothing says nothing.
  const bool comparable = spread >= kMinSigma * usual && own <= kMaxShownRatio * usual;
  return rank_label(rank) + " is a straggler: " + number_text(1e3 * own, 3) +
         " ms per step of its own time, the median is " + number_text(1e3 * usual, 3) + " ms" +
         (comparable ? " (" + number_text(std::round((own - usual) / spread)) + " sigma)" : "") +
         "; check other processes on its cores, its clock rate and memory, and its data source";
}

}  // namespace

void StragglerDetector::begin(Time now) {
  members_.clear();
  window_end_ = now + kWindow;
  step_.reset();
}

std::vector<std::string> StragglerDetector::update(const StepReport& reports, Time now) {
  for (const RankSteps& report : reports.ranks()) {
    const auto [at, is_new] = members_.try_emplace(report.rank(), Member{report, report});
    Member& member = at->second;
    if (is_new || report.steps() < member.last.steps())
      member = Member{report, report};  // a new process
    member.last = report;
    step_ = std::max(step_.value_or(report.step()), report.step());
  }
  if (now < window_end_) return {};
  window_end_ = now + kWindow;
  return compare();
}

std::vector<std::string> StragglerDetector::compare() {
  struct Measured {
    Member* member;
    double own;
  };
  std::vector<Measured> measured;
  std::vector<double> times, deviations;
  for (auto& [rank, member] : members_) {
    if (member.last.steps() - member.window_begin.steps() < kMinSteps) continue;
    measured.push_back({&member, own_time(member.window_begin, member.last)});
    member.window_begin = member.last;
    times.push_back(measured.back().own);
  }
  if (measured.size() < 2) return {};
  const double usual = median(times);
  for (const double time : times) deviations.push_back(std::abs(time - usual));
  // For a normal distribution, 1.4826 median deviations are one standard deviation.
  const double spread = 1.4826 * median(deviations);
  const double sigma = std::max({spread, kMinSigma * usual, 1e-9});
  std::vector<std::string> lines;
  for (const auto& [member, own] : measured) {
    const bool slow = own > usual + kSigmas * sigma && own > (1 + kMinExcess) * usual;
    member->slow_for = slow ? member->slow_for + 1 : 0;
    if (!slow && member->named) {
      lines.push_back(rank_label(member->last) + " keeps up with the others again");
      member->named = false;
    } else if (member->slow_for >= kMinWindows && !member->named) {
      lines.push_back(slow_line(member->last, own, usual, spread));
      member->named = true;
    }
  }
  return lines;
}

}  // namespace fleet
