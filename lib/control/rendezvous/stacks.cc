#include "rendezvous/stacks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/ranges.h"
#include "base/text.h"

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
      return "stopped (SIGSTOP)";
    case 'D':
      return "in an uninterruptible wait in the kernel" +
             (stack.channel().empty() ? "" : " (" + stack.channel() + ")");
    case 'Z':
      return "its first thread has ended";
    default:
      return "sleeping" + (stack.channel().empty() ? "" : " in " + stack.channel());
  }
}

bool is_stopped(const RankStack& stack) { return stack.state() == 'T' || stack.state() == 't'; }

}  // namespace

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

std::vector<StackCluster> cluster_stacks(const Stacks& all) {
  std::vector<RankStack> stacks(all.ranks().begin(), all.ranks().end());
  std::sort(stacks.begin(), stacks.end(), [](const RankStack& a, const RankStack& b) {
    return std::pair(a.server(), a.rank()) < std::pair(b.server(), b.rank());
  });
  std::vector<StackCluster> clusters;
  std::map<std::tuple<bool, std::vector<std::string>, std::string>, size_t> known;
  for (RankStack& stack : stacks) {
    // Sleeping or running says little, because a polling rank alternates. Without frames, the wait
    // channel is all there is to compare.
    const auto key = std::make_tuple(is_stopped(stack), texts(stack.frames()),
                                     stack.frames().empty() ? stack.channel() : std::string());
    const auto [at, is_new] = known.emplace(key, clusters.size());
    if (is_new) clusters.push_back({stack, {}});
    clusters[at->second].members.push_back(std::move(stack));
  }
  std::stable_sort(clusters.begin(), clusters.end(), [](const auto& a, const auto& b) {
    return a.members.size() > b.members.size();
  });
  return clusters;
}

const RankStack* find_outlier(const std::vector<StackCluster>& clusters) {
  size_t all = 0;
  for (const StackCluster& cluster : clusters) {
    all += cluster.members.size();
    if (is_stopped(cluster.sample)) return &cluster.members.front();
  }
  if (clusters.size() < 2) return nullptr;
  const StackCluster& smallest = clusters.back();
  const bool alone =
      smallest.members.size() == 1 && clusters[clusters.size() - 2].members.size() > 1;
  return alone && clusters.front().members.size() * 2 > all ? &smallest.members.front() : nullptr;
}

std::string stacks_text(const std::vector<StackCluster>& clusters, size_t most) {
  std::string text;
  for (size_t shown = 0; shown < std::min(most, clusters.size()); ++shown) {
    const StackCluster& cluster = clusters[shown];
    std::vector<int> ranks, servers;
    for (const RankStack& member : cluster.members) {
      (member.server() ? servers : ranks).push_back(member.rank());
    }
    std::string who;
    if (!ranks.empty()) who = (ranks.size() > 1 ? "ranks " : "rank ") + ranges_text(ranks);
    if (!servers.empty()) {
      who += (who.empty() ? "" : ", ") + std::string(servers.size() > 1 ? "servers " : "server ") +
             ranges_text(servers);
    }
    text += "\n  " + who + ": " + state_text(cluster.sample);
    if (!cluster.sample.missing().empty()) text += "; no stack: " + cluster.sample.missing();
    for (int i = 0; i < cluster.sample.frames_size(); ++i) {
      text += "\n    #" + std::to_string(i) + " " + cluster.sample.frames(i);
    }
  }
  if (clusters.size() > most) {
    text += "\n  and " + std::to_string(clusters.size() - most) + " more that differ";
  }
  return text;
}

}  // namespace fleet
