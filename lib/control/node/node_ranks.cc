#include "node/node_ranks.h"

#include <signal.h>

#include <utility>

#include "base/terminal_text.h"
#include "diagnosis/cause/failure_cause.h"

namespace fleet {
namespace {

// Bytes of stacks and calls for the host: a message beyond gRPC's limit (grpc_setup.h) would end
// the stream of this node, and with it a healthy job.
constexpr size_t kMaxStackBytes = 8 << 20;

// Drops the descriptions of calls if there are too many; the numbers of each group stay.
void limit_size(Stacks* stacks) {
  if (stacks->ByteSizeLong() <= kMaxStackBytes) return;
  for (RankCollectives& rank : *stacks->mutable_collectives()) {
    for (GroupCalls& group : *rank.mutable_groups()) group.clear_calls();
  }
  if (stacks->ByteSizeLong() > kMaxStackBytes) stacks->clear_collectives();
}

// A hint that saves users from guessing.
std::string signal_hint(int signal) {
  switch (signal) {
    case SIGKILL:
      return "the kernel, out of memory (see dmesg), or another process's kill -9";
    case SIGBUS:
      return "often a full /dev/shm or disk under a memory map";
    case SIGABRT:
      return "it aborted itself: an assertion or an uncaught exception";
    default:
      return {};
  }
}

void explain(RankExit* exit) {
  if (exit->killed_by_us()) {
    exit->clear_note();
    exit->clear_oom();
    return;
  }
  // A stage of a pipeline explains nothing yet.
  const bool explained = !exit->note().empty() && !exit->note().starts_with("stage ");
  if (exit->oom() || explained) return;
  const std::string hint = signal_hint(exit->signal());
  exit->set_note(exit->note() + (exit->note().empty() || hint.empty() ? "" : "; ") + hint);
}

int64_t ms_between(NodeRanks::Time begin, NodeRanks::Time end) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(end - begin).count();
}

}  // namespace

NodeRanks::NodeRanks(Assignment assignment, const wire::SpawnRanks& commands, Time started)
    : assignment_(std::move(assignment)),
      started_(started),
      trainers_(trainers(assignment_.node())) {
  constexpr int kBoth = wire::RankCommand::STANDARD_OUTPUT | wire::RankCommand::STANDARD_ERROR;
  for (const wire::RankCommand& rank : commands.ranks()) {
    log_paths_.push_back(rank.log_path());
    shown_.push_back((rank.shown_streams() & kBoth) == kBoth);
  }
}

std::string NodeRanks::name(int local_rank) const {
  return (server(local_rank) ? "server " : "rank ") + std::to_string(rank(local_rank));
}

const std::string& NodeRanks::log_path(int local_rank) const {
  return log_paths_.at(static_cast<size_t>(local_rank));
}

bool NodeRanks::on_success(RankExit exit, Time now) {
  const int local_rank = exit.local_rank();
  ended_well_.push_back({local_rank, now, std::move(*exit.mutable_tail())});
  return !server(local_rank) && --trainers_ == 0;
}

void NodeRanks::complete(RankExit* exit, Time now) const {
  const int local_rank = exit->local_rank();
  exit->set_ran_for_ms(ms_between(started_, now));
  exit->set_server(server(local_rank));
  exit->set_rank(rank(local_rank));
  exit->set_node_rank(assignment_.node_rank);
  exit->set_log_path(log_path(local_rank));
  exit->set_shown(shown_.at(static_cast<size_t>(local_rank)));
  explain(exit);
}

void NodeRanks::complete(RankStall* stall) const {
  stall->set_rank(rank(stall->local_rank()));
  stall->set_server(server(stall->local_rank()));
  stall->set_log_path(log_path(stall->local_rank()));
}

StepReport NodeRanks::completed(StepReport report) const {
  StepReport counted;
  for (RankSteps& one : *report.mutable_ranks()) {
    if (server(one.local_rank())) continue;
    one.set_rank(rank(one.local_rank()));
    *counted.add_ranks() = std::move(one);
  }
  for (wire::ServerReport& one : *report.mutable_servers()) {
    if (!server(one.local_rank())) continue;
    one.set_rank(rank(one.local_rank()));
    *counted.add_servers() = std::move(one);
  }
  return counted;
}

Stacks NodeRanks::completed(Stacks stacks, Time now) const {
  for (StackCluster& cluster : *stacks.mutable_clusters()) {
    for (RankStack& stack : *cluster.mutable_ranks()) {
      stack.set_rank(rank(stack.local_rank()));
      stack.set_server(server(stack.local_rank()));
    }
  }
  for (RankCollectives& calls : *stacks.mutable_collectives()) {
    calls.set_rank(rank(calls.local_rank()));
  }
  limit_size(&stacks);
  for (const Ended& one : ended_well_) {
    RankEnding& ending = *stacks.add_endings();
    ending.set_local_rank(one.local_rank);
    ending.set_ended(true);
    ending.set_ago_ms(ms_between(one.at, now));
    ending.set_error(last_error(resolve_output(one.tail), false));
  }
  for (RankEnding& ending : *stacks.mutable_endings()) {
    ending.set_rank(rank(ending.local_rank()));
    ending.set_server(server(ending.local_rank()));
    ending.set_log_path(log_path(ending.local_rank()));
  }
  return stacks;
}

}  // namespace fleet
