#include "daemon/fleetd.h"

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "base/command_line.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/client_session.h"
#include "daemon/message_stream.h"
#include "daemon/node_jobs.h"
#include "daemon/protocol.h"
#include "launch/planning/addresses.h"
#include "launch/planning/devices.h"
#include "launch/planning/options.h"
#include "launch/planning/refuse.h"
#include "node/control_socket.h"
#include "node/process_tree.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

constexpr size_t kMaxSessions = 1024;
constexpr std::chrono::seconds kDrainTimeout{2};

struct FleetdOptions {
  std::string host = "127.0.0.1";
  int port = kDefaultFleetdPort;
  Security security;
  std::string user;
  std::vector<std::string> gpus;
  JobStore job_store;
  FleetdPage::Serve serve_page;
};

// "0.0.0.0:6767", "[::]:6767", "10.0.0.1", ":7000"
void parse_listen(const std::string& text, FleetdOptions* options) {
  const std::string where = "--listen " + text, next = "write it like --listen=0.0.0.0:6767";
  const HostPort parts = split_endpoint(text);
  if (parts.port && !parse_port(*parts.port, 0, &options->port)) {
    refuse("the port is not a number from 0 to 65535", where, next);
  }
  if (!parts.host.empty()) options->host = parts.host;
  if (resolve(options->host).empty()) refuse("not an address", where, next);
}

class Daemon {
 public:
  explicit Daemon(FleetdOptions options)
      : jobs_(loop_, JobTable(options.user, options.gpus), std::move(options.job_store)),
        signals_(loop_, {SIGTERM, SIGINT, SIGHUP}),
        drain_timer_(loop_),
        server_(loop_, options.host, options.port, options.security,
                [this](std::shared_ptr<ServerStream> stream) { accept(std::move(stream)); }) {
    signals_.on_signal([this](int signal) { end_jobs(signal); });
    if (options.serve_page) page_ = options.serve_page(loop_, jobs_);
    spdlog::info("fleetd listens on {}, for user {}, with {} GPUs",
                 endpoint(options.host, server_.port()), options.user, options.gpus.size());
  }
  void run() { loop_.run(); }

 private:
  void accept(std::shared_ptr<ServerStream> stream) {
    const int id = ++last_;
    if (sessions_.size() >= kMaxSessions) {
      spdlog::warn("{} client sessions are open: rejecting a new one", sessions_.size());
      stream->begin({[](const wire::ClientMessage&) {}, [] {}, [](const grpc::Status&) {}});
      return stream->cancel();
    }
    sessions_[id] = std::make_unique<ClientSession>(loop_, jobs_, std::move(stream), [this, id] {
      sessions_.erase(id);
      if (jobs_ended_ && sessions_.empty()) loop_.stop();
    });
  }

  // Waits briefly so that clients receive the end of their jobs.
  void drain() {
    const bool asked_again = std::exchange(jobs_ended_, true);
    if (sessions_.empty() || asked_again) return loop_.stop();
    drain_timer_.after(kDrainTimeout, [this] { loop_.stop(); });
  }

  void end_jobs(int signal) {
    spdlog::info("{}: ending all jobs", signal_name(signal));
    jobs_.stop_all(stop_request(SIGTERM, stopping_), [this] { drain(); });
    stopping_ = true;
  }

  EventLoop loop_;
  NodeJobs jobs_;
  std::shared_ptr<void> page_;
  LoopSignals signals_;
  LoopTimer drain_timer_;
  std::map<int, std::unique_ptr<ClientSession>> sessions_;
  int last_ = 0;
  bool stopping_ = false, jobs_ended_ = false;
  StreamServer server_;  // last: its threads post to the loop
};

CommandSyntax syntax(const FleetdPage& page) {
  CommandSyntax syntax{
      .program = "fleetd",
      .about = "start jobs on this node for `fleetrun --via=fleetd` on other machines",
      .more =
          "Jobs run as the user of fleetd and end with it. SIGTERM stops its jobs, with their "
          "grace\ntime, and then fleetd; a second SIGTERM kills them. See "
          "docs/how-to/fleetd.md.\n"};
  syntax.options
      .text({.key = "listen", .value = "ADDR:PORT"}, "127.0.0.1:6767",
            "address and port to listen on; 0.0.0.0: all interfaces")
      .text({.key = "secret_file", .value = "FILE", .optional = true}, "",
            "file with the secret of its clients (default: FLEETD_SECRET,\n" +
                std::string(26, ' ') +
                "else ~/.config/fleetrun/fleetd.secret, created if missing, or\n" +
                std::string(26, ' ') + "/etc/fleetrun/fleetd.secret)")
      .text({.key = "state_dir", .value = "DIR", .optional = true}, "",
            "folder for its records of jobs (default: STATE_DIRECTORY, else\n" +
                std::string(26, ' ') + "~/.local/state/fleetrun/fleetd.HOST.ADDR.PORT)")
      .flag({.key = "allow_root"}, "allow fleetd, and thus its jobs, to run as root")
      .choice({.key = "log_level", .value = "LEVEL"}, "INFO", {"DEBUG", "INFO", "WARNING", "ERROR"},
              "minimum severity to log")
      .flag({.key = "version", .aliases = {"V"}}, "print the version");
  page.add_options(&syntax.options);
  return syntax;
}

// If the user has not chosen a folder, fleetd also runs without one.
JobStore open_job_store(const std::string& wanted, const FleetdOptions& options) {
  if (!wanted.empty()) return JobStore(wanted);
  const std::string folder = default_job_store(options.host, options.port);
  try {
    if (!folder.empty()) return JobStore(folder);
    spdlog::warn(
        "no home folder: fleetd forgets ended jobs at a restart; give --state_dir to keep them");
  } catch (const Error& error) {
    spdlog::warn("fleetd forgets ended jobs at a restart: {}", error.what());
  }
  return {};
}

}  // namespace

int fleetd_main(const std::vector<std::string>& arguments, const FleetdPage& page) {
  const CommandSyntax known = syntax(page);
  const auto line = read_command_line(known, arguments);
  if (!line) return std::fputs(command_help(known).c_str(), stdout), 0;
  const Settings& settings = line->settings;
  if (settings.boolean("version")) return std::printf("fleetd %s\n", FLEET_VERSION), 0;
  set_up_logging(settings.text("log_level"), "fleetd");
  FleetdOptions options;
  parse_listen(settings.text("listen"), &options);
  if (::geteuid() == 0 && !settings.boolean("allow_root")) {
    refuse("fleetd would run the jobs of all clients as root", {},
           "start it as the user that owns the jobs, or give --allow_root");
  }
  const passwd* entry = ::getpwuid(::geteuid());
  options.user = entry ? entry->pw_name : std::to_string(::geteuid());
  options.serve_page = page.read_options(settings);
  options.security = fleetd_security(settings.text("secret_file"), true);
  options.gpus = visible_gpu_names();
  ::signal(SIGPIPE, SIG_IGN);
  // Never destroyed: the process exits, and gRPC's threads with it.
  options.job_store = open_job_store(settings.text("state_dir"), options);
  auto* daemon = new Daemon(std::move(options));
  daemon->run();
  return 0;
}

}  // namespace fleet
