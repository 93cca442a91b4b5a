// The phases in which no rank runs.
#include "rendezvous/job_phases.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/counted.h"
#include "base/terminal_text.h"
#include "rendezvous/election.h"

namespace fleet {
namespace {

// Up to this many nodes, all are informed of each one that leaves.
constexpr int kFew = 64;

// The rank of the node with this address; -1 if it is not in the world.
int rank_of(const World& world, const std::string& address) {
  for (const wire::Node& node : world.nodes()) {
    if (node.address() == address) return node.node_rank();
  }
  return -1;
}

void time_out(Job* job) {
  const Membership& membership = job->nodes.membership();
  job->refuse_all(Error(
      ErrorCode::kTimeout,
      "only " + std::to_string(membership.members().size()) + " of " +
          std::to_string(job->config().nnodes()) + " nodes joined within " +
          seconds_text(job->nodes.times().timeout) + ": " + membership.present() +
          "; missing: " + membership.missing(),
      "rendezvous of job '" + shown_name(job->config().job_id()) + "' at " + job->display_address,
      "start fleetrun on the missing ones too, check that they can reach " + job->display_address +
          " (firewall, --rdzv_port), or raise --rdzv_timeout"));
}

}  // namespace

namespace phases {

void Waiting::report_missing_nodes(Job& job) {
  if (job.now < next_progress) return;
  next_progress = job.now + job.nodes.times().progress_every;
  const Membership& membership = job.nodes.membership();
  job.nodes.broadcast(join_progress("waiting for " + membership.missing() + " of " +
                                    std::to_string(job.config().nnodes()) +
                                    " nodes; here: " + membership.present()));
}

bool Base::committed() const { return nodes == 0 || has_quorum(nodes, accepted); }

void FailingOver::on_joined(Job& job, SessionId session) {
  const wire::Join& info = job.nodes.membership().members().at(session);
  if (info.last() == job.world->id()) {
    job.nodes.find(session)->node_rank = rank_of(*job.world, info.node().address());
    if (info.committed() == info.last()) base.nodes = 0;
    if (before && info.committed() == before->id()) {
      const int rank = rank_of(*before, info.node().address());
      if (rank >= 0) base.accepted.insert(rank);
    }
  }
  on_time(job);
}

// Either all other nodes are here, or a majority is and the rest had time to notice the loss.
// Without a majority, others may come: their links may be down only for a while.
void FailingOver::on_time(Job& job) {
  const int here = static_cast<int>(job.nodes.ranks_here().size());
  const bool all = here + 1 >= job.world->nodes_size();
  const bool waited = job.now >= began + notice_time(job.nodes.times().max_silence);
  const bool enough = job.have_quorum() && base.committed();
  if (enough && (all || waited)) return job.end_generation(lost);
  if (enough || job.now < due) return report_missing_nodes(job);
  *lost.mutable_message() +=
      "; only " + std::to_string(here) + " of the job's " +
      counted(job.world->nodes_size(), "node") + " found each other within " +
      seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(due - began)) +
      " (--elastic_timeout). A job continues only with more than half of its nodes, because the "
      "others may still run it: check the network and the output of the other nodes. If they have "
      "ended, start the job again; if they were only away for longer, raise --elastic_timeout";
  job.decide(std::move(lost));
}

void Forming::on_stop(Job& job, SessionId session, int signal) {
  const wire::Join& info = job.nodes.membership().members().at(session);
  Verdict verdict =
      job.stopped_verdict(-1, signal, " " + info.node().address() + " before all nodes had joined");
  if (info.has_node_rank()) verdict.set_node_rank(info.node_rank());
  verdict.set_node(info.node().address());
  verdict.set_hostname(info.node().hostname());
  job.decide(std::move(verdict));
}

void Forming::on_left(Job& job, SessionId session) {
  const std::string address = job.nodes.address(session);
  job.nodes.membership().remove(session);
  if (job.config().nnodes() > kFew) return;  // the next line about missing nodes suffices
  job.nodes.broadcast(join_progress("node " + address + " has left again; waiting for " +
                                    job.nodes.membership().missing()));
}

void Forming::on_time(Job& job) {
  const bool enough =
      job.nodes.membership().enough() && job.spec().required_nodes() < job.config().nnodes();
  const Time end = began + job.nodes.times().timeout;
  if (enough && job.now >= std::min(due, end)) return job.propose();
  if (job.now >= end) return time_out(&job);
  report_missing_nodes(job);
}

// No process of that generation is left there.
void Stopping::on_ready(Job& job, SessionId session) {
  if (awaited.erase(session) > 0 && awaited.empty()) job.gather();
}

void Stopping::on_left(Job& job, SessionId session) {
  awaited.erase(session);
  if (!job.have_quorum()) return job.step_down(reason());
  if (awaited.empty()) job.gather();
}

void Gathering::on_time(Job& job) {
  if (job.now < due) return report_missing_nodes(job);
  Verdict verdict = reason();
  *verdict.mutable_message() +=
      "; " + counted(static_cast<int>(job.nodes.membership().members().size()), "node") +
      " left of the " + std::to_string(job.spec().required_nodes()) +
      " that it needs; no other joined within " +
      seconds_text(job.spec().restarts.elastic_timeout) + " (--elastic_timeout)";
  job.decide(std::move(verdict));
}

// That generation's world is known there.
void Agreeing::on_accepted(Job& job, SessionId session) {
  const auto found = awaited.find(session);
  if (found == awaited.end()) return;
  if (found->second >= 0) base.accepted.insert(found->second);
  stop_awaiting(job, session);
}

void Agreeing::stop_awaiting(Job& job, SessionId session) {
  awaited.erase(session);
  if (!awaited.empty()) return;
  if (!base.committed()) return job.step_down(reason());
  job.begin_generation(std::move(lost));
}

}  // namespace phases
}  // namespace fleet
