// MPICH (also MVAPICH and Intel MPI): PMI-1 over an inherited socket.
#include "base/log.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/planning/dialects/pmi_server.h"
#include "store/store.h"

namespace fleet {
namespace {

// Effectively no timeout: other mechanisms detect ranks that never reach a barrier.
constexpr std::chrono::hours kAnyTime{24};

Variables mpich_variables(const Assignment& assignment, int local_rank, const RankContext&) {
  return {
      {"PMI_FD", std::to_string(kServiceDescriptor)},
      {"PMI_RANK", std::to_string(assignment.node().first_rank() + local_rank)},
      {"PMI_SIZE", std::to_string(assignment.world_size())},
      {"PMI_SPAWNED", "0"},
      {"MPI_LOCALRANKID", std::to_string(local_rank)},
      {"MPI_LOCALNRANKS", std::to_string(assignment.node().local_world_size())},
  };
}

PmiServer::Job job_of(const Assignment& assignment) {
  PmiServer::Job job;
  job.name = "fleet_" + std::to_string(assignment.generation());
  job.size = assignment.world_size();
  job.local_size = assignment.node().local_world_size();
  for (const wire::Node& node : assignment.world->nodes()) {
    job.ranks_per_node.push_back(node.local_world_size());
  }
  return job;
}

// Nodes exchange keys through the Store: each node sends its puts, and node 0 publishes all of
// them.
class PmiService final : public RankService {
 public:
  explicit PmiService(const ServiceContext& context)
      : store_(context.store),
        node_(context.assignment.node_rank),
        nodes_(context.assignment.nnodes()),
        server_(job_of(context.assignment), context.send,
                [this](int round, const std::string& puts) { exchange(round, puts); }) {}

  void on_rank_bytes(int local_rank, std::string_view bytes) override {
    server_.on_bytes(local_rank, bytes);
  }

 private:
  static std::string key(int round, const std::string& who) {
    return "pmi/" + std::to_string(round) + "/" + who;
  }

  void exchange(int round, const std::string& puts) {
    if (nodes_ == 1) return server_.merge(puts);
    if (node_ == 0) return collect(round, 1, puts);
    store_->set(key(round, std::to_string(node_)), puts, [](AsyncStore::Answer answer) {
      if (answer.error) log_error(*answer.error);
    });
    store_->get(key(round, "all"), kAnyTime, [this](AsyncStore::Answer answer) {
      answer.error ? log_error(*answer.error) : server_.merge(answer.value);
    });
  }

  // Node 0: collects the puts of `node`, then of the next node.
  void collect(int round, int node, std::string puts) {
    if (node == nodes_) {
      store_->set(key(round, "all"), puts, [this, puts](AsyncStore::Answer answer) {
        answer.error ? log_error(*answer.error) : server_.merge(puts);
      });
      return;
    }
    store_->get(key(round, std::to_string(node)), kAnyTime,
                [this, round, node, puts = std::move(puts)](AsyncStore::Answer answer) {
                  if (answer.error) return log_error(*answer.error);
                  collect(round, node + 1, puts + answer.value);
                });
  }

  // Ranks stay at their barrier. If the Store is gone, the job has ended anyway.
  static void log_error(const Error& error) {
    if (error.code() != ErrorCode::kPeerLost && error.code() != ErrorCode::kStale) {
      spdlog::error("PMI: {}", error.what());
    }
  }

  std::shared_ptr<AsyncStore> store_;
  int node_, nodes_;
  PmiServer server_;
};

}  // namespace

FLEET_DIALECT(mpich) {
  def.variables = mpich_variables;
  def.serve = [](const ServiceContext& context) -> std::unique_ptr<RankService> {
    return std::make_unique<PmiService>(context);
  };
  def.needs_socket = true;
}

}  // namespace fleet
