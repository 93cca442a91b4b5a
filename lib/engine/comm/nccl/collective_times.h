// How long a rank's collectives take on its GPU, by events around each of them. Ranks in lockstep
// wait for the slowest one there, so that its total is the smallest: PeerWaitTimer's total, which
// finds slow ranks. The host does not wait for the events.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fleet::nccl {

// Two events around work of a stream.
class TimedPair {
 public:
  TimedPair();  // empty if the GPU refuses to make events: nothing is measured then
  ~TimedPair();
  TimedPair(const TimedPair&) = delete;
  // `captured`: the stream is being captured, and each launch of the graph records the event.
  // False if the GPU refuses.
  bool begin(cudaStream_t stream, bool captured);
  bool end(cudaStream_t stream, bool captured);
  // Milliseconds; negative if the work has not ended, or has begun again.
  float elapsed() const;

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Times one communicator. Not thread-safe.
class CollectiveTimes {
 public:
  // FLEET_NCCL_TIMES=0 turns it off.
  CollectiveTimes();

  // Around a collective that is issued to a stream. Returns the number of its measurement; -1: it
  // is not measured (a GPU that refuses events, or too many are pending).
  int begin(cudaStream_t stream, bool captured);
  void end(int number, cudaStream_t stream, bool captured);
  // A graph with collectives was launched. Those captured since the last launch are another graph.
  void launched();
  // Adds the times of completed calls to PeerWaitTimer's total. Call it now and then, not while
  // this thread captures.
  void collect();

 private:
  // Collectives of one graph, whose events each launch records again. Steps may be shorter than
  // the time between two calls of collect(), which then sees the last launch alone.
  struct Graph {
    std::vector<std::unique_ptr<TimedPair>> pairs;
    std::vector<float> seen;  // what was read last
  };
  static constexpr size_t kMaxPending = 64, kMaxPairs = 1024;
  void collect_graphs();

  bool on_ = true;
  std::vector<std::unique_ptr<TimedPair>> pairs_;  // for collectives that are not captured
  std::vector<int> free_, pending_;                // numbers of these
  std::vector<Graph> graphs_;
  size_t captured_ = 0;  // pairs of all graphs
  bool graph_open_ = false;
  int64_t launches_ = 0;  // since the last time of a graph was read
};

}  // namespace fleet::nccl
