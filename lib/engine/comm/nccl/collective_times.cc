#include "comm/nccl/collective_times.h"

#include <cmath>
#include <utility>

#include "base/env.h"
#include "base/log.h"
#include "comm/peer_wait_timer.h"

namespace fleet::nccl {
namespace {

bool worked(cudaError_t result) {
  if (result == cudaSuccess) return true;
  cudaGetLastError();  // clears it for the next call
  return false;
}

bool record(cudaEvent_t event, cudaStream_t stream, bool captured) {
  return worked(captured ? cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal)
                         : cudaEventRecord(event, stream));
}

void add_milliseconds(double milliseconds) { PeerWaitTimer::add(std::llround(1e6 * milliseconds)); }

}  // namespace

TimedPair::TimedPair() {
  const bool both = worked(cudaEventCreate(&begin_)) && worked(cudaEventCreate(&end_));
  if (!both && begin_) cudaEventDestroy(std::exchange(begin_, nullptr));
}

TimedPair::~TimedPair() {
  if (begin_) cudaEventDestroy(begin_);
  if (end_) cudaEventDestroy(end_);
}

bool TimedPair::begin(cudaStream_t stream, bool captured) {
  return begin_ && record(begin_, stream, captured);
}

bool TimedPair::end(cudaStream_t stream, bool captured) { return record(end_, stream, captured); }

float TimedPair::elapsed() const {
  float milliseconds = -1;
  if (cudaEventElapsedTime(&milliseconds, begin_, end_) == cudaSuccess) return milliseconds;
  cudaGetLastError();  // not ready, or never recorded
  return -1;
}

CollectiveTimes::CollectiveTimes() : on_(env_int_or("FLEET_NCCL_TIMES", 1) != 0) {}

int CollectiveTimes::begin(cudaStream_t stream, bool captured) {
  if (!on_) return -1;
  if (captured) {
    if (captured_ == kMaxPairs) return -1;
    if (!std::exchange(graph_open_, true)) graphs_.emplace_back();
    Graph& graph = graphs_.back();
    graph.pairs.push_back(std::make_unique<TimedPair>());
    graph.seen.push_back(-1);
    ++captured_;
    on_ = graph.pairs.back()->begin(stream, captured);
    return on_ ? static_cast<int>(graph.pairs.size()) - 1 : -1;
  }
  if (free_.empty() && pending_.size() == kMaxPending) collect();
  if (free_.empty()) {
    if (pairs_.size() == kMaxPending) return -1;
    free_.push_back(static_cast<int>(pairs_.size()));
    pairs_.push_back(std::make_unique<TimedPair>());
  }
  const int number = free_.back();
  on_ = pairs_[static_cast<size_t>(number)]->begin(stream, captured);
  if (!on_) return -1;
  free_.pop_back();
  return number;
}

void CollectiveTimes::end(int number, cudaStream_t stream, bool captured) {
  if (number < 0) return;
  const auto at = static_cast<size_t>(number);
  if (captured) {
    on_ = graphs_.back().pairs[at]->end(stream, captured);
  } else {
    on_ = pairs_[at]->end(stream, captured);
    if (on_) pending_.push_back(number);
  }
  if (!on_) spdlog::debug("nccl: the GPU does not measure collectives");
}

void CollectiveTimes::launched() {
  graph_open_ = false;
  ++launches_;
}

void CollectiveTimes::collect() {
  std::erase_if(pending_, [this](int number) {
    const float milliseconds = pairs_[static_cast<size_t>(number)]->elapsed();
    if (milliseconds < 0) return false;
    add_milliseconds(milliseconds);
    free_.push_back(number);
    return true;
  });
  if (launches_ > 0) collect_graphs();
}

// Each launch since the last reading counts as the mean of the graphs that ran since then.
void CollectiveTimes::collect_graphs() {
  double sum = 0;
  int fresh = 0;
  for (Graph& graph : graphs_) {
    double of_graph = 0;
    bool whole = true, changed = false;
    std::vector<float> now;
    for (size_t i = 0; i < graph.pairs.size(); ++i) {
      now.push_back(graph.pairs[i]->elapsed());
      whole = whole && now[i] >= 0;  // else it runs right now
      changed = changed || now[i] != graph.seen[i];
      of_graph += now[i];
    }
    if (!whole || !changed) continue;
    graph.seen = std::move(now);
    sum += of_graph;
    ++fresh;
  }
  if (fresh == 0) return;
  add_milliseconds(sum / fresh * static_cast<double>(std::exchange(launches_, 0)));
}

}  // namespace fleet::nccl
