// A rank as its guardian knows it, and what the guardian reports when it has ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "node/channel.h"
#include "node/hang_detector.h"
#include "node/job_logs.h"
#include "node/oom_detector.h"
#include "observe/collective_log_reader.h"
#include "observe/rank_progress.h"
#include "transport/control_messages.h"

namespace fleet {

struct GuardedRank {
  wire::RankCommand command;
  pid_t pid = -1;
  bool ended = false;
  RankLog* log = nullptr;
  std::unique_ptr<ByteStream> service;
  std::optional<HangDetector> hang_detector;
  std::unique_ptr<ProgressReader> progress;  // the rank's own progress reports
  std::unique_ptr<CollectiveLogReader> collectives;
  std::string sent_steps;                         // the last RankSteps sent, serialized
  int64_t sent_server_ns = 0;                     // time of the last report of a server
  bool output_noted = false, step_noted = false;  // as events of traces
  bool kept_place = false;                        // it has ended, and the launcher may replace it
  int64_t steps = 0;  // that the training had done before its end, as it counted them
};

// How it ended: its code or signal, the last lines of its log, and the cause. status: of waitpid().
// at_ns, killed_by_us and replaceable are for the caller.
RankExit exit_of(GuardedRank& rank, int status, OomDetector& oom);

// Whether another process can take the place of this rank, which has failed.
bool can_be_replaced(GuardedRank& rank);

}  // namespace fleet
