// Whether the trainers of a job wait for its parameter servers: for one slow server, or for all,
// which are too few. Part of the bottleneck (bottleneck.h). Pure. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transport/control_messages.h"

namespace fleet {

// The work of one server over a period.
struct ServerTimes {
  int server = 0, local_rank = 0, node_rank = 0;
  std::string address;
  // Nanoseconds of a trainer's step with a request to it that is not answered, for the trainer that
  // waits least; unset: not measured.
  std::optional<double> answer;
  double busy = 0;         // share of the time: handling messages
  double delayed = 0;      // share of the time: without a core
  bool throttled = false;  // by the quota of its cgroup
  double received = 0;     // bytes a second
  bool apart = false;      // trainers do not wait for each other
};

struct ServerCause {
  double time = 0;            // nanoseconds of a step
  std::optional<int> server;  // the slow one; unset: all are
  std::string action;
};

// Divides `wait`, the nanoseconds of a step for which even the slowest trainer waits, among its
// causes. What no cause explains is the exchange itself. At most two.
std::vector<ServerCause> server_causes(const std::vector<ServerTimes>& servers, double wait,
                                       double step);

// The reports of servers, over the periods of BottleneckAnalyzer.
class ServerReports {
 public:
  enum Period { kOverall, kRecent, kMinute };

  void begin() { servers_.clear(); }
  void update(const StepReport& reports);
  void next_minute();
  // Without `answer`.
  std::vector<ServerTimes> times(Period period) const;

 private:
  struct Point {
    wire::ServerReport report;
    RankUsage usage;
  };
  struct Server {
    std::optional<wire::ServerReport> report;     // the last one
    std::optional<RankUsage> usage;               // the last one
    std::optional<Point> first, before, current;  // as of BottleneckAnalyzer
  };
  std::map<int, Server> servers_;  // by number
};

}  // namespace fleet
