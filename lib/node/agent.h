// One node's part in a job, from joining to the exit code.
#pragma once

#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "node/guardian.h"
#include "node/job_record.h"
#include "node/rank_service.h"
#include "node/wire.h"
#include "rendezvous/client.h"
#include "rendezvous/server.h"
#include "rendezvous/types.h"

namespace fleet {

struct AgentPlan {
  GuardianProcess guardian;
  std::vector<pid_t> foreign;  // children this process had before (exec'd from a shell): not ours
  sigset_t signal_mask;        // as it was before block_all_signals()
  std::unique_ptr<RendezvousServer> server;  // where this node hosts it
  RendezvousClientOptions client;
  NodeInfo node;
  // Opens the rendezvous where it is this node's turn. Throws Error.
  std::function<std::unique_ptr<RendezvousServer>(const TakeOver&)> take_over;
  std::chrono::milliseconds grace{10'000};
  // That stop the job. SIGUSR1 and SIGUSR2, where they are not among them, go to the ranks.
  std::vector<int> stop_signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  JobRecord record;  // what is known of it before the nodes have met
  // Before prepare(), where it is set: "", or why the job cannot start, which must be the same on
  // every node. On a thread of its own; may take seconds. An Error ends the job, but kPeerLost and
  // kStale, after which the rendezvous says what has happened.
  std::function<std::string(const Assignment&)> check;
  // What to start, when an epoch begins. An Error ends this node's part.
  std::function<SpawnRanks(const Assignment&)> prepare;
  // What answers the ranks while they run, where they need it: nullptr, or a function that may
  // return nullptr. `tell` writes to a rank's service socket. Called before prepare().
  std::function<std::unique_ptr<RankService>(
      boost::asio::io_context&, const Assignment&,
      std::function<void(int local_rank, std::string bytes)> tell)>
      serve;
  // Whoever started this launcher from elsewhere holds the other end: each byte is a signal as if
  // it had been sent to this process, and its end is a SIGHUP. Empty: nobody does.
  UniqueFd leash;
  bool tell_verdict = true;  // print it; false: who started this launcher does, from what is kept
};

// Joins, starts the ranks, watches them and everybody else, and returns fleetrun's exit code when
// nothing of the job is left on this node. From the main thread, with every signal blocked.
int run_agent(AgentPlan plan);

}  // namespace fleet
