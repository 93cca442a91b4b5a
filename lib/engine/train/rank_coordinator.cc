#include "train/rank_coordinator.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>
#include <optional>

#include "base/mutex.h"
#include "base/thread.h"
#include "comm/recorded_communicator.h"

namespace fleet {
namespace {

const CollectivePurpose kRequests("requests to stop or save"), kSums("metrics and results"),
    kMeeting("all ranks are here");

// Any other number stands for SIGTERM.
constexpr std::array kStopSignals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

size_t slot_of(int signal) {
  const auto found = std::find(kStopSignals.begin(), kStopSignals.end(), signal);
  return found == kStopSignals.end() ? 0 : found - kStopSignals.begin();
}

}  // namespace

RankCoordinator::RankCoordinator(Communicator* communicator, Actions actions)
    : actions_(actions), stream_(communicator ? "control" : "") {
  if (!communicator) return;
  std::vector<int> all(communicator->size());
  std::iota(all.begin(), all.end(), 0);
  communicator_ = communicator->split(all);
  communicator_->set_group_name("control");
}

RankCoordinator::~RankCoordinator() = default;

RankCoordinator::Request RankCoordinator::agree_on_step(const StepStatus& status,
                                                        const Request& own) {
  if (!communicator_) return own;
  Request agreed;
  if (posted_) {
    exchanged_.synchronize();
    check_step_counts();
    agreed = requested();
  }
  status_ = status;
  sent_ = {};
  const int stop = agreed.stop != 0 ? agreed.stop : own.stop;
  if (stop != 0) sent_.stops[slot_of(stop)] = 1;
  sent_.saves = own.save ? 1 : 0;
  sent_.ends = agreed.end || own.end ? 1 : 0;
  sent_.traces = own.trace ? 1 : 0;
  sent_.working = status.works ? 1 : 0;
  sent_.working_ranks = status.works ? communicator_->rank() : 0;
  constexpr size_t kCount = sizeof(Message) / sizeof(double);
  const CollectivePurposeScope scope(kRequests);
  communicator_->all_reduce({&sent_, kCount, DType::kFloat64}, {&sums_, kCount, DType::kFloat64},
                            ReduceOp::kSum, stream_);
  stream_.record(exchanged_);
  posted_ = true;
  if (status.works) return agreed;
  exchanged_.synchronize();
  check_step_counts();
  agreed.save |= requested().save;
  agreed.trace |= requested().trace;
  agreed.end = requested().end;
  agreed.stop = requested().stop;
  return agreed;
}

RankCoordinator::Request RankCoordinator::requested() const {
  Request request{.save = sums_.saves > 0, .end = sums_.ends > 0, .trace = sums_.traces > 0};
  const auto first =
      std::find_if(sums_.stops.begin(), sums_.stops.end(), [](double ranks) { return ranks > 0; });
  if (first != sums_.stops.end()) request.stop = kStopSignals[first - sums_.stops.begin()];
  return request;
}

void RankCoordinator::check_step_counts() const {
  const int size = communicator_->size(), working = static_cast<int>(sums_.working);
  if (working == 0 || working == size) return;
  const bool few_work = 2 * working <= size, few_rest = 2 * working >= size;
  const int odd = few_work ? working : size - working;
  const double every = static_cast<double>(size) * (size - 1) / 2;
  // Valid if there is only one.
  const int first = static_cast<int>(few_work ? sums_.working_ranks : every - sums_.working_ranks);
  const std::string who =
      odd == 1 ? "rank " + std::to_string(first) + " has " : std::to_string(odd) + " ranks have ";
  const std::string others =
      size == 2 ? "rank " + std::to_string(1 - first) : "the other " + std::to_string(size - odd);
  const bool mine = (status_.works && few_work) || (!status_.works && few_rest);
  throw Error(mine ? ErrorCode::kUsage : ErrorCode::kPeerLost,
              who + (few_work ? "a step " : "no step ") + std::to_string(status_.step) +
                  (few_work ? " left to do, " : " left to do as ") + others +
                  (few_work    ? " not"
                   : size == 2 ? " has"
                               : " have"),
              {}, "give all ranks the same train.epochs, train.max_steps and data");
}

void RankCoordinator::explain_lost_peer() {
  if (!communicator_ || !posted_) return;
  try {
    exchanged_.synchronize();
  } catch (const Error&) {
    return;
  }
  check_step_counts();
}

void RankCoordinator::sum(std::span<double> values) {
  if (!communicator_) return;
  const View view{values.data(), values.size(), DType::kFloat64};
  const CollectivePurposeScope scope(kSums);
  communicator_->all_reduce(view, view, ReduceOp::kSum, stream_);
  stream_.synchronize();
}

std::vector<std::vector<double>> RankCoordinator::by_rank(std::span<const double> values) {
  const size_t rank = communicator_ ? communicator_->rank() : 0;
  const size_t ranks = communicator_ ? communicator_->size() : 1;
  std::vector<double> all(ranks * values.size());
  std::copy(values.begin(), values.end(), all.begin() + rank * values.size());
  sum(all);
  std::vector<std::vector<double>> result(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    const auto begin = all.begin() + r * values.size();
    result[r].assign(begin, begin + values.size());
  }
  return result;
}

void RankCoordinator::barrier() {
  if (!communicator_) return;
  const CollectivePurposeScope scope(kMeeting);
  communicator_->barrier(stream_);
  stream_.synchronize();
}

// Meets the other ranks every second until each has called end().
class RankCoordinator::Meetings {
 public:
  explicit Meetings(RankCoordinator& control)
      : control_(control), thread_("meetings", [this] { meet(); }) {}
  // Waits for the other ranks. Throws the failure of a meeting.
  void end() {
    {
      const MutexLock lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  bool wait_for_end() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    const MutexLock lock(mutex_);
    while (!ended_ && changed_.wait_until(mutex_, until)) {
    }
    return ended_;
  }
  void meet() {
    for (double busy = 1; busy > 0;) {
      busy = wait_for_end() ? 0 : 1;
      control_.sum({&busy, 1});
    }
  }

  RankCoordinator& control_;
  Mutex mutex_;
  CondVar changed_;
  bool ended_ FLEET_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

std::vector<double> RankCoordinator::all_succeed(const std::string& what,
                                                 const std::function<double()>& action) {
  if (!communicator_) return {action()};
  const size_t rank = communicator_->rank(), size = communicator_->size();
  std::vector<double> all(2 * size);  // values, then failures
  std::exception_ptr own;
  std::optional<Meetings> meetings;
  if (actions_ == Actions::kUnlimited) meetings.emplace(*this);
  try {
    all[rank] = action();
  } catch (...) {
    own = std::current_exception();
    all[size + rank] = 1;
  }
  try {
    if (meetings) meetings->end();
    sum(all);
  } catch (...) {
    if (!own) throw;
  }
  if (own) std::rethrow_exception(own);
  for (size_t other = 0; other < size; ++other) {
    if (all[size + other] == 0) continue;
    throw Error(ErrorCode::kPeerLost, "could not " + what, "rank " + std::to_string(other),
                "see the message of that rank");
  }
  all.resize(size);
  return all;
}

}  // namespace fleet
