#include "api/serve.h"

#include <optional>

#include "api/worker.h"
#include "base/clock.h"
#include "base/counted.h"
#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "comm/store_exchange.h"
#include "observe/rank_progress.h"
#include "ps/client.h"
#include "ps/job_tables.h"
#include "ps/server.h"
#include "store/env.h"
#include "strategy/server_mode.h"
#include "train/start_comparison.h"
#include "transport/security.h"

namespace fleet {
namespace {

constexpr char kColumnsKey[] = "parameter_servers/columns";
constexpr char kSecretKey[] = "parameter_servers/secret";
// Trainer 0 may have to prepare its data first. The wait also ends with the job.
constexpr std::chrono::hours kPreparation(24);
constexpr char kConnectedKey[] = "parameter_servers/connected";

// The secret of the job, if it has one. The processes of one node meet in a Unix socket that only
// their user can open: there they make one, because a port of the loopback is open to all users.
Security security_of(const World& world, std::chrono::milliseconds timeout) {
  const std::string credentials = env_or(kEnvCredentials, "");
  if (!credentials.empty()) return security_from_text(read_file(credentials));
  if (env_int_or("PADDLE_NNODES", 1) > 1) return {};  // --insecure
  if (world.store->add(std::string(kSecretKey) + "/makers", 1) == 1) {
    world.store->set(kSecretKey, new_secret());
  }
  return {world.store->get(kSecretKey, timeout), true, "made for this job"};
}

std::vector<Column> columns_of_job(const World& world) {
  try {
    return columns_from_text(world.store->get(kColumnsKey, kPreparation));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    throw Error(ErrorCode::kTimeout,
                "did not prepare its data within " + seconds_text(kPreparation), "trainer 0",
                "see its log");
  }
}

// Trainers that a signal stops still need the servers, to save. If the job is over, their
// connections end.
bool any_connected(const World& world) {
  try {
    return world.store->add(kConnectedKey, 0) > 0;
  } catch (const Error&) {
    return true;
  }
}

// Servers that got a signal, without the rest of the job, do not wait for a lost trainer, but
// fleetrun replaces it. Such a process would wait for servers that have ended.
void check_place(const World& world) {
  if (world.replacement == 0 || !is_marked_as_gone(*world.store, world.rank)) return;
  ProgressWriter::from_env().set_replaceable(false);
  throw Error(ErrorCode::kPeerLost,
              "was asked to stop, and has ended its work for trainer " + std::to_string(world.rank),
              "a parameter server", "see which process has sent the signal");
}

}  // namespace

void serve(const Job& job, const World& world, const std::atomic<int>* stop) {
  const std::chrono::milliseconds timeout = timeout_of(job);
  std::optional<StartupStopTimeout> start(std::in_place);
  const int servers = static_cast<int>(world.servers.size());
  bool stopped = false;
  const ps::ServerOptions options{
      .address = world.servers.at(static_cast<size_t>(world.server)),
      .server = world.server,
      .servers = servers,
      .trainers = world.size,
      .mode = server_settings(strategy_from(job.strategy)).mode,
      .transport = {.security = security_of(world, timeout)},
      .timeout = timeout,
      .stop = [&] { return stopped = *stop != 0 && !any_connected(world); },
      .stopping = [stop] { return *stop != 0; },
      .on_abandoned = [&world](int trainer) { mark_as_gone(*world.store, trainer); }};
  const ProgramOptions program{.columns = columns_of_job(world),
                               .world = world.size,
                               .nodes = world.node_count(),
                               .servers = servers};
  start.reset();
  ps::run_server(job, program, options);
  if (!stopped) spdlog::info("{} ended", counted(world.size, "trainer"));
}

Servers servers_of(const Job& job, const World& world, Device& device) {
  Servers servers{.count = static_cast<int>(world.servers.size())};
  if (servers.count == 0) return servers;
  servers.connect = [&job, &world, &device](const Program& program,
                                            const std::vector<Column>& columns) {
    // A server answers within its own timeout, and names whom it misses.
    constexpr std::chrono::seconds kAnswer(60);
    const std::chrono::milliseconds timeout = timeout_of(job);
    check_place(world);
    if (world.rank == 0) world.store->set(kColumnsKey, columns_text(columns));
    world.store->add(kConnectedKey, 1);
    std::unique_ptr<ParameterExchange> exchange =
        ps::connect_servers(program, {.servers = world.servers,
                                      .trainer = world.rank,
                                      .trainers = world.size,
                                      .incarnation = static_cast<uint32_t>(world.replacement),
                                      .tables = ps::tables_of(job, program),
                                      .table_deltas = job.checkpoint.integer("table_deltas"),
                                      .settings = server_settings(strategy_from(job.strategy)),
                                      .transport = {.security = security_of(world, timeout)},
                                      .device = &device,
                                      .connect_timeout = timeout,
                                      .timeout = timeout + kAnswer});
    if (world.rank == 0) spdlog::info("connected to {}", exchange->text());
    return exchange;
  };
  return servers;
}

}  // namespace fleet
