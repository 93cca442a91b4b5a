#include "api/worker.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "base/env.h"
#include "base/log.h"
#include "base/signal_thread.h"
#include "base/standard_streams.h"
#include "base/unblock_signals.h"
#include "store/env.h"
#include "train/device_settings.h"

namespace fleet {
namespace {

std::atomic<int> received{0}, save_requests{0};
std::atomic<bool> starting{false};

void request_stop(int signal) {
  received = signal;
  if (starting) ::alarm(StartupStopTimeout::kStopSeconds);
}
void request_checkpoint(int) { ++save_requests; }

// A signal handler: calls only write and _exit.
void end_start(int) {
  if (!starting) return;
  constexpr char kLine[] = "stopped as asked before training began\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kLine, sizeof kLine - 1);
  ::_exit(128 + received);
}

}  // namespace

const std::atomic<int>* Worker::stop_signal() const { return &received; }
const std::atomic<int>* Worker::checkpoint_requests() const { return &save_requests; }

StartupStopTimeout::StartupStopTimeout() {
  std::signal(SIGALRM, end_start);
  starting = true;
  if (received) ::alarm(kStopSeconds);  // the signal came before
}

StartupStopTimeout::~StartupStopTimeout() {
  starting = false;
  ::alarm(0);
}

Worker init_process(const InitOptions& options) {
  reserve_standard_streams();
  const std::string level =
      options.log_level.empty() ? env_or(kEnvLogLevel, "INFO") : options.log_level;
  const int server = server_from_env();
  set_up_logging(level,
                 server < 0 ? "rank " + env_or(kEnvRank, "0") : "server " + std::to_string(server));
  return join_job(options.handle_signals);
}

Worker init_collective(const InitOptions& options) {
  Worker worker = init_process(options);
  if (worker.server_num() == 0) return worker;
  throw Error(ErrorCode::kUnsupported, "init_collective() takes no part in parameter servers",
              "environment PADDLE_PSERVERS_IP_PORT_LIST",
              "call init_process(), or start it without --server_num and --servers");
}

Worker join_job(bool handle_signals) {
  reserve_standard_streams();
  // The launcher reads the stacks of a job that hangs; Yama needs this permission for it.
  if (get_env(kEnvStoreAddress)) ::prctl(PR_SET_PTRACER, ::getppid(), 0, 0, 0);
  if (handle_signals) {
    unblock_signals();
    for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) std::signal(signal, request_stop);
    for (int signal : {SIGUSR1, SIGUSR2}) std::signal(signal, request_checkpoint);
    start_signal_thread({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM});
  }
  Worker worker(world_from_env());
  if (worker.is_first() && worker.world().server < 0) {
    const bool servers = !worker.world().servers.empty();
    for (const std::string& line : environment_without_effect(servers)) spdlog::info("{}", line);
  }
  return worker;
}

}  // namespace fleet
