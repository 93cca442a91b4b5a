// One node's part in a job, from joining to the exit code.
#pragma once

#include <signal.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "node/guardian.h"
#include "node/job_record.h"
#include "node/rank_service.h"
#include "node/supervision.h"
#include "rendezvous/client.h"
#include "rendezvous/server.h"
#include "rendezvous/types.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"

namespace fleet {

// The job's state, and this node's rank in it; calls back in the agent's loop, or never if
// the rendezvous is lost.
using AskLive = std::function<void(std::function<void(const LiveReport&, int node_rank)>)>;

struct AgentPlan {
  GuardianProcess guardian;
  // Children that existed before exec (the shell's): not part of the job.
  std::vector<pid_t> other_children;
  sigset_t signal_mask;                      // before block_all_signals()
  std::unique_ptr<RendezvousServer> server;  // set if this node hosts the rendezvous
  RendezvousClientOptions client;
  wire::Join join;
  // Opens the rendezvous when it is this node's turn to host it. Throws Error.
  std::function<std::unique_ptr<RendezvousServer>(const TakeOver&)> take_over;
  std::chrono::milliseconds grace{10'000};
  // Signals that stop the job. Unless listed, SIGUSR1 and SIGUSR2 are passed to the ranks.
  std::vector<int> stop_signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  JobRecord record;  // the job while it forms
  // If set, runs before prepare(): returns "" or why the job cannot start, which must be the same
  // on every node. Runs on its own thread and may take seconds. An Error ends the job, except
  // kPeerLost and kStale, after which the rendezvous reports the outcome.
  std::function<std::string(const Assignment&)> check;
  // Returns the ranks to start when a generation begins. An Error ends this node's part.
  std::function<wire::SpawnRanks(const Assignment&)> prepare;
  // Creates the service that answers the ranks while they run: nullptr, or a function that may
  // return nullptr. `tell` writes to a rank's service socket. Called before prepare().
  std::function<std::unique_ptr<RankService>(
      EventLoop&, const Assignment&, std::function<void(int local_rank, std::string bytes)> tell)>
      serve;
  // If set, creates what serves the state of the job to others, for as long as the agent runs. An
  // Error ends the start.
  std::function<std::shared_ptr<void>(EventLoop&, AskLive)> observe;
  // The control pipe: a remote starter of this launcher holds the other end. Each byte acts like a
  // signal sent to this process, the end of the pipe like a SIGHUP. Empty without one.
  UniqueFd control_pipe;
  std::string end_command;  // runs when the job has ended (node/end_command.h); "": none
  bool print_verdict =
      true;  // print the verdict; false: whoever started this launcher prints the saved verdict
  MessageStyle messages;
  // If set, called when nothing is left of a job that has ended with success.
  std::function<void()> succeeded;
};

// Joins, starts the ranks, monitors them and the job, and returns fleetrun's exit code when no
// process of the job is left on this node. Call it from the main thread, with every signal blocked.
int run_agent(AgentPlan plan);

}  // namespace fleet
