#include "graph/predicate.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

#include "base/error.h"

namespace fleet {
namespace {

// Adds one step of [begin, end) for each combination of `periods` that can divide a step number
// (counted from 1) there.
void add_steps(const std::vector<int64_t>& periods, int64_t begin, int64_t end,
               std::vector<int64_t>* steps) {
  const size_t combinations = size_t{1} << periods.size();
  for (size_t wanted = 0; wanted < combinations; ++wanted) {
    int64_t stride = 1;
    bool too_far = false;
    for (size_t i = 0; i < periods.size(); ++i) {
      const int64_t factor = periods[i] / std::gcd(stride, periods[i]);
      if (wanted >> i & 1) too_far |= __builtin_mul_overflow(stride, factor, &stride);
    }
    if (too_far || stride > end) continue;
    // If k periods leave out any multiple of the stride, they leave out one of every 2^k
    // consecutive ones (Crittenden and Vanden Eynden, 1970). This many tries find it, or none
    // exists.
    int64_t number = begin / stride * stride;  // a multiple of the stride, not above `begin`
    for (size_t tries = 0; tries < combinations && number <= end - stride; ++tries) {
      number += stride;
      size_t divides = 0;
      for (size_t i = 0; i < periods.size(); ++i) {
        divides |= size_t{number % periods[i] == 0} << i;
      }
      if (divides != wanted) continue;
      steps->push_back(number - 1);
      break;
    }
  }
}

// A representative set of training steps: between two steps at which a range begins or ends, one
// for each combination of periods.
std::vector<int64_t> distinguishing_steps(std::span<const Predicate> predicates) {
  std::set<int64_t> edges = {0, kForever}, periods;
  for (const Predicate& predicate : predicates) {
    if (predicate.every > 1) periods.insert(predicate.every);
    edges.insert(std::max<int64_t>(predicate.from_step, 0));
    edges.insert(std::max<int64_t>(predicate.until_step, 0));
  }
  FLEET_CHECK(periods.size() <= 12, "too many periods among sections that share a variable");
  std::vector<int64_t> steps;
  for (auto edge = edges.begin(); std::next(edge) != edges.end(); ++edge) {
    add_steps({periods.begin(), periods.end()}, *edge, *std::next(edge), &steps);
  }
  return steps;
}

// Every combination of the predicates' flags.
std::vector<uint64_t> distinguishing_flags(std::span<const Predicate> predicates) {
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

// Whether `holds` is true in every run that the predicates can distinguish.
bool always(std::span<const Predicate> predicates,
            const std::function<bool(const StepInfo&)>& holds) {
  for (const bool fetch : {false, true}) {
    if (!holds({.evaluate = true, .fetch = fetch})) return false;
  }
  if (!holds({.refresh = true}) || !holds({.sync = true})) return false;
  const std::vector<uint64_t> flags = distinguishing_flags(predicates);
  for (const int64_t step : distinguishing_steps(predicates)) {
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
  const bool trains =
      training && !(between && every == 1) && std::max<int64_t>(from_step, 0) < until_step;
  std::string text = trains ? (evaluation ? "always" : "training")
                            : (evaluation ? "evaluation"
                               : sync     ? "sync"
                                          : "never");
  if (sync && (trains || evaluation)) text += " and sync";
  if (trains) {
    if (every > 1) {
      text += (between ? ", except every " : ", every ") + std::to_string(every) + " steps";
    }
    if (from_step > 0) text += ", from step " + std::to_string(from_step);
    if (until_step != kForever) text += ", before step " + std::to_string(until_step);
    if (flag != kNoFlag) {
      text += std::string(flag_value ? ", with flag " : ", without flag ") + std::to_string(flag);
    }
  }
  if (fetch_only && (trains || evaluation)) text += ", when fetching";
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
