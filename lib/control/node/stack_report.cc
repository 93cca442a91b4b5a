#include "node/stack_report.h"

#include <cstdio>

#include "base/commands.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "diagnosis/collective_waits.h"
#include "diagnosis/stacks.h"
#include "node/control_socket.h"
#include "node/job_record.h"

namespace fleet {
namespace {

// Debuggers get 4 s; the rendezvous waits a little longer.
constexpr int kStackAnswerSeconds = 15;

}  // namespace

std::string stack_report_json(const StackReport& report) {
  const Stacks clusters = cluster_stacks(report.stacks());
  const RankStack* outlier = find_outlier(clusters);
  Json all;
  all["clusters"] = Json::array();
  for (const StackCluster& cluster : clusters.clusters()) {
    Json members = Json::array();
    for (const RankStack& member : cluster.ranks()) {
      members.push_back({{"role", member.server() ? "server" : "trainer"},
                         {"rank", member.rank()},
                         {"local_rank", member.local_rank()},
                         {"node_rank", member.node_rank()},
                         {"state", std::string(1, static_cast<char>(member.state()))},
                         {"waits_in", member.channel()}});
    }
    all["clusters"].push_back({{"ranks", members},
                               {"frames", texts(cluster.frames())},
                               {"missing", cluster.missing()},
                               {"python_frames", texts(cluster.python_frames())},
                               {"python_missing", cluster.python_missing()}});
  }
  all["odd_rank"] = outlier ? Json(outlier->rank()) : Json(nullptr);
  all["silent_nodes"] = numbers(report.silent());
  all["waits"] = waits_json(report.waits());
  all["notes"] = texts(report.notes());
  return all.dump_lossy(2) + "\n";
}

std::string stack_report_text(const StackReport& report) {
  const Stacks clusters = cluster_stacks(report.stacks());
  std::string text = counted(rank_count(clusters), "rank");
  if (const RankStack* outlier = find_outlier(clusters)) {
    text += "; look at " + std::string(outlier->server() ? "server " : "rank ") +
            std::to_string(outlier->rank()) + " (local rank " +
            std::to_string(outlier->local_rank()) + ") on node " +
            std::to_string(outlier->node_rank()) + ": " +
            (is_stopped(*outlier) ? "it is stopped" : "its stack differs from the others'");
  }
  for (const CollectiveWait& wait : report.waits()) text += "\n  " + wait.line();
  text += stacks_text(clusters, clusters.clusters_size());
  for (const int silent : report.silent()) {
    text += "\n  node " + std::to_string(silent) + " sent no stacks";
  }
  for (const std::string& note : report.notes()) text += "\n  " + note;
  return text + "\n";
}

namespace {

int run_stacks(const CommandLine& line) {
  const std::string job = line.words.empty() ? "" : line.words[0];
  wire::ControlRequest request;
  request.mutable_stacks();
  const wire::ControlReply reply =
      send_control_request(running_job_called(job, "stacks").pid(), request, kStackAnswerSeconds);
  const StackReport& report = reply.stacks();
  const bool json = line.settings.text("format") == "json";
  std::fputs((json ? stack_report_json(report) : stack_report_text(report)).c_str(), stdout);
  return 0;
}

}  // namespace

FLEET_COMMAND(stacks) {
  def.syntax = {
      .program = "fleetrun stacks",
      .words = "[JOB]",
      .about =
          "show the call stacks of all ranks of a running job\n"
          "Run it on a node of the job. It shows the ranks of all nodes, and groups equal\nstacks. "
          "JOB: its --job_id or the pid of its fleetrun here; optional if only one\njob runs here.",
      .most = 1};
  def.syntax.options.choice({.key = "format", .value = "text|json", .optional = true}, "text",
                            {"text", "json"}, "output format: text for people, json for programs");
  def.run = run_stacks;
}

}  // namespace fleet
