#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <set>

#include "exec/assignment.h"
#include "exec/backend.h"
#include "exec/compute_rates.h"
#include "exec/stream_order.h"
#include "ops/collective.h"
#include "tensor/device.h"

namespace fleet {
namespace {

// A region must be estimated this much faster: estimates of single operations are rough, and only
// those of all cores do not depend on how well they fit each other.
constexpr double kMargin = 1.1;

// Operations of one region in the order of their starts, and the stream of each.
struct RegionSchedule {
  double seconds = 0;
  std::vector<std::pair<int, int>> ops;  // operation, lane: an index in Plan::compute_streams
};

class StreamAssigner {
 public:
  StreamAssigner(Plan& plan, const PlanOptions& options, int lanes)
      : plan_(plan),
        options_(options),
        lanes_(lanes),
        rates_(backend_def(options.backend).rates(cores_of(options))),
        before_(find_predecessors(plan)) {
    for (int i = 0; i < count(); ++i) {
      const OpWork work = work_of(plan.program, plan.ops[i].op);
      alone_.push_back(rates_.seconds(work, rates_.parts));
      shared_.push_back(rates_.seconds(work, rates_.share(lanes)));
      barred_.push_back(is_collective(plan.ops[i].op));
    }
  }

  // Returns false if no region pays. longest: operations of a region.
  bool assign(int longest) {
    for (;;) {
      const std::vector<std::pair<int, int>> regions = find_regions(longest);
      if (regions.empty()) return false;
      std::vector<RegionSchedule> schedules;
      for (const auto& [begin, end] : regions) schedules.push_back(schedule(begin, end));
      if (!share_device(schedules)) continue;  // some operations cannot be in regions
      apply(regions, schedules);
      return true;
    }
  }

 private:
  static int cores_of(const PlanOptions& options) {
    const auto* sharing = dynamic_cast<const CoreSharing*>(options.device);
    return sharing ? sharing->cores() : options.compute_streams;
  }

  int count() const { return static_cast<int>(plan_.ops.size()); }
  const Op& op(int i) const { return plan_.ops[i].op; }
  bool computes(int i) const { return op(i).stream == 0; }

  // Splits the order into single operations and regions such that the sum of their times is least.
  std::vector<std::pair<int, int>> find_regions(int longest) const {
    const int n = count();
    std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
    std::vector<int> from(n + 1, -1);  // where the part begins that ends here
    best[0] = 0;
    for (int i = 0; i < n; ++i) {
      const double alone = best[i] + (computes(i) ? alone_[i] : 0);
      if (alone <= best[i + 1]) {
        best[i + 1] = alone;
        from[i + 1] = i;
      }
      if (computes(i)) extend(i, longest, best, from);
    }
    std::vector<std::pair<int, int>> regions;
    for (int end = n; end > 0; end = from[end]) {
      if (end - from[end] > 1) regions.emplace_back(from[end], end);
    }
    std::reverse(regions.begin(), regions.end());
    return regions;
  }

  // Tries all regions that begin at `begin`. Operations go to the stream where they can start
  // first, in the Plan's order, so that longer regions continue shorter ones.
  void extend(int begin, int longest, std::vector<double>& best, std::vector<int>& from) const {
    std::vector<double> free(lanes_);
    ends_.resize(count());
    lane_of_.resize(count());
    double last = 0;
    int inside = 0;
    for (int i = begin; i < count() && inside < longest; ++i) {
      if (!computes(i)) continue;
      if (barred_[i] || op(i).section != op(begin).section) break;
      if (!place(begin, i, free)) break;
      last = std::max(last, ends_[i]);
      if (++inside < 2) continue;
      const double seconds = best[begin] + 2 * rates_.join + kMargin * last;
      if (seconds < best[i + 1]) {
        best[i + 1] = seconds;
        from[i + 1] = begin;
      }
    }
  }

  // Puts the operation on the lane where it ends first. False if it waits for one of the region
  // that does not compute.
  bool place(int begin, int i, std::vector<double>& free) const {
    for (const Predecessor& other : before_[i]) {
      if (other.op >= begin && !computes(other.op)) return false;
    }
    int chosen = 0;
    double end = std::numeric_limits<double>::infinity();
    for (int lane = 0; lane < lanes_; ++lane) {
      const double ends = end_on(lane, begin, i, free[lane]);
      if (ends >= end) continue;
      end = ends;
      chosen = lane;
    }
    lane_of_[i] = chosen;
    ends_[i] = free[chosen] = end;
    return true;
  }

