#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "cost/step_time.h"
#include "ops/collective.h"

namespace fleet {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kMinShare = 0.01;  // share of a core that computation keeps
constexpr double kNothing = 1e-12;  // seconds: less work than this has ended

// The operations of one stream of a rank.
struct Lane {
  std::vector<const ScheduledOp*> queue = {};
  size_t next = 0;       // the first that has not ended
  bool running = false;  // whether that one has begun
  bool computes = true;  // false: a collective
  double left = 0;       // work of that one, if it computes
};

struct RankState {
  std::vector<Lane> lanes = {};
  std::vector<bool> ended = {};               // by index in Plan::ops
  std::map<GroupId, int> issued = {};         // collectives of each group
  std::vector<std::string> group_names = {};  // unique in the Plan, the same on each rank
  double link = 0;                            // when the links are free
  RankTimeline times = {};
};

// A collective and those of its ranks that are simulated.
struct Transfer {
  struct Member {
    size_t rank, lane;
  };
  std::vector<Member> members = {};
  size_t expected = 1;
  double seconds = 0, delay = 0, busy = 0;
  bool between_two = false;
  bool done = false;
  double moves = 0, end = 0;  // it needs cores in between
};

class Simulation {
 public:
  explicit Simulation(std::vector<RankSchedule> ranks)
      : ranks_(std::move(ranks)), states_(ranks_.size()) {
    for (size_t r = 0; r < ranks_.size(); ++r) prepare(r);
  }

  std::vector<RankTimeline> run() {
    for (;;) {
      start_ready();
      const double next = next_event();
      if (next == kNever) break;
      advance(next);
    }
    std::vector<RankTimeline> times;
    for (const RankState& state : states_) {
      for (const Lane& lane : state.lanes) {
        FLEET_CHECK(lane.next == lane.queue.size(),
                    "the Plans of these ranks wait for each other forever");
      }
      times.push_back(state.times);
    }
    return times;
  }

 private:
  void prepare(size_t r) {
    const Plan& plan = *ranks_[r].plan;
    RankState& state = states_[r];
    state.lanes.resize(static_cast<size_t>(plan.streams()));
    state.ended.resize(plan.ops.size());
    for (const ScheduledOp& scheduled : ranks_[r].schedule) {
      state.lanes[static_cast<size_t>(plan.ops[scheduled.op].op.stream)].queue.push_back(
          &scheduled);
    }
    std::map<std::string, int> same;
    for (const RankGroup& group : plan.program.groups()) {
      const std::string text = group.text();
      state.group_names.push_back(text + "/" + std::to_string(same[text]++));
    }
  }

  const Op& op_of(size_t r, const ScheduledOp& scheduled) const {
    return ranks_[r].plan->ops[scheduled.op].op;
  }

  bool can_start(const RankState& state, const Lane& lane) const {
    if (lane.running || lane.next == lane.queue.size()) return false;
    const std::vector<int>& waits = lane.queue[lane.next]->waits;
    return std::all_of(waits.begin(), waits.end(), [&](int wait) { return state.ended[wait]; });
  }

  void start_ready() {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (size_t l = 0; l < states_[r].lanes.size(); ++l) {
        if (can_start(states_[r], states_[r].lanes[l])) start(r, l);
      }
    }
  }

  void start(size_t r, size_t l) {
    Lane& lane = states_[r].lanes[l];
    const ScheduledOp& scheduled = *lane.queue[lane.next];
    const TimedOp& timed = (*ranks_[r].ops)[scheduled.op];
    lane.running = true;
    lane.computes = !is_collective(op_of(r, scheduled));
    if (!lane.computes) return arrive(r, l, timed);
    lane.left = timed.seconds;
  }

  void arrive(size_t r, size_t l, const TimedOp& timed) {
    RankState& state = states_[r];
    const Op& op = op_of(r, *state.lanes[l].queue[state.lanes[l].next]);
    const auto group = static_cast<GroupId>(op.attributes.integer("communicator"));
    const int number = state.issued[group]++;
    const auto [found, is_new] = meetings_.try_emplace(
        {state.group_names[static_cast<size_t>(group)], number}, transfers_.size());
    if (is_new) {
      transfers_.push_back({.expected = simulated(r, group),
                            .between_two = op.type() == "send" || op.type() == "recv"});
    }
    Transfer& transfer = transfers_[found->second];
    transfer.members.push_back({r, l});
    transfer.seconds = std::max(transfer.seconds, timed.seconds);
    transfer.delay = std::max(transfer.delay, timed.delay);
    transfer.busy = std::max(transfer.busy, timed.busy);
    if (transfer.members.size() == transfer.expected) begin(found->second);
  }

