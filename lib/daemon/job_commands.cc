#include "daemon/job_commands.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/job_info.h"
#include "daemon/local_log.h"
#include "daemon/protocol.h"
#include "daemon/secret.h"
#include "daemon/shown_output.h"
#include "daemon/talk.h"
#include "daemon/via_fleetd.h"
#include "launch/addresses.h"
#include "launch/node_list.h"

namespace fleet {
namespace {

// One node's part of a job. address: of the fleetd that has it; "": it was started without, here.
struct Part {
  std::string address;
  JobInfo job;
};

// A few conversations, until all are over.
class Talks {
 public:
  explicit Talks(const Security& security) : security_(security) {}
  void start(const std::string& address, Ask ask, std::function<void(const Tell&)> heard,
             std::function<void(const Error&)> failed) {
    auto answered = std::make_shared<bool>(false);
    ++open_;
    const auto tell = [answered, heard, failed](const Tell& message) {
      *answered = *answered || !message.has_beat();
      message.has_refused() ? failed(error_from(message.refused())) : heard(message);
    };
    const auto closed = [this, answered, failed, address](const grpc::Status& status) {
      if (!status.ok()) failed(error_of(status, address, security_));
      if (--open_ == 0) loop_.stop();
    };
    talks_.push_back(ClientTalk::start(loop_, address, security_, {tell, [] {}, closed}));
    talks_.back()->send(std::move(ask));
  }
  void run() {
    const auto keep = boost::asio::make_work_guard(loop_);
    if (open_ > 0) loop_.run();
  }
  boost::asio::io_context& loop() { return loop_; }

 private:
  const Security security_;
  boost::asio::io_context loop_{1};
  std::vector<std::shared_ptr<ClientTalk>> talks_;
  int open_ = 0;
};

// Which fleetds are meant, and what is known of them.
class Fleetds {
 public:
  explicit Fleetds(const Settings& settings)
      : secret_file_(settings.text("fleetd_secret_file")), given_(true) {
    const auto port = static_cast<int>(settings.integer("fleetd_port"));
    if (settings.given("ips")) {
      const std::string list = join(settings.texts("ips"), ",");
      for (const ListedNode& node : expand_nodes(list, "--ips")) {
        addresses_.push_back(endpoint(node.address, port));
      }
      return;
    }
    for (const std::string& entry : settings.texts("fleetd")) {
      const bool has_port = entry.rfind(':') != std::string::npos && !entry.ends_with(']') &&
                            (entry.find(':') == entry.rfind(':') || entry.starts_with('['));
      addresses_.push_back(has_port ? entry : endpoint(entry, port));
    }
    given_ = !addresses_.empty();
    if (!given_) addresses_ = {endpoint("127.0.0.1", port)};
  }

  const Security& security() {
    if (!security_) security_ = fleetd_security(secret_file_, false);
    return *security_;
  }
  // Not named by the user: jobs of this host, started with or without fleetd.
  bool local() const { return !given_; }
  bool all_answered() const { return all_answered_; }

  // Every part of this job ("": of all jobs) that can be found.
  std::vector<Part> find(const std::string& job_id) {
    std::vector<Part> parts;
    try {
      parts = query(addresses_, job_id);
    } catch (const Error&) {  // no secret: no fleetd was ever here
      if (given_) throw;
    }
    // A job's other nodes, where only some are named.
    std::set<std::string> more;
    for (const Part& part : parts) {
      if (job_id.empty() || part.job.phase == JobPhase::kEnded) continue;
      more.insert(part.job.nodes.begin(), part.job.nodes.end());
    }
    for (const Part& part : parts) more.erase(part.job.nodes.at(node_of(part.job)));
    for (const std::string& asked : addresses_) more.erase(asked);
    for (Part& part : query({more.begin(), more.end()}, job_id)) parts.push_back(std::move(part));
    if (!given_) add_local(job_id, &parts);
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      return a.job.record.node_rank < b.job.record.node_rank;
    });
    return parts;
  }
  // The same; kNotFound where there is none.
  std::vector<Part> known(const std::string& job_id) {
    std::vector<Part> parts = find(job_id);
    if (!parts.empty()) return parts;
    throw Error(ErrorCode::kNotFound, "no such job is known", "job " + job_id,
                given_
                    ? "fleetrun ls shows those that there are"
                    : "fleetrun ls shows those of this host; name others with --fleetd or --ips");
  }

 private:
  static size_t node_of(const JobInfo& job) {
    const int rank = std::max(job.record.node_rank, 0);
    return std::min(static_cast<size_t>(rank), job.nodes.size() - 1);
  }

  std::vector<Part> query(const std::vector<std::string>& addresses, const std::string& job_id) {
    std::vector<Part> parts;
    if (addresses.empty()) return parts;
    Talks talks(security());
    for (const std::string& address : addresses) {
      Ask ask;
      ask.mutable_query()->set_job_id(job_id);
      talks.start(
          address, std::move(ask),
          [&parts, address](const Tell& tell) {
            for (const std::string& job : tell.jobs().jobs()) {
              parts.push_back({address, read_job_info(job)});
            }
          },
          [this](const Error& error) {
            if (given_) all_answered_ = false;
            spdlog::log(given_ ? spdlog::level::err : spdlog::level::debug, "{}", error.what());
          });
    }
    talks.run();
    return parts;
  }

