// The fleetds that a sub-command queries, and their replies.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/option_group.h"
#include "daemon/job_info.h"
#include "daemon/message_stream.h"
#include "transport/event_loop.h"
#include "transport/security.h"

namespace fleet {

// Runs several client sessions until all have ended. Not thread safe.
class FleetdCalls {
 public:
  explicit FleetdCalls(const Security& security) : security_(security), response_timer_(loop_) {}
  // Calls `on_error` for a refusal, for a connection error, and for a fleetd that sends nothing for
  // a few seconds.
  void start(const std::string& address, wire::ClientMessage request,
             const std::function<void(const wire::FleetdMessage&)>& on_event,
             const std::function<void(const Error&)>& on_error);
  void run();
  void pause_reading(bool paused);  // pauses reading
  EventLoop& loop() { return loop_; }

 private:
  struct Call {
    std::shared_ptr<ClientStream> stream;
    bool answered = false, timed_out = false;
  };

  const Security security_;
  EventLoop loop_;
  LoopTimer response_timer_;
  std::deque<Call> calls_;  // a deque, so that addresses stay valid
  int open_ = 0;
  bool reading_paused_ = false;
};

// The options of a command that FleetdClient reads.
void add_fleetd_options(OptionGroup* options);

// One node's part of a job. `address` is its fleetd; "" for a job of this host without a fleetd.
struct JobPart {
  std::string address;
  JobInfo job;
};

// The fleetds given by the options (--fleetd, --ips, --fleetd_port, --fleetd_secret_file) or by
// FLEETD_NODES; otherwise this host's fleetd and jobs without one.
class FleetdClient {
 public:
  explicit FleetdClient(const Settings& settings);  // kUsage

  const Security& security();  // throws kUsage if the secret is unknown
  bool local() const { return !given_; }
  // Whether all fleetds answered so far; the reasons of failures have been logged.
  bool all_answered() const { return silent_.empty(); }

  // Every part of this job ("": every job) that can be found, ordered by node. Jobs of this host
  // without a fleetd can also be named by a pid or folder (find_run()).
  std::vector<JobPart> find(const std::string& job_id);
  // The same; throws kNotFound without one, kIo if a fleetd that may have it did not answer.
  std::vector<JobPart> require(const std::string& job_id);

 private:
  std::vector<JobPart> query(const std::vector<std::string>& addresses, const std::string& job_id);

  std::vector<std::string> addresses_;
  std::string secret_file_;
  std::optional<Security> security_;
  bool given_ = false;
  std::vector<std::string> silent_;  // fleetds that did not answer
};

}  // namespace fleet