  // When the operation ends on a lane: what another core wrote has to come from there.
  double end_on(int lane, int begin, int i, double free) const {
    double start = free, fetched = 0;
    for (const Predecessor& other : before_[i]) {
      if (other.op < begin) continue;
      const bool here = lane_of_[other.op] == lane;
      start = std::max(start, ends_[other.op] + (here ? 0 : rates_.hand_over));
      if (!here) fetched += other.bytes;
    }
    return start + fetched / rates_.exchange + shared_[i];
  }

  // The operations of a region that compute, each after those it needs.
  RegionSchedule schedule(int begin, int end) const {
    std::vector<int> members, waits(end - begin);
    std::vector<std::vector<int>> after(end - begin);  // those that need it
    for (int i = begin; i < end; ++i) {
      if (!computes(i)) continue;
      members.push_back(i);
      for (const Predecessor& other : before_[i]) {
        if (other.op < begin) continue;
        ++waits[i - begin];
        after[other.op - begin].push_back(i);
      }
    }
    if (options_.shuffle) return shuffled(begin, members, waits, after);
    std::vector<double> path(end - begin);  // from its start to the region's end
    for (int i = end - 1; i >= begin; --i) {
      for (int next : after[i - begin])
        path[i - begin] = std::max(path[i - begin], path[next - begin]);
      path[i - begin] += shared_[i];
    }
    RegionSchedule by_path, in_order;
    std::vector<double> free(lanes_);
    for (int i : members) {
      place(begin, i, free);
      add(i, in_order);
    }
    free.assign(lanes_, 0);
    std::vector<int> ready;
    for (int i : members) {
      if (waits[i - begin] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      // The stream that is free first takes the operation with the longest path among those that
      // can start by then, or else the one that can start first.
      const double now = *std::min_element(free.begin(), free.end());
      const auto better = [&](int a, int b) {
        const double start_a = std::max(now, earliest(begin, a));
        const double start_b = std::max(now, earliest(begin, b));
        if (start_a != start_b) return start_a < start_b;
        if (path[a - begin] != path[b - begin]) return path[a - begin] > path[b - begin];
        return a < b;
      };
      const auto next = std::min_element(ready.begin(), ready.end(), better);
      const int i = *next;
      ready.erase(next);
      place(begin, i, free);
      add(i, by_path);
      for (int later : after[i - begin]) {
        if (--waits[later - begin] == 0) ready.push_back(later);
      }
    }
    return by_path.seconds < in_order.seconds ? by_path : in_order;
  }

  double earliest(int begin, int i) const {
    double ready = 0;
    for (const Predecessor& other : before_[i]) {
      if (other.op >= begin) ready = std::max(ready, ends_[other.op]);
    }
    return ready;
  }

  void add(int i, RegionSchedule& region) const {
    region.ops.emplace_back(i, lane_of_[i]);
    region.seconds = std::max(region.seconds, ends_[i]);
  }

  RegionSchedule shuffled(int begin, const std::vector<int>& members, std::vector<int> waits,
                          const std::vector<std::vector<int>>& after) const {
    std::mt19937_64 random(*options_.shuffle * 7919 + begin);
    RegionSchedule region;
    std::vector<int> ready;
    for (int i : members) {
      if (waits[i - begin] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      std::swap(ready[random() % ready.size()], ready.back());
      const int i = ready.back();
      ready.pop_back();
      region.ops.emplace_back(i, static_cast<int>(random() % lanes_));
      for (int later : after[i - begin]) {
        if (--waits[later - begin] == 0) ready.push_back(later);
      }
    }
    return region;
  }

  // Asks the kernels for the workspace that they need with a share of the cores. One that wants
  // other layouts then, of which others already know, is barred from regions: returns false.
  bool share_device(const std::vector<RegionSchedule>& schedules) {
    auto* sharing = dynamic_cast<CoreSharing*>(options_.device);
    if (!sharing) return true;
    bool all = true;
    for (const RegionSchedule& region : schedules) {
      for (const auto& [i, lane] : region.ops) {
        if (asked_.contains(i)) continue;
        asked_.insert(i);
        sharing->with_share(lanes_, [&, i = i] { barred_[i] = !ask(plan_.ops[i]); });
        all = all && !barred_[i];
      }
    }
    return all;
  }

  // Whether the kernel keeps its layouts.
  bool ask(PlannedOp& planned) const {
    if (!planned.kernel->layouts) return true;
    const auto known = [](const std::vector<Layout>& layouts) {
      return std::vector<std::optional<Layout>>(layouts.begin(), layouts.end());
    };
    LayoutQuery query(plan_.program, planned.op, known(planned.input_layouts),
                      known(planned.output_layouts), options_.device);
    planned.kernel->layouts(query);
    for (size_t i = 0; i < planned.op.inputs.size(); ++i) {
      if (planned.op.inputs[i] == kNoVar) continue;
      if (query.needed(static_cast<int>(i)) != planned.input_layouts[i]) return false;
    }
    for (size_t i = 0; i < planned.op.outputs.size(); ++i) {
      if (planned.op.outputs[i] == kNoVar) continue;
      if (query.given(static_cast<int>(i)) != planned.output_layouts[i]) return false;
    }
    planned.workspace = std::max(planned.workspace, query.workspace());
    return true;
  }

  // Puts the operations into the order of their regions. Those that do not compute follow, in their
  // own order, as soon as their inputs are ready.
  void apply(const std::vector<std::pair<int, int>>& regions,
             const std::vector<RegionSchedule>& schedules) {
    int streams = 0;
    for (const PlannedOp& planned : plan_.ops) streams = std::max(streams, planned.op.stream + 1);
    std::vector<int> order;
    std::vector<bool> done(count());
    const auto put = [&](int i) {
      order.push_back(i);
      done[i] = true;
    };
    int next = 0;
    for (size_t r = 0; r < regions.size(); ++r) {
      const auto [begin, end] = regions[r];
      while (next < begin) put(next++);
      std::vector<int> others;
      for (int i = begin; i < end; ++i) {
        if (!computes(i)) others.push_back(i);
      }
      size_t taken = 0;
      for (const auto& [i, lane] : schedules[r].ops) {
        PlannedOp& planned = plan_.ops[i];
        planned.region = static_cast<int>(r);
        if (lane > 0) planned.op.stream = streams + lane - 1;
        put(i);
        while (taken < others.size() && ready(others[taken], done)) put(others[taken++]);
      }
      while (taken < others.size()) put(others[taken++]);
      next = end;
    }
    while (next < count()) put(next++);
    std::vector<PlannedOp> ops;
    for (int i : order) ops.push_back(std::move(plan_.ops[i]));
    plan_.ops = std::move(ops);
    for (int lane = 1; lane < lanes_; ++lane) {
      plan_.compute_streams.push_back(streams + lane - 1);
    }
  }

  bool ready(int i, const std::vector<bool>& done) const {
    return std::all_of(before_[i].begin(), before_[i].end(),
                       [&](const Predecessor& other) { return done[other.op]; });
  }

  Plan& plan_;
  const PlanOptions& options_;
  const int lanes_;
  const ComputeRates rates_;
  const std::vector<std::vector<Predecessor>> before_;  // what each operation needs, directly
  std::vector<double> alone_, shared_;  // seconds with the whole device, or with a share of it
  std::vector<bool> barred_;            // from regions
  std::set<int> asked_;
  mutable std::vector<double> ends_;  // in the schedule that is being made
  mutable std::vector<int> lane_of_;
};

}  // namespace

Plan assign_streams(const Plan& plan, const std::vector<VarId>& keep, const PlanOptions& options) {
  Plan single = plan;
  assign_memory(single, keep);
  const size_t bytes = single.one_stream_bytes = single.memory().total();
  const auto* sharing = dynamic_cast<const CoreSharing*>(options.device);
  const int lanes =
      sharing ? std::min(options.compute_streams, sharing->max_streams()) : options.compute_streams;
  if (lanes < 2) return single;
  const size_t more = std::max(
      kParallelMemoryBytes, static_cast<size_t>(kParallelMemoryShare * static_cast<double>(bytes)));
  for (const int longest : {128, 32, 8}) {
    Plan parallel = plan;
    if (!StreamAssigner(parallel, options, lanes).assign(longest)) break;
    assign_memory(parallel, keep);
    parallel.one_stream_bytes = bytes;
    if (options.shuffle || parallel.memory().total() <= bytes + more) return parallel;
  }
  return single;
}

}  // namespace fleet