  static void add_local(const std::string& job_id, std::vector<Part>* parts) {
    for (const JobRecord& record : find_jobs()) {
      if (!job_id.empty() && record.job_id != job_id) continue;
      const bool known = std::any_of(parts->begin(), parts->end(), [&](const Part& part) {
        return part.job.record.pid == record.pid;
      });
      if (known) continue;
      Part part;
      part.job.record = record;
      part.job.phase = record.epoch > 0 ? JobPhase::kRunning : JobPhase::kForming;
      parts->push_back(std::move(part));
    }
  }

  std::vector<std::string> addresses_;
  std::string secret_file_;
  std::optional<Security> security_;
  bool given_ = false, all_answered_ = true;
};

// What all commands have in common.
CommandSyntax syntax_of(const std::string& name, const std::string& about, bool of_a_job) {
  CommandSyntax syntax{.program = "fleetrun " + name,
                       .words = of_a_job ? "JOB" : "",
                       .about = about,
                       .least = of_a_job ? size_t{1} : 0,
                       .most = of_a_job ? size_t{1} : 0,
                       .missing_word = "fleetrun ls shows their names"};
  return syntax;
}

void add_where(OptionGroup* options) {
  options
      ->texts({.key = "fleetd",
               .environment = {"FLEETD_NODES"},
               .value = "HOST:PORT,...",
               .optional = true},
              "the fleetds to ask (default: FLEETD_NODES, else this host)")
      .texts({.key = "ips", .value = "LIST", .optional = true, .spread = true},
             "the same, by node, on --fleetd_port")
      .integer({.key = "fleetd_port", .environment = {"FLEETD_PORT"}, .value = "PORT"},
               kDefaultFleetdPort, 1, 65535, "where they listen")
      .text({.key = "fleetd_secret_file", .value = "FILE", .optional = true}, "",
            "their secret (default: FLEETD_SECRET, ~/.config/fleetrun/fleetd.secret)");
}

void add_format(OptionGroup* options) {
  options->choice({.key = "format", .value = "table|json", .optional = true}, "table",
                  {"table", "json"}, "for people, or for programs");
}

Command command_of(CommandSyntax syntax, int (*run)(const CommandLine&)) {
  add_where(&syntax.options);
  const std::string name = syntax.program.substr(syntax.program.find(' ') + 1);
  return {.name = name, .syntax = std::move(syntax), .run = [run](const CommandLine& line) {
            set_up_logging("INFO", "fleetrun");
            return run(line);
          }};
}

bool wants_json(const CommandLine& line) { return line.settings.text("format") == "json"; }

std::vector<JobInfo> jobs_of(const std::vector<Part>& parts) {
  std::vector<JobInfo> jobs;
  for (const Part& part : parts) jobs.push_back(part.job);
  return jobs;
}

// --- stop ---

// Started without fleetd: its launcher tells the other nodes.
void stop_local(const JobRecord& record, bool kill) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, record.pid, 0)));
  if (!process) return;
  ::kill(record.pid, SIGTERM);
  if (kill) ::kill(record.pid, SIGINT);  // a second one; two of the same might be taken for one
  pollfd ended = {process.get(), POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
}

// --- logs ---

std::string shown_name(const Part& part) { return part.address.substr(0, part.address.rfind(':')); }

void show_output(const std::vector<Part>& parts, const daemon_wire::ReadLog& wish, Fleetds* fleetds,
                 bool* failed) {
  Talks talks(fleetds->security());
  ShownOutput output(talks.loop(), parts.size() > 1);
  for (const Part& part : parts) {
    Ask ask;
    *ask.mutable_read_log() = wish;
    const std::string name = shown_name(part);
    talks.start(
        part.address, std::move(ask),
        [&output, name](const Tell& tell) {
          if (tell.has_output()) output.write(name, tell.output().error(), tell.output().text());
        },
        [failed](const Error& error) {
          *failed = true;
          spdlog::error("{}", error.what());
        });
  }
  talks.run();
  output.flush();
  // What waits for a slow reader.
  boost::asio::io_context& loop = talks.loop();
  loop.restart();
  output.on_room([&] {
    if (output.idle()) loop.stop();
  });
  if (!output.idle()) loop.run();
}

const JobRecord::Rank* rank_of(const JobRecord& record, int rank, bool server) {
  for (const JobRecord::Rank& each : record.ranks) {
    if (each.rank == rank && each.server == server) return &each;
  }
  return nullptr;
}

int ls(const CommandLine& line) {
  const bool json = wants_json(line);
  Fleetds fleetds(line.settings);
  const std::vector<JobInfo> jobs = jobs_of(fleetds.find(""));
  std::fputs((json ? jobs_json(jobs) : jobs_table(jobs, unix_seconds())).c_str(), stdout);
  return fleetds.all_answered() ? 0 : 1;
}

