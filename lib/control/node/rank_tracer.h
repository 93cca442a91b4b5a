// A node's parts in a trace of the job (fleetrun trace).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "node/control_socket.h"
#include "node/realtime_history.h"
#include "observe/rank_progress.h"
#include "observe/trace_memory.h"
#include "rendezvous/types.h"
#include "transport/event_loop.h"

namespace fleet {

// The guardian's part: the memory in which its ranks write (observe/trace_memory.h), and what the
// launcher did with them. Not thread-safe.
class RankTracer {
 public:
  struct Target {
    int local_rank = 0;
    int rank = 0;
    pid_t pid = -1;
    bool of_engine = false;  // it counts its steps, or will
    ProgressReader* progress = nullptr;
  };
  // Bytes of a piece: below what a message may carry.
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  void begin_generation(int generation, int64_t now_ns);
  // The last ones are kept for the next trace. local_rank -1: an event of the node.
  void note(LauncherEvent::Kind kind, int local_rank, int rank, int number, int64_t at_ns);
  // Call it every second.
  void sample_clocks() { realtime_.sample_clocks(); }
  // Its trace stays readable.
  void on_rank_ended(pid_t pid);

  // targets: the ranks that run, for BEGIN.
  TraceAnswer answer(const TraceRequest& request, const std::vector<Target>& targets);

 private:
  struct Traced {
    TracedRank rank;
    std::unique_ptr<TraceReader> memory;  // null: state NONE
  };
  void begin(int64_t steps, const std::vector<Target>& targets);
  void update(Traced* traced) const;

  std::vector<Traced> ranks_;
  std::deque<LauncherEvent> events_;
  size_t before_ = 0;  // events before the trace began
  int generation_ = 0;
  RealtimeHistory realtime_;
};

// The launcher's part: questions of `fleetrun trace` to the nodes of the job, which come back as
// one answer each. Not thread-safe: everything happens in the loop's thread.
class TraceQuestions {
 public:
  // send: to the rendezvous host.
  TraceQuestions(EventLoop& loop, std::function<void(TraceRequest)> send)
      : loop_(loop), send_(std::move(send)) {}
  // nodes: number of the job's nodes. Replies once, with a TraceReport.
  void ask(TraceRequest request, int nodes, ControlSocket::Reply reply);
  void on_answer(TraceAnswer answer);

 private:
  struct Question {
    std::set<int> awaited;  // nodes
    TraceReport report;
    ControlSocket::Reply reply;
    std::unique_ptr<LoopTimer> limit;
  };
  void finish(uint64_t ticket);

  EventLoop& loop_;
  const std::function<void(TraceRequest)> send_;
  uint64_t last_ = 0;
  std::map<uint64_t, Question> questions_;  // by ticket
};

}  // namespace fleet
