#include "diagnosis/bottleneck.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/number_text.h"
#include "base/text.h"

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

std::string percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

std::string label(const RankTimes& rank) {
  return "rank " + std::to_string(rank.rank) + " (local rank " + std::to_string(rank.local_rank) +
         ") on node " + std::to_string(rank.node_rank);
}

// What users of the engine can do. No other line of this module names its settings.
constexpr struct {
  const char* prefetch = "set data.async to true";
  const char* data_threads = "data.threads ";  // 2 -> 4
  const char* decode_less = "decode less (data.cache=decoded, or smaller images by fleetrun pack)";
  const char* send_less =
      "strategy.fp16_allreduce halves the bytes sent, strategy.gradient_merge sends less often";
  const char* exchange_less_often =
      "a larger data.batch_size, or strategy.gradient_merge, exchanges gradients less often";
  const char* fewer_threads = "start fewer ranks or threads (OMP_NUM_THREADS, data.threads)";
} kRemedies;
// What users of other programs can do.
constexpr struct {
  const char* prefetch =
      "load batches in more processes (num_workers of a DataLoader), or from a faster disk";
  const char* send_less =
      "send less (gradients in 16 bits), or exchange gradients less often (accumulate them)";
  const char* fewer_threads = "start fewer ranks or threads (OMP_NUM_THREADS)";
} kProgramRemedies;

std::string fewer_threads(const RankTimes& rank) {
  return rank.reported ? kProgramRemedies.fewer_threads : kRemedies.fewer_threads;
}

constexpr double kMinLost = 0.15;      // a healthy job loses less of its step
constexpr double kMinShare = 0.10;     // a cause takes at least this part of the step
constexpr double kMinExplained = 0.8;  // and, alone or with a second one, this part of the loss
constexpr double kMinExcess = 0.2;     // a straggler needs this much more time than the others
constexpr double kMinSteps = 5;        // measured over at least this many steps
constexpr std::chrono::seconds kMinTime{5};  // and this long
constexpr double kMostlyReading = 0.5, kMuchDelay = 0.1, kSomeDelay = 0.05;
// Other processes that use less of the busy time of a rank's cores keep it from nothing; those that
// use more than the second part delay its data threads as well.
constexpr double kOthers = 0.1, kManyOthers = 0.25;
// If that is unknown: a rank that gets less of its cores shares them with other processes.
constexpr double kOwnCores = 0.75;
// Data threads take cores away if they work for at least this part of the wait for cores.
constexpr double kMinDataWork = 0.5;
// A quota is to blame if it stops threads for at least this part of the wait for cores.
constexpr double kQuotaPart = 0.1;
// If all ranks wait for input or cores, one that waits up to this many times as long is no
// straggler.
constexpr double kStragglerWait = 2;
// Data threads that are always busy make batches a little late all the same.
constexpr double kSpare = 1.1;

// Whether a rank's cores are used by the job's own threads alone.
bool has_its_cores(const RankTimes& rank) {
  if (rank.throttled) return false;
  if (rank.others) return *rank.others < kOthers;
  return rank.cpu >= kOwnCores * rank.cores * rank.step;
}

// CPU time of the data threads. They may wait for cores while they work, so it is at most what the
// rank has used.
double data_work(const RankTimes& rank) {
  return rank.data_threads > 0 ? std::min(rank.making - rank.reading, rank.cpu) : 0;
}

// What to do about a rank that waits for its batches. `full`: its threads wait for its cores.
std::string input_action(const RankTimes& rank, bool full = false) {
  if (rank.reported) return kProgramRemedies.prefetch;
  const double left = rank.step - rank.input;  // in which the next batch has to be made
  const double share = rank.input / rank.step;
  if (rank.data_threads == 0) {
    return std::string(kRemedies.prefetch) +
           ": batches are made while the model computes, which hides up to " +
           percent(std::min(share, left / rank.step)) + " of the step";
  }
  const bool reads = rank.making > 0 && rank.reading / rank.making >= kMostlyReading;
  const int most = reads ? 64 : std::max(static_cast<int>(rank.cores), 1);
  const int wanted = static_cast<int>(std::ceil(kSpare * rank.making / std::max(left, 1.0)));
  const int threads = std::min(wanted, most);
  std::string more;
  if (threads > rank.data_threads && !full) {
    const double rest = std::max(0.0, rank.making / threads - left);
    const double hidden = std::clamp((rank.input - rest) / rank.step, 0.0, share);
    more = kRemedies.data_threads + std::to_string(rank.data_threads) + " -> " +
           std::to_string(threads) + " would hide " + percent(hidden) + " of the step";
  }
  if (reads) {
    return "the data threads spend " + percent(rank.reading / rank.making) +
           " of their time reading: copy the data to a faster disk" +
           (more.empty() ? "" : ", or " + more);
  }
  if (!more.empty()) return more;
  return std::string("the data threads use all cores: ") + kRemedies.decode_less +
         ", or give each rank more cores";
}

