// A job as a page asks about it: on this host, or through fleetd.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/job_info.h"
#include "launch/starting/http_server.h"
#include "rendezvous/event_loop.h"
#include "rendezvous/types.h"

namespace fleet {

struct RankLog {
  int rank = 0;
  bool server = false;
};

// How a job has ended.
struct JobOutcome {
  std::string state;  // "succeeded"
  std::string text;   // for people; "" for a success
};
JobOutcome outcome_of(const JobInfo& job);

// Everything happens in the loop's thread; each callback is called once, now or later.
class WatchedJob {
 public:
  // The report, or why there is none: kNotFound if the job does not run (any more).
  struct Answer {
    std::optional<LiveReport> report;
    std::optional<Error> failure;
  };

  virtual ~WatchedJob() = default;
  virtual void live(std::function<void(Answer)> done) = 0;
  // nullopt: it has not ended as far as is known.
  virtual void outcome(std::function<void(std::optional<JobOutcome>)> done) = 0;
  // Sends the last lines of that log, and each later one, until the stream is closed. Throws
  // kNotFound if no node that can be asked has the rank.
  virtual void log(const RankLog& which, std::shared_ptr<HttpStream> stream) = 0;
};

// Asks the fleetrun with this pid, on this host.
void ask_launcher(EventLoop& loop, pid_t pid, std::function<void(WatchedJob::Answer)> done);

}  // namespace fleet
