#include "diagnosis/stacks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/counted.h"
#include "base/json.h"
#include "base/ranges.h"
#include "base/text.h"
#include "diagnosis/collective_waits.h"
#include "diagnosis/rank_endings.h"
#include "diagnosis/stack_waits.h"

namespace fleet {
namespace {

constexpr size_t kMaxFrames = 24, kMaxName = 120;

// "#1  0x00007f12 in pthread_cond_wait () from /lib/..." or "#1  0x00007f12 main - 1"
std::string function_of(const std::string& line) {
  std::string name(trim(line.substr(std::min(line.find_first_of(" \t"), line.size()))));
  if (name.starts_with("0x")) {
    name = trim(name.substr(std::min(name.find(' '), name.size())));
    if (name.starts_with("in ")) name = name.substr(3);
  }
  name = name.substr(0, name.find(" ("));
  name = name.substr(0, name.find(" - "));
  return name.empty() ? "??" : name.substr(0, kMaxName);
}

std::string state_text(const RankStack& stack) {
  switch (stack.state()) {
    case 'R':
      return "running";
    case 'T':
    case 't':
      return "stopped (by a signal)";
    case 'D':
      return "in an uninterruptible wait in the kernel" +
             (stack.channel().empty() ? "" : " (" + stack.channel() + ")");
    case 'Z':
      return "its first thread has ended";
    default:
      return "sleeping" + (stack.channel().empty() ? "" : " in " + stack.channel());
  }
}

bool by_rank(const RankStack& a, const RankStack& b) {
  return std::pair(a.server(), a.rank()) < std::pair(b.server(), b.rank());
}

}  // namespace

bool is_stopped(const RankStack& stack) { return stack.state() == 'T' || stack.state() == 't'; }

std::vector<std::string> frames_of(const std::string& printed, int pid) {
  std::vector<std::string> frames;
  const std::string own = "TID " + std::to_string(pid) + ":";
  bool wanted = true;
  for (const std::string& line : split(printed, '\n')) {
    if (line.starts_with("TID ")) wanted = line == own;
    if (line.starts_with("Thread ")) wanted = line.starts_with("Thread 1 ");
    if (wanted && line.starts_with('#') && frames.size() < kMaxFrames) {
      frames.push_back(function_of(line));
    }
  }
  return frames;
}

Stacks cluster_stacks(const Stacks& all) {
  using Frames = std::vector<std::string>;
  std::map<std::tuple<bool, Frames, Frames, std::string>, StackCluster> known;
  for (const StackCluster& cluster : all.clusters()) {
    for (const RankStack& stack : cluster.ranks()) {
      // Sleeping or running says little, because a polling rank alternates. Without frames, the
      // wait channel is all there is to compare.
      const bool no_frames = cluster.frames().empty() && cluster.python_frames().empty();
      const auto key =
          std::make_tuple(is_stopped(stack), texts(cluster.python_frames()),
                          texts(cluster.frames()), no_frames ? stack.channel() : std::string());
      StackCluster& same = known[key];
      if (same.ranks().empty()) {
        *same.mutable_frames() = cluster.frames();
        same.set_missing(cluster.missing());
        *same.mutable_python_frames() = cluster.python_frames();
        same.set_python_missing(cluster.python_missing());
      }
      *same.add_ranks() = stack;
    }
  }
  Stacks merged;
  for (auto& [key, cluster] : known) {
    std::sort(cluster.mutable_ranks()->begin(), cluster.mutable_ranks()->end(), by_rank);
    *merged.add_clusters() = std::move(cluster);
  }
  std::sort(merged.mutable_clusters()->begin(), merged.mutable_clusters()->end(),
            [](const StackCluster& a, const StackCluster& b) {
              if (a.ranks_size() != b.ranks_size()) return a.ranks_size() > b.ranks_size();
              return by_rank(a.ranks(0), b.ranks(0));
            });
  return merged;
}

int rank_count(const Stacks& stacks) {
  int count = 0;
  for (const StackCluster& cluster : stacks.clusters()) count += cluster.ranks_size();
  return count;
}

const RankStack* find_outlier(const Stacks& stacks) {
  const auto& clusters = stacks.clusters();
  for (const StackCluster& cluster : clusters) {
    if (is_stopped(cluster.ranks(0))) return &cluster.ranks(0);
  }
  if (clusters.size() < 2) return nullptr;
  const StackCluster& smallest = clusters[clusters.size() - 1];
  const bool alone = smallest.ranks_size() == 1 && clusters[clusters.size() - 2].ranks_size() > 1;
  return alone && clusters[0].ranks_size() * 2 > rank_count(stacks) ? &smallest.ranks(0) : nullptr;
}

std::string stacks_text(const Stacks& clusters, int most) {
  std::string text;
  for (int shown = 0; shown < std::min(most, clusters.clusters_size()); ++shown) {
    const StackCluster& cluster = clusters.clusters(shown);
    std::vector<int> ranks, servers;
    for (const RankStack& member : cluster.ranks()) {
      (member.server() ? servers : ranks).push_back(member.rank());
    }
    std::string who;
    if (!ranks.empty()) who = (ranks.size() > 1 ? "ranks " : "rank ") + ranges_text(ranks);
    if (!servers.empty()) {
      who += (who.empty() ? "" : ", ") + std::string(servers.size() > 1 ? "servers " : "server ") +
             ranges_text(servers);
    }
    text += "\n  " + who + ": " + state_text(cluster.ranks(0));
    if (const std::string what = waits_for(cluster); !what.empty()) text += "; waits for " + what;
    if (!cluster.missing().empty()) text += "; no stack: " + cluster.missing();
    for (const std::string& frame : cluster.python_frames()) text += "\n    Python: " + frame;
    if (!cluster.python_missing().empty()) text += "\n    Python: " + cluster.python_missing();
    for (int i = 0; i < cluster.frames_size(); ++i) {
      text += "\n    #" + std::to_string(i) + " " + cluster.frames(i);
    }
  }
  if (clusters.clusters_size() > most) {
    text += "\n  and " + std::to_string(clusters.clusters_size() - most) + " more that differ";
  }
  return text;
}

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
                               {"waits_for", waits_for(cluster)},
                               {"python_frames", texts(cluster.python_frames())},
                               {"python_missing", cluster.python_missing()}});
  }
  all["odd_rank"] = outlier ? Json(outlier->rank()) : Json(nullptr);
  all["silent_nodes"] = numbers(report.silent());
  all["waits"] = waits_json(report.waits());
  all["endings"] = endings_json(report.stacks().endings());
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
  text += endings_text(report.stacks());
  text += stacks_text(clusters, clusters.clusters_size());
  for (const int silent : report.silent()) {
    text += "\n  node " + std::to_string(silent) + " sent no stacks";
  }
  for (const std::string& note : report.notes()) text += "\n  " + note;
  return text + "\n";
}

}  // namespace fleet