  size_t simulated(size_t r, GroupId id) const {
    const std::vector<int>& group = ranks_[r].plan->program.groups()[static_cast<size_t>(id)].ranks;
    const auto count = std::count_if(ranks_.begin(), ranks_.end(), [&](const RankSchedule& one) {
      return std::find(group.begin(), group.end(), one.rank) != group.end();
    });
    return static_cast<size_t>(std::max<std::ptrdiff_t>(count, 1));
  }

  void begin(size_t index) {
    Transfer& transfer = transfers_[index];
    transfer.end = now_ + transfer.seconds;
    if (!transfer.between_two) {
      // Messages of several communicators share the links: only their delays pass at once.
      for (const Transfer::Member& member : transfer.members) {
        transfer.end =
            std::max(transfer.end, states_[member.rank].link + transfer.seconds - transfer.delay);
      }
      for (const Transfer::Member& member : transfer.members) {
        states_[member.rank].link = transfer.end;
      }
    }
    // It moves in the last of its seconds; before, it waits for the link.
    transfer.moves = std::max(now_, transfer.end - transfer.seconds);
    active_.push_back(index);
  }

  // The part of full speed at which a rank computes now.
  double speed(size_t r) const {
    double lost = 0;
    for (const size_t index : active_) {
      const Transfer& transfer = transfers_[index];
      if (transfer.moves > now_ || transfer.seconds <= 0) continue;
      for (const Transfer::Member& member : transfer.members) {
        if (member.rank == r) lost += transfer.busy / transfer.seconds / ranks_[r].threads;
      }
    }
    return std::max(1 - lost, kMinShare);
  }

  double next_event() const {
    double next = kNever;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const double rate = speed(r);
      for (const Lane& lane : states_[r].lanes) {
        if (lane.running && lane.computes) next = std::min(next, now_ + lane.left / rate);
      }
    }
    for (const size_t index : active_) {
      const Transfer& transfer = transfers_[index];
      next = std::min(next, transfer.moves > now_ ? transfer.moves : transfer.end);
    }
    return next;
  }

  void advance(double next) {
    const double seconds = next - now_;
    for (size_t r = 0; r < ranks_.size(); ++r) count(r, seconds);
    now_ = next;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (Lane& lane : states_[r].lanes) {
        if (lane.running && lane.computes && lane.left <= kNothing) finish(r, lane);
      }
    }
    for (const size_t index : active_) {
      Transfer& transfer = transfers_[index];
      if (transfer.end > now_) continue;
      transfer.done = true;
      for (const Transfer::Member& member : transfer.members) {
        finish(member.rank, states_[member.rank].lanes[member.lane]);
      }
    }
    std::erase_if(active_, [&](size_t index) { return transfers_[index].done; });
  }

  void count(size_t r, double seconds) {
    RankState& state = states_[r];
    const double rate = speed(r);
    bool computing = false;
    for (Lane& lane : state.lanes) {
      if (!lane.running || !lane.computes) continue;
      lane.left -= seconds * rate;
      computing = true;
    }
    if (computing) {
      state.times.compute += seconds * rate;
    } else if (!communicates(r)) {
      state.times.idle += seconds;
    }
  }

  bool communicates(size_t r) const {
    return std::any_of(active_.begin(), active_.end(), [&](size_t index) {
      const std::vector<Transfer::Member>& all = transfers_[index].members;
      return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.rank == r; });
    });
  }

  void finish(size_t r, Lane& lane) {
    states_[r].ended[lane.queue[lane.next]->op] = true;
    lane.running = false;
    ++lane.next;
    states_[r].times.end = now_;
  }

  const std::vector<RankSchedule> ranks_;
  std::vector<RankState> states_;
  std::vector<Transfer> transfers_;
  std::map<std::pair<std::string, int>, size_t> meetings_;  // by group and number: the transfer
  std::vector<size_t> active_;                              // transfers that have begun
  double now_ = 0;
};

}  // namespace

std::vector<RankTimeline> run_on_paper(std::vector<RankSchedule> ranks) {
  return Simulation(std::move(ranks)).run();
}

}  // namespace fleet
