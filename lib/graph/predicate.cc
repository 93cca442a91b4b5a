#include "graph/predicate.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

#include "base/error.h"

namespace fleet {
namespace {

constexpr int64_t kLongestPeriod = 1 << 16;

// Training steps that stand for all: between two steps at which a range begins or ends, one period
// of what repeats.
std::vector<int64_t> telling_steps(std::span<const Predicate> predicates) {
  int64_t period = 1;
  std::set<int64_t> edges = {0};
  for (const Predicate& predicate : predicates) {
    period = std::lcm(period, predicate.every);
    FLEET_CHECK(period <= kLongestPeriod, "sections whose steps meet too seldom");
    edges.insert(std::max<int64_t>(predicate.from_step, 0));
    if (predicate.until_step != kForever) edges.insert(std::max<int64_t>(predicate.until_step, 0));
  }
  std::vector<int64_t> steps;
  for (auto edge = edges.begin(); edge != edges.end(); ++edge) {
    const auto next = std::next(edge);
    const int64_t end = next == edges.end() ? *edge + period : std::min(*next, *edge + period);
    for (int64_t step = *edge; step < end; ++step) steps.push_back(step);
  }
  return steps;
}

// Every combination of those flags.
std::vector<uint64_t> telling_flags(std::span<const Predicate> predicates) {
  std::set<FlagId> used;
  for (const Predicate& predicate : predicates) {
    if (predicate.flag != kNoFlag) used.insert(predicate.flag);
  }
  std::vector<uint64_t> all = {0};
  for (const FlagId flag : used) {
    const size_t count = all.size();
    for (size_t i = 0; i < count; ++i) all.push_back(all[i] | uint64_t{1} << flag);
  }
  return all;
}

// Whether `holds` is true of every run that the predicates can tell from another.
bool always(std::span<const Predicate> predicates,
            const std::function<bool(const StepInfo&)>& holds) {
  for (const bool fetch : {false, true}) {
    if (!holds({.evaluate = true, .fetch = fetch})) return false;
  }
  if (!holds({.refresh = true}) || !holds({.sync = true})) return false;
  const std::vector<uint64_t> flags = telling_flags(predicates);
  for (const int64_t step : telling_steps(predicates)) {
    for (const uint64_t set : flags) {
      for (const bool fetch : {false, true}) {
        if (!holds({.step = step, .fetch = fetch, .flags = set})) return false;
      }
    }
  }
  return true;
}

}  // namespace

bool Predicate::holds(const StepInfo& info) const {
  if (refresh != info.refresh) return false;
  if (refresh) return true;
  if (info.sync) return sync;
  if (fetch_only && !info.fetch) return false;
  if (info.evaluate) return evaluation;
  if (flag != kNoFlag && ((info.flags >> flag & 1) != 0) != flag_value) return false;
  return training && info.step >= from_step && info.step < until_step &&
         ((info.step + 1) % every == 0) != between;
}

bool Predicate::covers(const Predicate& other) const { return cover({this, 1}, other); }

std::string Predicate::text() const {
  if (refresh) return "refresh";
  std::string text = training ? (evaluation ? "always" : "training")
                              : (evaluation ? "evaluation"
                                 : sync     ? "sync"
                                            : "never");
  if (sync && (training || evaluation)) text += " and sync";
  if (every > 1) {
    text += (between ? ", but every " : ", every ") + std::to_string(every) + " steps";
  }
  if (from_step > 0) text += ", from step " + std::to_string(from_step);
  if (until_step != kForever) text += ", before step " + std::to_string(until_step);
  if (flag != kNoFlag) {
    text += std::string(flag_value ? ", with flag " : ", without flag ") + std::to_string(flag);
  }
  if (fetch_only) text += ", when fetching";
  return text;
}

bool cover(std::span<const Predicate> any, const Predicate& other) {
  std::vector<Predicate> all(any.begin(), any.end());
  all.push_back(other);
  return always(all, [&](const StepInfo& info) {
    const auto holds = [&](const Predicate& predicate) { return predicate.holds(info); };
    return !other.holds(info) || std::any_of(any.begin(), any.end(), holds);
  });
}

bool exclude(const Predicate& a, const Predicate& b) {
  const Predicate both[] = {a, b};
  return always(both, [&](const StepInfo& info) { return !(a.holds(info) && b.holds(info)); });
}

}  // namespace fleet
