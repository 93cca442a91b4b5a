#include <algorithm>
#include <utility>

#include "diagnosis/collective_waits.h"
#include "diagnosis/rank_endings.h"
#include "diagnosis/stacks.h"

namespace fleet {
namespace {

// Makes `exit` name another rank. The log's name is known only on its own node.
template <typename Message>
void name_rank(const Message& named, bool server, RankExit* exit) {
  if (exit->rank() != named.rank() || exit->server() != server) exit->clear_log_path();
  exit->set_rank(named.rank());
  exit->set_server(server);
  exit->set_local_rank(named.local_rank());
  exit->set_node_rank(named.node_rank());
}

// A report that does not fit a node's queue (rendezvous/service.cc) would end its stream, and with
// it a healthy job.
constexpr size_t kMaxReportBytes = 3 << 20;

// Leaves out the frames of the rarest stacks until it fits.
void limit_size(StackReport* report) {
  size_t size = report->ByteSizeLong();
  auto& clusters = *report->mutable_stacks()->mutable_clusters();
  int left_out = 0;
  for (int i = clusters.size() - 1; i >= 0 && size > kMaxReportBytes; --i, ++left_out) {
    StackCluster& cluster = clusters[i];
    const size_t before = cluster.ByteSizeLong();
    cluster.clear_frames();
    cluster.clear_python_frames();
    cluster.set_missing("left out, because the report is too large");
    size -= before - std::min(before, cluster.ByteSizeLong());
  }
  if (left_out == 0) return;
  report->add_notes("the report is too large: the rarest stacks are left out (" +
                    std::to_string(left_out) + ")");
}

}  // namespace

bool StackCollection::add(int node, Stacks of_node) {
  if (awaited.erase(node) == 0) return false;
  for (StackCluster& cluster : *of_node.mutable_clusters()) {
    for (RankStack& stack : *cluster.mutable_ranks()) stack.set_node_rank(node);
  }
  for (RankCollectives& calls : *of_node.mutable_collectives()) calls.set_node_rank(node);
  for (RankEnding& ending : *of_node.mutable_endings()) ending.set_node_rank(node);
  stacks.MergeFrom(of_node);
  return awaited.empty();
}

StackReport StackCollection::report() const {
  StackReport report;
  *report.mutable_stacks() = cluster_stacks(stacks);
  *report.mutable_stacks()->mutable_endings() = stacks.endings();
  for (const int node : awaited) report.add_silent(node);
  const std::vector<CollectiveWait> waits = find_collective_waits(stacks);
  report.mutable_waits()->Assign(waits.begin(), waits.end());
  const std::vector<std::string> notes = flight_notes(stacks);
  report.mutable_notes()->Assign(notes.begin(), notes.end());
  limit_size(&report);
  return report;
}

RankExit find_suspect(const StackCollection& collection, const Stacks& clusters,
                      const std::vector<CollectiveWait>& waits, std::string* why) {
  const RankStall& hang = *collection.hang;
  RankExit exit;
  exit.set_rank(hang.rank());
  exit.set_server(hang.server());
  exit.set_local_rank(hang.local_rank());
  exit.set_node_rank(collection.node_rank);
  exit.set_log_path(hang.log_path());
  const RankStack* outlier = find_outlier(clusters);
  if (outlier && is_stopped(*outlier)) {
    name_rank(*outlier, outlier->server(), &exit);
    *why = "it is stopped";
    return exit;
  }
  if (const RankEnding* failing = find_failing(collection.stacks)) {
    name_rank(*failing, failing->server(), &exit);
    exit.set_log_path(failing->log_path());
    *why = "it has printed an exception and has not ended";
    return exit;
  }
  const std::optional<int> awaited = rank_waited_for(waits);
  const auto& ranks = collection.stacks.collectives();
  const auto found = std::find_if(ranks.begin(), ranks.end(), [&](const RankCollectives& calls) {
    return awaited && calls.rank() == *awaited;
  });
  if (found != ranks.end()) {
    name_rank(*found, false, &exit);
    *why = "the others wait for it";
  } else if (const RankEnding* ended = find_early_end(collection.stacks)) {
    name_rank(*ended, false, &exit);
    exit.set_log_path(ended->log_path());
    *why = "it has ended, and the others may wait for it";
  } else if (outlier) {
    name_rank(*outlier, outlier->server(), &exit);
    *why = "its stack differs from the others'";
  } else {
    *why = "the first one noticed";
  }
  return exit;
}

}  // namespace fleet
