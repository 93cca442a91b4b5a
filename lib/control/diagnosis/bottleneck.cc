#include "diagnosis/bottleneck.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "diagnosis/bottleneck_actions.h"

namespace fleet {
namespace {

using wire::Bottleneck;
using wire::Cause;

// The lower median: with two ranks, the faster one sets the expectation.
template <typename Value>
double median_of(const std::vector<const RankTimes*>& ranks, Value value) {
  std::vector<double> all;
  for (const RankTimes* rank : ranks) all.push_back(value(*rank));
  const auto middle = all.begin() + static_cast<ptrdiff_t>((all.size() - 1) / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

constexpr double kMinLost = 0.15;      // a healthy job loses less of its step
constexpr double kMinShare = 0.10;     // a cause takes at least this part of the step
constexpr double kMinExplained = 0.8;  // and, alone or with a second one, this part of the loss
constexpr double kMinExcess = 0.2;     // a straggler needs this much more time than the others
constexpr double kSomeDelay = 0.05;
// Other processes that use more of the busy time of a rank's cores delay its data threads as well.
constexpr double kManyOthers = 0.25;
// Data threads take cores away if they work for at least this part of the wait for cores.
constexpr double kMinDataWork = 0.5;
// If all ranks wait for input or cores, one that waits up to this many times as long is not a
// straggler.
constexpr double kStragglerWait = 2;

// CPU time of the data threads. They may wait for cores while they work, so it is at most what the
// rank has used.
double data_work(const RankTimes& rank) {
  return rank.data_threads > 0 ? std::min(rank.making - rank.reading, rank.cpu) : 0;
}

std::string line_of(const Bottleneck& bottleneck) {
  if (bottleneck.causes().empty())
    return "no bottleneck: " + percent_text(bottleneck.compute()) + " of the step is computing";
  std::string line = "bottleneck: ";
  for (int i = 0; i < bottleneck.causes_size(); ++i) {
    const Cause& cause = bottleneck.causes(i);
    if (i > 0) line += "; and ";
    line += std::string(name_of(cause.kind())) +
            (cause.has_rank() ? " (rank " + std::to_string(cause.rank()) + ")" : "") +
            (cause.has_server() ? " (server " + std::to_string(cause.server()) + ")" : "") + ", " +
            percent_text(cause.share()) + " of the step: " + cause.action();
  }
  return line;
}

// A step of the job, divided.
class Division {
 public:
  Division(const std::vector<RankTimes>& ranks, int nnodes, std::vector<ServerTimes> servers)
      : nnodes_(nnodes), servers_(std::move(servers)) {
    for (const RankTimes& rank : ranks) all_.push_back(&rank);
    step_ = median_of(all_, [](const RankTimes& rank) { return rank.step; });
    typical_ = *std::ranges::min_element(all_, {}, [&](const RankTimes* rank) {
      return std::abs(rank->own() -
                      median_of(all_, [](const RankTimes& one) { return one.own(); }));
    });
    divide_exchanges();
    divide_servers();
    divide_waiting();
  }

  Bottleneck result() {
    Bottleneck result;
    double lost = 0;
    for (const Cause& cause : causes_) lost += cause.share();
    result.set_compute(std::clamp(1 - lost, 0.0, 1.0));
    std::ranges::sort(causes_, std::greater(), &Cause::share);
    double explained = 0;
    for (int i = 0; i < 2 && i < static_cast<int>(causes_.size()); ++i) {
      const Cause& cause = causes_[static_cast<size_t>(i)];
      if (lost < kMinLost || cause.share() < kMinShare) break;
      if (explained >= kMinExplained * lost) break;
      explained += cause.share();
      *result.add_causes() = cause;
    }
    if (explained < kMinExplained * lost) result.clear_causes();
    result.set_line(line_of(result));
    return result;
  }

 private:
  // The time that the ranks lose to each other. The slowest one waits least; what it still waits is
  // the exchange itself.
  void divide_exchanges() {
    const bool together = all_.size() > 1 || !servers_.empty();
    const bool known = together && std::ranges::all_of(all_, [](const RankTimes* rank) {
                         return rank->exposed.has_value();
                       });
    if (!known) return;
    const RankTimes& slowest =
        **std::ranges::max_element(all_, {}, [](const RankTimes* rank) { return rank->own(); });
    exchange_ = *slowest.exposed;
    skew_ = std::max(0.0, exchange_ - slowest.exchange);
    const double usual = median_of(all_, [](const RankTimes& rank) { return rank.own(); });
    const double excess = slowest.own() - usual;
    if (excess < kMinExcess * usual || excess < kMinShare * step_) return;
    const auto waits = [](const RankTimes& rank) { return rank.input + rank.delayed; };
    const double wait = median_of(all_, waits);
    if (waits(slowest) - wait >= excess / 2 && waits(slowest) < kStragglerWait * wait) {
      uneven_ = excess;
      return;
    }
    const double input = median_of(all_, [](const RankTimes& rank) { return rank.input; });
    add(Cause::STRAGGLER, excess, straggler_action(slowest, *typical_, input, excess));
    causes_.back().set_rank(slowest.rank);
  }

  // The part of the exchange that parameter servers take.
  void divide_servers() {
    for (ServerTimes& server : servers_) {
      const auto number = static_cast<size_t>(server.server);
      for (const RankTimes* rank : all_) {
        if (number >= rank->answers.size()) continue;
        server.answer =
            std::min(server.answer.value_or(rank->answers[number]), rank->answers[number]);
      }
    }
    for (ServerCause& one : server_causes(servers_, exchange_, step_)) {
      add(Cause::SERVER, one.time, std::move(one.action));
      if (one.server) causes_.back().set_server(*one.server);
      exchange_ -= one.time;
    }
    skew_ = std::min(skew_, exchange_);
  }

  // The time that a usual rank loses alone.
  void divide_waiting() {
    double input = median_of(all_, [](const RankTimes& rank) { return rank.input; });
    double delayed = median_of(all_, [](const RankTimes& rank) { return rank.delayed; });
    delayed = std::min(delayed, std::max(0.0, typical_->own() - input));
    const bool reads = typical_->mostly_reads();
    const bool decodes = input > delayed || data_work(*typical_) >= kMinDataWork * delayed;
    const bool few_others =
        !typical_->throttled && typical_->others && *typical_->others < kManyOthers;
    bool full = false;  // its data threads take the cores
    if (typical_->has_its_cores() && decodes) {
      // It waits for cores that its own data threads use.
      full = delayed >= kSomeDelay * step_;
      input += std::exchange(delayed, 0.0);
    } else if (delayed >= kMuchDelay * step_ && !reads && !(few_others && input > delayed)) {
      // A quota, or other processes, slow the data threads down as well.
      delayed += std::exchange(input, 0.0);
    }
    (input > 0 ? input : delayed) += uneven_;
    // Ranks without a core, or with late batches, reach their collectives at different times: what
    // they then wait for each other has the same causes.
    if (delayed >= kSomeDelay * step_ || input >= kMuchDelay * step_) {
      const double scale = 1 + skew_ / (delayed + input);
      delayed *= scale;
      input *= scale;
      exchange_ -= skew_;
    }
    add(Cause::COMMUNICATION, exchange_, communication_action(*typical_, nnodes_));
    add(Cause::HOST, delayed, host_action(*typical_));
    RankTimes waiting = *typical_;
    waiting.input = std::min(input, waiting.step);
    if (input > 0) add(Cause::INPUT, input, input_action(waiting, full));
  }

  void add(Cause::Kind kind, double time, std::string action) {
    Cause& cause = causes_.emplace_back();
    cause.set_kind(kind);
    cause.set_share(std::clamp(time / step_, 0.0, 1.0));
    cause.set_action(std::move(action));
  }

  const int nnodes_;
  std::vector<ServerTimes> servers_;
  std::vector<const RankTimes*> all_;
  double step_ = 0;
  double exchange_ = 0;  // the time that even the slowest rank waits in collectives
  double skew_ = 0;      // the part of it that is due to ranks arriving at different times
  // How much longer than the others the slowest rank waits for batches and cores.
  double uneven_ = 0;
  const RankTimes* typical_ = nullptr;
  std::vector<Cause> causes_;
};

}  // namespace

const char* name_of(Cause::Kind kind) {
  constexpr const char* kNames[] = {"input", "communication", "straggler", "host", "server"};
  return kNames[kind];
}

std::optional<Bottleneck> find_bottleneck(const std::vector<RankTimes>& ranks, int nnodes,
                                          std::vector<ServerTimes> servers) {
  if (ranks.empty()) return std::nullopt;
  return Division(ranks, nnodes, std::move(servers)).result();
}

void BottleneckAnalyzer::begin(int nnodes, Time now) {
  ranks_.clear();
  servers_.begin();
  nnodes_ = nnodes;
  period_end_ = now + kPeriod;
}

std::optional<std::string> BottleneckAnalyzer::update(const StepReport& reports, Time now) {
  for (const RankUsage& report : reports.usage()) {
    if (!report.server()) ranks_[report.rank()].usage = report;
  }
  for (const RankSteps& report : reports.ranks()) {
    Rank& rank = ranks_[report.rank()];
    if (rank.steps && report.steps() < rank.steps->steps()) rank = {.usage = rank.usage};
    const bool warm = rank.steps.has_value();  // the first steps take longer
    rank.steps = report;
    if (!warm || !rank.usage || rank.first) continue;
    rank.first = rank.before = rank.current = RankPoint{*rank.steps, *rank.usage};
  }
  servers_.update(reports);
  if (now < period_end_) return std::nullopt;
  const std::optional<Bottleneck> minute = since(&Rank::current, ServerReports::kMinute);
  servers_.next_minute();
  for (auto& [number, rank] : ranks_) {
    if (!rank.first) continue;
    rank.before = rank.current;
    rank.current = RankPoint{*rank.steps, *rank.usage};
  }
  period_end_ = now + kPeriod;
  if (!minute || minute->causes().empty()) return std::nullopt;
  return minute->line();
}

std::optional<Bottleneck> BottleneckAnalyzer::recent() const {
  return since(&Rank::before, ServerReports::kRecent);
}

std::optional<Bottleneck> BottleneckAnalyzer::overall() const {
  return since(&Rank::first, ServerReports::kOverall);
}

std::optional<Bottleneck> BottleneckAnalyzer::since(std::optional<RankPoint> Rank::*from,
                                                    ServerReports::Period period) const {
  std::vector<RankTimes> measured;
  for (const auto& [number, rank] : ranks_) {
    const std::optional<RankPoint>& point = rank.*from;
    if (!point) continue;
    if (auto one = rank_times(*point, {*rank.steps, *rank.usage}))
      measured.push_back(*std::move(one));
  }
  return find_bottleneck(measured, nnodes_, servers_.times(period));
}

Json bottleneck_json(const wire::Bottleneck& bottleneck) {
  Json causes = Json::array();
  for (const wire::Cause& cause : bottleneck.causes()) {
    Json one = {{"kind", name_of(cause.kind())},
                {"share", cause.share()},
                {"rank", cause.has_rank() ? Json(cause.rank()) : Json(nullptr)},
                {"action", cause.action()}};
    if (cause.has_server()) one["server"] = cause.server();
    causes.push_back(std::move(one));
  }
  return {{"line", bottleneck.line()}, {"compute", bottleneck.compute()}, {"causes", causes}};
}

}  // namespace fleet
