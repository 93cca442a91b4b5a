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

bool Control::agree_to_stop(bool wish) {
  if (!communicator_) return wish;
  bool agreed = false;
  if (posted_) {
    exchanged_.synchronize();
    agreed = wish_ > 0;
  }
  wish_ = wish || agreed ? 1.f : 0.f;
  const View view{&wish_, 1, DType::kFloat32};
  communicator_->all_reduce(view, view, ReduceOp::kMax, stream_);
  stream_.record(exchanged_);
  posted_ = true;
  return agreed;
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
