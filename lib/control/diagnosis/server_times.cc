#include "diagnosis/server_times.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/one_line.h"

namespace fleet {
namespace {

constexpr double kLeastServerShare = 0.10;  // share of the step, as in bottleneck.cc
constexpr double kLeastServerExcess =
    0.2;  // a slow server takes this much more time than the others
constexpr double kMuchServerDelay = 0.1, kMoreBytes = 1.3;
// Servers are too few if they compute for this part of the wait, or, where trainers run apart, for
// this part of the time.
constexpr double kBusyWait = 0.5, kBusyTime = 0.7;
constexpr size_t kShownAddress = 100;  // characters

template <typename Value>
double lower_median(const std::vector<ServerTimes>& servers, Value value) {
  std::vector<double> all;
  for (const ServerTimes& server : servers) {
    if (const std::optional<double> one = value(server)) all.push_back(*one);
  }
  if (all.empty()) return 0;
  std::ranges::sort(all);
  return all[(all.size() - 1) / 2];
}

std::string time_share_text(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

std::string server_label(const ServerTimes& server) {
  return "server " + std::to_string(server.server) +
         (server.address.empty() ? "" : " at " + one_line(server.address, kShownAddress)) +
         " on node " + std::to_string(server.node_rank);
}

std::string slow_action(const ServerTimes& server, double usual_bytes) {
  const std::string who = server_label(server);
  if (server.delayed >= kMuchServerDelay && server.throttled) {
    return "the CPU quota of " + who + " stops it for " + time_share_text(server.delayed) +
           " of the time: raise it";
  }
  if (server.delayed >= kMuchServerDelay) {
    return who + " has no core for " + time_share_text(server.delayed) +
           " of the time: stop the other processes on its cores";
  }
  if (usual_bytes > 0 && server.received >= kMoreBytes * usual_bytes) {
    const auto times = std::to_string(std::lround(100 * server.received / usual_bytes));
    return who + " receives " + times +
           " % of the bytes of the others: start fewer servers, or one"
           " more, for another division";
  }
  return "look at the clock rate, the memory and the cores of " + who + "; fleetrun stacks";
}

std::string busy_action(const std::vector<ServerTimes>& servers, double busy, double delayed) {
  const std::string who = servers.size() == 1
                              ? server_label(servers[0]) + " is"
                              : "all " + counted(std::ssize(servers), "server") + " are";
  if (delayed >= kMuchServerDelay) {
    return (servers.size() == 1 ? server_label(servers[0]) + " has"
                                : std::string("the servers have")) +
           " no core for " + time_share_text(delayed) +
           " of the time: stop other processes on their cores, or start fewer trainers there";
  }
  return who + " busy for " + time_share_text(busy) +
         " of the time: start more servers (--server_num)";
}

double rise(int64_t from, int64_t to) {
  return static_cast<double>(std::max<int64_t>(0, to - from));
}

}  // namespace

std::vector<ServerCause> server_causes(const std::vector<ServerTimes>& servers, double wait,
                                       double step) {
  std::vector<ServerCause> causes;
  if (servers.empty() || wait <= 0 || step <= 0) return causes;
  const auto answer = [](const ServerTimes& server) { return server.answer; };
  const auto time = [&](const ServerTimes& server) { return answer(server).value_or(0); };
  const ServerTimes& slowest = *std::ranges::max_element(servers, {}, time);
  const double usual = lower_median(servers, answer);
  const double excess = std::min(time(slowest) - usual, wait);
  if (servers.size() > 1 && time(slowest) - usual >= kLeastServerExcess * usual &&
      excess >= kLeastServerShare * step) {
    const double bytes = lower_median(
        servers, [](const ServerTimes& server) { return std::optional(server.received); });
    causes.push_back({excess, slowest.server, slow_action(slowest, bytes)});
    wait -= excess;
  }
  const double busy =
      lower_median(servers, [](const ServerTimes& server) { return std::optional(server.busy); });
  const double delayed = lower_median(
      servers, [](const ServerTimes& server) { return std::optional(server.delayed); });
  const bool full = servers[0].apart ? busy >= kBusyTime : busy * step >= kBusyWait * wait;
  if (wait < kLeastServerShare * step || !full) return causes;
  causes.push_back({.time = wait, .action = busy_action(servers, busy, delayed)});
  if (servers.size() == 1) causes.back().server = servers[0].server;
  return causes;
}

void ServerReports::update(const StepReport& reports) {
  for (const RankUsage& usage : reports.usage()) {
    if (usage.server()) servers_[usage.rank()].usage = usage;
  }
  for (const wire::ServerReport& report : reports.servers()) {
    Server& server = servers_[report.rank()];
    if (server.report && report.pushes() < server.report->pushes())
      server = {.usage = server.usage};
    const bool warm = server.report && server.report->pushes() > 0;
    server.report = report;
    if (!warm || !server.usage || server.first) continue;
    server.first = server.before = server.current = Point{report, *server.usage};
  }
}

void ServerReports::next_minute() {
  for (auto& [number, server] : servers_) {
    if (!server.first) continue;
    server.before = server.current;
    server.current = Point{*server.report, *server.usage};
  }
}

std::vector<ServerTimes> ServerReports::times(Period period) const {
  std::vector<ServerTimes> all;
  for (const auto& [number, server] : servers_) {
    const std::optional<Point>& from = period == kOverall  ? server.first
                                       : period == kRecent ? server.before
                                                           : server.current;
    if (!from) continue;
    const wire::ServerReport &then = from->report, &now = *server.report;
    const double passed = rise(then.at_ns(), now.at_ns());
    if (passed <= 0) continue;
    ServerTimes times{.server = number,
                      .local_rank = now.local_rank(),
                      .node_rank = now.node_rank(),
                      .address = now.address(),
                      .busy = std::min(1.0, rise(then.busy_ns(), now.busy_ns()) / passed),
                      .received = 1e9 * rise(then.received(), now.received()) / passed,
                      .apart = now.apart()};
    const RankUsage &usage = *server.usage, &earlier = from->usage;
    if (const double used = rise(earlier.at_ns(), usage.at_ns()); used > 0) {
      times.delayed = std::min(1.0, rise(earlier.delayed_ns(), usage.delayed_ns()) / used);
      times.throttled = usage.quota() > 0 && rise(earlier.throttled_ns(), usage.throttled_ns()) > 0;
    }
    all.push_back(std::move(times));
  }
  return all;
}

}  // namespace fleet
