#include "train/control.h"

#include <algorithm>
#include <exception>
#include <numeric>

namespace fleet {

Control::Control(Communicator* communicator) : stream_(communicator ? "control" : "") {
  if (!communicator) return;
  std::vector<int> all(communicator->size());
  std::iota(all.begin(), all.end(), 0);
  communicator_ = communicator->split(all);
}

Control::~Control() = default;

bool Control::next_turn(const Turn& turn, bool wish) {
  if (!communicator_) return wish;
  bool agreed = false;
  if (posted_) {
    exchanged_.synchronize();
    check_turns();
    agreed = sums_[0] > 0;
  }
  turn_ = turn;
  told_[0] = wish || agreed ? 1 : 0;
  told_[1] = turn.works ? 1 : 0;
  told_[2] = turn.works ? communicator_->rank() : 0;
  communicator_->all_reduce({told_, 3, DType::kFloat64}, {sums_, 3, DType::kFloat64},
                            ReduceOp::kSum, stream_);
  stream_.record(exchanged_);
  posted_ = true;
  if (turn.works) return agreed;
  exchanged_.synchronize();
  check_turns();
  return sums_[0] > 0;
}

void Control::check_turns() const {
  const int size = communicator_->size(), working = static_cast<int>(sums_[1]);
  if (working == 0 || working == size) return;
  const bool few_work = 2 * working <= size, few_rest = 2 * working >= size;
  const int odd = few_work ? working : size - working;
  const double every = static_cast<double>(size) * (size - 1) / 2;
  const int first = static_cast<int>(few_work ? sums_[2] : every - sums_[2]);  // where it is one
  const std::string who =
      odd == 1 ? "rank " + std::to_string(first) + " has " : std::to_string(odd) + " ranks have ";
  const std::string others =
      size == 2 ? "rank " + std::to_string(1 - first) : "the other " + std::to_string(size - odd);
  const bool mine = (turn_.works && few_work) || (!turn_.works && few_rest);
  throw Error(mine ? ErrorCode::kUsage : ErrorCode::kPeerLost,
              who + (few_work ? "a step " : "no step ") + std::to_string(turn_.step) +
                  (few_work ? " left to do, " : " left to do as ") + others +
                  (few_work    ? " not"
                   : size == 2 ? " has"
                               : " have"),
              {}, "give all ranks the same train.epochs, train.max_steps and data");
}

void Control::explain_lost_peer() {
  if (!communicator_ || !posted_) return;
  try {
    exchanged_.synchronize();
  } catch (const Error&) {
    return;
  }
  check_turns();
}

void Control::sum(std::span<double> values) {
  if (!communicator_) return;
  const View view{values.data(), values.size(), DType::kFloat64};
  communicator_->all_reduce(view, view, ReduceOp::kSum, stream_);
  stream_.synchronize();
}

std::vector<std::vector<double>> Control::by_rank(std::span<const double> values) {
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

void Control::barrier() {
  if (!communicator_) return;
  communicator_->barrier(stream_);
  stream_.synchronize();
}

std::vector<double> Control::all_succeed(const std::string& what,
                                         const std::function<double()>& action) {
  if (!communicator_) return {action()};
  const size_t rank = communicator_->rank(), size = communicator_->size();
  std::vector<double> all(2 * size);  // values, then failures
  std::exception_ptr own;
  try {
    all[rank] = action();
  } catch (...) {
    own = std::current_exception();
    all[size + rank] = 1;
  }
  try {
    sum(all);
  } catch (...) {
    if (!own) throw;
  }
  if (own) std::rethrow_exception(own);
  for (size_t other = 0; other < size; ++other) {
    if (all[size + other] == 0) continue;
    throw Error(ErrorCode::kPeerLost, "could not " + what, "rank " + std::to_string(other),
                "its own message says why");
  }
  all.resize(size);
  return all;
}

}  // namespace fleet
