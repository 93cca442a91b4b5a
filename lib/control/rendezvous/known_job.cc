#include "rendezvous/known_job.h"

#include <algorithm>
#include <utility>

#include "rendezvous/restarts.h"
#include "transport/grpc_setup.h"

namespace fleet {

bool KnownJob::on_assignment(Assignment assignment, int generation,
                             std::vector<GenerationResult> history) {
  if (!history.empty()) history_ = std::move(history);
  world_ = assignment.world;
  node_rank_ = assignment.node_rank;
  address_ = assignment.store_address;
  pending_.reset();
  if (node_rank_ < 0) return false;  // a spare
  pending_ = std::move(assignment);
  pending_generation_ = generation;
  return generation > 1;
}

const Assignment* KnownJob::begin(int generation, Time now) {
  if (!pending_ || pending_generation_ != generation) return nullptr;
  begun_ = std::exchange(pending_, std::nullopt);
  committed_ = world_;
  began_ = now;
  furthest_step_.reset();
  return &*begun_;
}

void KnownJob::on_restart(const RestartCommand& command) {
  // A new host repeats a command that its predecessor may not have sent to all.
  std::erase_if(history_, [&](const GenerationResult& end) {
    return end.generation() >= command.end().generation();
  });
  if (history_.size() == kKeptGenerations) history_.erase(history_.begin());
  history_.push_back(command.end());
  if (command.generation() == pending_generation_) committed_ = world_;
}

void KnownJob::on_steps(const StepReport& report) {
  for (const RankSteps& rank : report.ranks())
    furthest_step_ = std::max(furthest_step_.value_or(rank.step()), rank.step());
}

void KnownJob::on_host_lost(wire::Join* join) {
  pending_.reset();
  join->clear_last();
  join->clear_committed();
  if (node_rank_ < 0) return;
  *join->mutable_last() = world_->id();
  if (committed_.get()) *join->mutable_committed() = committed_->id();
}

// A node that has received a world but not its Start cannot know whether that world counts. It can
// find out if it knows the preceding world, from which another part of the job might continue
// instead.
bool KnownJob::may_host() const {
  return node_rank_ >= 0 && committed_.get() &&
         (is_committed() || committed_->id() == world_->base());
}

std::string KnownJob::host_address(int node_rank) const {
  if (node_rank == 0) return address_;
  const wire::Node& node = world_->nodes(node_rank);
  return host_port(node.address(), node.rdzv_port());
}

FailoverState KnownJob::failover_state(int lost, std::string how, Time now) const {
  FailoverState all;
  all.base = world_;
  if (!is_committed()) all.before = committed_;
  all.history = history_;  // this generation's end may have been reported already
  std::erase_if(all.history, [generation = world_->id().generation()](const GenerationResult& end) {
    return end.generation() >= generation;
  });
  all.lost = lost;
  all.how = std::move(how);
  if (begun_ && begun_->world == world_) {
    all.ran_for = std::chrono::duration_cast<std::chrono::milliseconds>(now - began_);
    all.step = furthest_step_;
  }
  return all;
}

}  // namespace fleet