std::string communication_action(const RankTimes& rank, int nnodes) {
  const std::string send_less = rank.reported ? kProgramRemedies.send_less : kRemedies.send_less;
  if (nnodes > 1) return send_less + "; or use a faster network";
  if (rank.reported) return send_less;
  return kRemedies.exchange_less_often;
}

// usual: a rank that is not slow.
std::string straggler_action(const RankTimes& rank, const RankTimes& usual, double usual_input,
                             double excess) {
  const std::string who = label(rank);
  if (rank.input - usual_input >= excess / 2) {
    return who + " waits for its input: look at its disk and its data; " + input_action(rank);
  }
  if (rank.delayed >= kMuchDelay * rank.step) {
    const std::string share = percent(rank.delayed / rank.step);
    if (rank.throttled) {
      return "the CPU quota of " + who + " stops it for " + share + " of its step: raise it";
    }
    if (has_its_cores(rank)) {
      return who + " runs more threads than it has cores, and has no core for " + share +
             " of its step: give it more cores, or " + fewer_threads(rank);
    }
    if (rank.nice > 0) {
      return who + " has no core for " + share + " of its step and runs with nice " +
             std::to_string(rank.nice) + ": renice it, or stop the other processes on its cores";
    }
    return who + " has no core for " + share +
           " of its step: stop the other processes on its cores";
  }
  // Under full load, a power limit lowers the clocks of healthy GPUs, too.
  if (!rank.slow_gpu.empty() && rank.slow_gpu != usual.slow_gpu) {
    return "the clock of the GPU of " + who + " is lowered (" + rank.slow_gpu +
           "): check its cooling and its power limit";
  }
  return "look at the clock rate, the memory and the cores of " + who + "; fleetrun stacks";
}

std::string host_action(const RankTimes& rank) {
  const std::string share = percent(rank.delayed / rank.step);
  if (rank.throttled) {
    return "the CPU quota of " + number_text(rank.quota, 3) + " cores stops the ranks for " +
           share + " of the step: raise it, or start fewer ranks";
  }
  if (has_its_cores(rank)) {
    return "the ranks run more threads than they have cores, and have no core for " + share +
           " of the step: " + fewer_threads(rank);
  }
  if (!rank.others) {
    return "the ranks have no core for " + share +
           " of the step: stop other processes on this host, or " + fewer_threads(rank);
  }
  return "the ranks have no core for " + share + " of the step, and other processes use " +
         percent(*rank.others) + " of the busy time of their cores: stop these, or " +
         fewer_threads(rank);
}