int status(const CommandLine& line) {
  const bool json = wants_json(line);
  Fleetds fleetds(line.settings);
  const std::vector<JobInfo> jobs = jobs_of(fleetds.known(line.words[0]));
  std::fputs((json ? jobs_json(jobs) : job_status(jobs, unix_seconds())).c_str(), stdout);
  return fleetds.all_answered() ? 0 : 1;
}

int stop(const CommandLine& line) {
  const bool kill = line.settings.boolean("kill");
  Fleetds fleetds(line.settings);
  const std::string& job_id = line.words[0];
  const std::vector<Part> parts = fleetds.known(job_id);
  bool failed = false;
  Talks talks(fleetds.local() && parts[0].address.empty() ? Security{} : fleetds.security());
  for (const Part& part : parts) {
    if (part.address.empty()) {
      stop_local(part.job.record, kill);
      continue;
    }
    Ask ask;
    ask.mutable_stop()->set_job_id(job_id);
    ask.mutable_stop()->set_kill(kill);
    talks.start(
        part.address, std::move(ask), [](const Tell&) {},
        [&failed](const Error& error) {
          failed = true;
          spdlog::error("{}", error.what());
        });
  }
  talks.run();
  if (!failed) std::printf("job %s has ended\n", job_id.c_str());
  return failed ? 1 : 0;
}

int logs(const CommandLine& line) {
  const Settings& settings = line.settings;
  const bool server = settings.given("server"), chosen = server || settings.given("rank");
  if (server && settings.given("rank")) {
    throw Error(ErrorCode::kUsage, "--rank and --server name two logs", "fleetrun logs",
                "give one of them");
  }
  const bool follow = settings.boolean("follow");
  const auto rank = static_cast<int>(settings.integer(server ? "server" : "rank"));
  Fleetds fleetds(settings);
  const std::string& job_id = line.words[0];
  std::vector<Part> parts = fleetds.known(job_id);
  if (chosen) {
    std::erase_if(parts, [&](const Part& part) { return !rank_of(part.job.record, rank, server); });
    if (parts.empty()) {
      throw Error(ErrorCode::kNotFound, "no node that answers has rank " + std::to_string(rank),
                  "job " + job_id, "fleetrun status " + job_id + " shows what there is");
    }
    parts.resize(1);
  }
  const JobRecord& record = parts[0].job.record;
  if (parts[0].address.empty()) {
    if (chosen) {
      return show_local_log(rank_of(record, rank, server)->log_path, follow ? record.pid : -1);
    }
    throw Error(ErrorCode::kUsage, "its output is where it was started, nobody else keeps it",
                "job " + job_id, "--rank=R shows the log of a rank");
  }
  daemon_wire::ReadLog wish;
  wish.set_job_id(job_id);
  wish.set_rank(rank);
  wish.set_server(server);
  wish.set_follow(follow);
  bool failed = false;
  show_output(parts, wish, &fleetds, &failed);
  return failed ? 1 : 0;
}

int attach(const CommandLine& line) {
  Fleetds fleetds(line.settings);
  const std::string& job_id = line.words[0];
  const std::vector<Part> parts = fleetds.known(job_id);
  std::vector<std::string> addresses;
  for (const Part& part : parts) {
    if (!part.address.empty()) addresses.push_back(part.address);
  }
  if (addresses.empty()) {
    throw Error(ErrorCode::kUsage, "it was started without fleetd: its output is there",
                "job " + job_id, "fleetrun logs " + job_id + " -f --rank=0 follows a rank's log");
  }
  return attach_via_fleetd(job_id, addresses, fleetds.security());
}

}  // namespace

Command attach_command() {
  return command_of(syntax_of("attach",
                              "show a job until it ends, pass signals on\n"
                              "Its exit code is the job's.",
                              true),
                    attach);
}

Command logs_command() {
  CommandSyntax syntax =
      syntax_of("logs", "what a job has shown last, or one rank's whole log", true);
  syntax.options
      .integer({.key = "rank", .value = "R", .optional = true}, -1, 0, 1 << 30, "of this rank")
      .integer({.key = "server", .value = "R", .optional = true}, -1, 0, 1 << 30,
               "of this parameter server")
      .flag({.key = "follow", .aliases = {"f"}}, "go on until the job has ended");
  return command_of(std::move(syntax), logs);
}

Command ls_command() {
  CommandSyntax syntax = syntax_of("ls", "the jobs of this host, or of fleetds", false);
  add_format(&syntax.options);
  return command_of(std::move(syntax), ls);
}

Command status_command() {
  CommandSyntax syntax = syntax_of("status", "what is known of a job, on each of its nodes", true);
  add_format(&syntax.options);
  return command_of(std::move(syntax), status);
}

Command stop_command() {
  CommandSyntax syntax = syntax_of("stop",
                                   "end a job, and wait for its end\n"
                                   "SIGTERM to its ranks, then its grace time.",
                                   true);
  syntax.options.flag({.key = "kill"}, "SIGKILL at once");
  return command_of(std::move(syntax), stop);
}

}  // namespace fleet