std::string line_of(const Bottleneck& bottleneck) {
  if (bottleneck.causes().empty())
    return "no bottleneck: " + percent(bottleneck.compute()) + " of the step is computing";
  std::string line = "bottleneck: ";
  for (int i = 0; i < bottleneck.causes_size(); ++i) {
    const Cause& cause = bottleneck.causes(i);
    if (i > 0) line += "; and ";
    line += std::string(name_of(cause.kind())) +
            (cause.has_rank() ? " (rank " + std::to_string(cause.rank()) + ")" : "") +
            (cause.has_server() ? " (server " + std::to_string(cause.server()) + ")" : "") + ", " +
            percent(cause.share()) + " of the step: " + cause.action();
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
  // What the ranks lose to each other. The slowest one waits least; what it still waits is the
  // exchange itself.
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

  // What a usual rank loses by itself.
  void divide_waiting() {
    double input = median_of(all_, [](const RankTimes& rank) { return rank.input; });
    double delayed = median_of(all_, [](const RankTimes& rank) { return rank.delayed; });
    delayed = std::min(delayed, std::max(0.0, typical_->own() - input));
    const bool reads =
        typical_->making > 0 && typical_->reading / typical_->making >= kMostlyReading;
    const bool decodes = input > delayed || data_work(*typical_) >= kMinDataWork * delayed;
    const bool few_others =
        !typical_->throttled && typical_->others && *typical_->others < kManyOthers;
    bool full = false;  // its data threads take the cores
    if (has_its_cores(*typical_) && decodes) {
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
  double exchange_ = 0;  // what even the slowest rank waits in collectives
  double skew_ = 0;      // of this: because ranks arrive at different times
  double uneven_ = 0;    // what the slowest rank waits longer for batches and cores than the others
  const RankTimes* typical_ = nullptr;
  std::vector<Cause> causes_;
};

// Copied from nvml.h; the ABI is stable.
constexpr uint64_t kPowerCap = 0x4, kHwSlowdown = 0x8, kSwThermal = 0x20, kHwThermal = 0x40,
                   kPowerBrake = 0x80;

}  // namespace

uint64_t slowing_reasons(uint64_t reasons) {
  return reasons & (kPowerCap | kHwSlowdown | kSwThermal | kHwThermal | kPowerBrake);
}

std::string throttle_text(uint64_t reasons) {
  std::vector<std::string> all;
  if (reasons & kPowerCap) all.push_back("power");
  if (reasons & (kSwThermal | kHwThermal)) all.push_back("heat");
  if (reasons & kPowerBrake) all.push_back("brake");
  if (all.empty() && (reasons & kHwSlowdown)) all.push_back("hardware");
  return join(all, "+");
}

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
    rank.first = rank.before = rank.current = Point{*rank.steps, *rank.usage};
  }
  servers_.update(reports);
  if (now < period_end_) return std::nullopt;
  const std::optional<Bottleneck> minute = since(&Rank::current, ServerReports::kMinute);
  servers_.next_minute();
  for (auto& [number, rank] : ranks_) {
    if (!rank.first) continue;
    rank.before = rank.current;
    rank.current = Point{*rank.steps, *rank.usage};
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

std::optional<RankTimes> BottleneckAnalyzer::times(const Rank& rank, const Point& from) const {
  const RankSteps &now = *rank.steps, &then = from.steps;
  const auto steps = static_cast<double>(now.steps() - then.steps());
  const std::chrono::nanoseconds passed(now.step_at_ns() - then.step_at_ns());
  if (steps < kMinSteps || passed < kMinTime) return std::nullopt;
  const auto a_step = [&](int64_t before, int64_t after) {
    return static_cast<double>(std::max<int64_t>(0, after - before)) / steps;
  };
  RankTimes times{.rank = now.rank(),
                  .local_rank = now.local_rank(),
                  .node_rank = now.node_rank(),
                  .step = a_step(then.step_ns(), now.step_ns()),
                  .input = a_step(then.input_ns(), now.input_ns())};
  if (times.step <= 0) return std::nullopt;
  if (now.has_exposed_ns()) times.exposed = a_step(then.exposed_ns(), now.exposed_ns());
  times.exchange = a_step(then.exchange_ns(), now.exchange_ns());
  times.making = a_step(then.making_ns(), now.making_ns());
  times.reading = a_step(then.reading_ns(), now.reading_ns());
  times.data_threads = now.data_threads();
  times.reported = now.reported();
  for (int s = 0; s < now.servers().answer_ns_size(); ++s) {
    const bool known = s < then.servers().answer_ns_size();
    times.answers.push_back(known ? a_step(then.servers().answer_ns(s), now.servers().answer_ns(s))
                                  : 0);
  }
  const RankUsage &usage = *rank.usage, &earlier = from.usage;
  const auto time = static_cast<double>(usage.at_ns() - earlier.at_ns());
  if (time > 0) {
    times.cpu = 1e6 * static_cast<double>(usage.cpu_ms() - earlier.cpu_ms()) / time * times.step;
    const auto delayed = static_cast<double>(usage.delayed_ns() - earlier.delayed_ns());
    times.delayed = std::clamp(delayed / time, 0.0, 1.0) * times.step;
    const auto stopped = static_cast<double>(usage.throttled_ns() - earlier.throttled_ns());
    times.throttled = usage.quota() > 0 && stopped > 0 && stopped >= kQuotaPart * delayed;
  }
  times.quota = usage.quota();
  const auto busy = static_cast<double>(usage.busy_ms() - earlier.busy_ms());
  const auto ours = static_cast<double>(usage.ours_ms() - earlier.ours_ms());
  if (busy > 0) times.others = std::clamp(1 - ours / busy, 0.0, 1.0);
  times.cores = usage.cores();
  times.nice = usage.nice();
  for (const wire::GpuUsage& gpu : usage.gpus()) {
    if (times.slow_gpu.empty()) times.slow_gpu = throttle_text(gpu.throttled());
  }
  return times;
}

std::optional<Bottleneck> BottleneckAnalyzer::since(std::optional<Point> Rank::*from,
                                                    ServerReports::Period period) const {
  std::vector<RankTimes> measured;
  for (const auto& [number, rank] : ranks_) {
    const std::optional<Point>& point = rank.*from;
    if (!point) continue;
    if (auto one = times(rank, *point)) measured.push_back(*std::move(one));
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
