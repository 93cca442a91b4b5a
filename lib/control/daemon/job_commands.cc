// fleetrun ls, status, logs, attach and stop.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>

#include "base/clock.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/terminal_width.h"
#include "daemon/attach_terminal.h"
#include "daemon/console_output.h"
#include "daemon/fleetd_client.h"
#include "daemon/job_info.h"
#include "daemon/job_store.h"
#include "daemon/protocol.h"
#include "daemon/via.h"
#include "launch/planning/refuse.h"
#include "node/control_socket.h"
#include "node/process_handle.h"
#include "observe/progress.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

// The parts common to all commands.
CommandSyntax syntax_of(const std::string& name, const std::string& about, bool of_a_job) {
  CommandSyntax syntax{.program = "fleetrun " + name,
                       .words = of_a_job ? "JOB" : "",
                       .about = about,
                       .least = of_a_job ? size_t{1} : 0,
                       .most = of_a_job ? size_t{1} : 0,
                       .missing_word = "fleetrun ls lists the jobs"};
  return syntax;
}

void add_format(OptionGroup* options) {
  options->choice({.key = "format", .value = "table|json", .optional = true}, "table",
                  {"table", "json"}, "output format (default: table)");
}

void run_with(Command* def, int (*run)(const CommandLine&)) {
  add_fleetd_options(&def->syntax.options);
  def->run = [run](const CommandLine& line) {
    set_up_logging("INFO", "fleetrun");
    return run(line);
  };
}

bool wants_json(const CommandLine& line) { return line.settings.text("format") == "json"; }

std::vector<JobInfo> jobs_of(const std::vector<JobPart>& parts) {
  std::vector<JobInfo> jobs;
  for (const JobPart& part : parts) jobs.push_back(part.job);
  return jobs;
}

// --- stop ---

// For a job without fleetd: its launcher stops the other nodes too.
void stop_local(const JobRecord& record, const wire::StopRequest& how) {
  const ProcessHandle launcher(record.pid(), record.start_ticks());
  if (!launcher.runs()) return;
  try {
    stop_launcher(launcher, how);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;  // it has just ended
  }
  launcher.wait();
}

Grace grace_of(const CommandLine& line) {
  if (!line.settings.given("grace")) return std::nullopt;
  return std::chrono::milliseconds(static_cast<int64_t>(line.settings.number("grace") * 1000));
}

// --- logs ---

std::string host_of(const JobPart& part) { return part.address.substr(0, part.address.rfind(':')); }

void show_output(const std::vector<JobPart>& parts, const wire::ReadLog& log_request,
                 FleetdClient* fleetds, bool* failed) {
  FleetdCalls calls(fleetds->security());
  ConsoleOutput output(calls.loop(), parts.size() > 1 && log_request.rank() < 0,
                       ConsoleOutput::Kind::kHistory);
  output.on_drained([&] { calls.pause_reading(output.full()); });
  for (const JobPart& part : parts) {
    wire::ClientMessage request;
    *request.mutable_read_log() = log_request;
    const std::string name = host_of(part);
    calls.start(
        part.address, std::move(request),
        [&output, &calls, name](const wire::FleetdMessage& event) {
          if (event.has_output()) output.write(name, event.output().error(), event.output().text());
          calls.pause_reading(output.full());
        },
        [failed](const Error& error) {
          *failed = true;
          spdlog::error("{}", error.what());
        });
  }
  calls.run();
  output.flush();
  // Write the rest for a slow reader.
  EventLoop& loop = calls.loop();
  loop.restart();
  output.on_drained([&] {
    if (output.idle()) loop.stop();
  });
  if (!output.idle()) loop.run();
  if (output.report_loss()) *failed = true;
}

const JobRecord::Rank* rank_of(const JobRecord& record, int rank, bool server) {
  for (const JobRecord::Rank& each : record.ranks()) {
    if (each.rank() == rank && each.server() == server) return &each;
  }
  return nullptr;
}

// The number of ended jobs that ls shows.
constexpr size_t kShownEnded = 10;

int ls(const CommandLine& line) {
  const bool json = wants_json(line);
  FleetdClient fleetds(line.settings);
  std::vector<JobInfo> jobs = jobs_of(fleetds.find(""));
  if (json) {
    std::fputs(jobs_json(jobs).c_str(), stdout);
  } else {
    const bool all = line.settings.boolean("all");
    const size_t left_out = all ? 0 : trim_ended_runs(kShownEnded, &jobs);
    const JobsView view = {static_cast<size_t>(terminal_width(STDOUT_FILENO)),
                           wants_colors(STDOUT_FILENO)};
    std::fputs(jobs_table(jobs, unix_seconds(), view).c_str(), stdout);
    if (left_out > 0) std::fprintf(stderr, "%zu more ended jobs: fleetrun ls --all\n", left_out);
  }
  return fleetds.all_answered() ? 0 : 1;
}

int status(const CommandLine& line) {
  const bool json = wants_json(line);
  FleetdClient fleetds(line.settings);
  const std::vector<JobInfo> jobs = jobs_of(fleetds.require(line.words[0]));
  std::fputs((json ? jobs_json(jobs) : job_status(jobs, unix_seconds())).c_str(), stdout);
  return fleetds.all_answered() ? 0 : 1;
}

int stop(const CommandLine& line) {
  if (line.settings.boolean("kill") && line.settings.given("grace")) {
    refuse("--kill leaves no grace time", "--grace", "give one of --kill and --grace");
  }
  const wire::StopRequest how =
      stop_request(SIGTERM, line.settings.boolean("kill"), grace_of(line));
  FleetdClient fleetds(line.settings);
  const std::string& job_id = line.words[0];
  const std::vector<JobPart> parts = fleetds.require(job_id);
  bool failed =
      !fleetds.all_answered();  // a part of the job may still run on a node that did not answer
  FleetdCalls calls(fleetds.local() && parts[0].address.empty() ? Security{} : fleetds.security());
  for (const JobPart& part : parts) {
    if (part.address.empty()) {
      if (part.job.phase() != JobInfo::ENDED) stop_local(part.job.record(), how);
      continue;
    }
    wire::ClientMessage request;
    request.mutable_stop_named()->set_job_id(job_id);
    *request.mutable_stop_named()->mutable_how() = how;
    calls.start(
        part.address, std::move(request), [](const wire::FleetdMessage&) {},
        [&failed](const Error& error) {
          failed = true;
          spdlog::error("{}", error.what());
        });
  }
  calls.run();
  if (!failed) std::printf("job %s has ended\n", shown_name(job_id).c_str());
  return failed ? 1 : 0;
}

// --- jobs without fleetd ---

// The ranks that the console shows, or else the first one.
std::vector<JobRecord::Rank> shown_ranks(const std::vector<JobPart>& parts) {
  std::vector<JobRecord::Rank> all, shown;
  for (const JobPart& part : parts) {
    for (const JobRecord::Rank& rank : part.job.record().ranks()) {
      all.push_back(rank);
      if (rank.shown()) shown.push_back(rank);
    }
  }
  if (all.empty()) {
    throw Error(ErrorCode::kNotFound, "no rank has started yet",
                "job " + parts[0].job.record().job_id(), "see its state with fleetrun ls");
  }
  return shown.empty() ? std::vector<JobRecord::Rank>{all[0]} : shown;
}

void show_local(const std::vector<JobPart>& parts, LocalOutput* output, bool follow) {
  if (follow) return follow_local(output, jobs_of(parts));
  const bool all = output->copy();
  output->finish();
  if (!all) {
    throw Error(ErrorCode::kNotFound, "the log no longer exists", output->paths()[0]);
  }
}

int attach_local(const std::vector<JobPart>& parts) {
  const JobInfo& job = parts[0].job;
  const bool never_ran = job.phase() == JobInfo::ENDED && job.record().ranks().empty();
  LocalOutput output(kConsoleLogBytes, true);
  for (const JobRecord::Rank& rank :
       never_ran ? std::vector<JobRecord::Rank>() : shown_ranks(parts)) {
    output.add(rank);
  }
  switch (attach_to_local(&output, jobs_of(parts))) {
    case AttachEnd::kDetached:
      print_detached(job.record().job_id());
      return 0;
    case AttachEnd::kHungUp:
      return 128 + SIGHUP;
    case AttachEnd::kJobEnded:
      break;
  }
  std::vector<JobInfo> now;
  for (const JobPart& part : parts) {
    if (auto again = refresh(part.job.record())) now.push_back(std::move(*again));
  }
  const JobInfo* ended = now.empty() ? nullptr : &authoritative_part(now);
  if (!ended || ended->phase() != JobInfo::ENDED) {
    throw Error(ErrorCode::kNotFound, "its outcome is unknown", "job " + job.record().job_id(),
                "see verdict.json in " + job.record().log_dir());
  }
  const std::string failure = failure_text(ended->record().verdict());
  if (!failure.empty()) spdlog::error("{}", failure);
  if (ended->killed()) spdlog::error("its fleetrun (pid {}) was killed", ended->record().pid());
  return ended->code();
}

int logs(const CommandLine& line) {
  const Settings& settings = line.settings;
  const bool server = settings.given("server"), chosen = server || settings.given("rank");
  if (server && settings.given("rank")) {
    refuse("--rank and --server select different logs", "logs", "give only one of them");
  }
  const bool follow = settings.boolean("follow");
  const auto rank = static_cast<int>(settings.integer(server ? "server" : "rank"));
  FleetdClient fleetds(settings);
  const std::string& job_id = line.words[0];
  std::vector<JobPart> parts = fleetds.require(job_id);
  if (chosen) {
    const auto here = std::find_if(parts.begin(), parts.end(), [&](const JobPart& part) {
      return rank_of(part.job.record(), rank, server);
    });
    if (here == parts.end()) {
      throw Error(ErrorCode::kNotFound, "no reachable node has rank " + std::to_string(rank),
                  "job " + job_id, "fleetrun status " + job_id + " lists the ranks");
    }
    // After a restart, the rank may run on another node.
    if (!follow || here->address.empty()) parts = {JobPart(*here)};
    if (parts.size() > 1)
      std::erase_if(parts, [](const JobPart& part) { return part.address.empty(); });
  }
  if (parts[0].address.empty()) {
    LocalOutput output(chosen ? std::numeric_limits<int64_t>::max() : kConsoleLogBytes);
    if (chosen) output.add(*rank_of(parts[0].job.record(), rank, server));
    if (!chosen) {
      for (const JobRecord::Rank& shown : shown_ranks(parts)) output.add(shown);
    }
    show_local(parts, &output, follow);
    return 0;
  }
  wire::ReadLog log_request;
  log_request.set_job_id(job_id);
  log_request.set_rank(rank);
  log_request.set_server(server);
  log_request.set_follow(follow);
  bool failed = false;
  show_output(parts, log_request, &fleetds, &failed);
  return failed || !fleetds.all_answered() ? 1 : 0;
}

int attach(const CommandLine& line) {
  FleetdClient fleetds(line.settings);
  const std::string& job_id = line.words[0];
  const std::vector<JobPart> parts = fleetds.require(job_id);
  std::vector<std::string> addresses;
  for (const JobPart& part : parts) {
    if (!part.address.empty()) addresses.push_back(part.address);
  }
  if (addresses.empty()) return attach_local(parts);
  return attach_via_fleetd(job_id, addresses, parts[0].job.restarts(), fleetds.security());
}

}  // namespace

FLEET_COMMAND(attach) {
  def.syntax = syntax_of("attach",
                         "show a job's output until it ends, and forward signals\n"
                         "Exits with the exit code of the job. Ctrl-D detaches: the job continues. "
                         "The\nfirst Ctrl-C says that a second one within 5 s stops the job. A "
                         "SIGINT from a\nprogram stops it at once. SIGHUP detaches.",
                         true);
  run_with(&def, attach);
}

FLEET_COMMAND(logs) {
  def.syntax = syntax_of("logs", "show the latest output of a job, or a rank's whole log", true);
  def.syntax.options
      .integer({.key = "rank", .value = "R", .optional = true}, -1, 0, 1 << 30,
               "rank whose log to show")
      .integer({.key = "server", .value = "R", .optional = true}, -1, 0, 1 << 30,
               "parameter server whose log to show")
      .flag({.key = "follow", .aliases = {"f"}}, "follow the output until the job ends");
  run_with(&def, logs);
}

FLEET_COMMAND(ls) {
  def.syntax = syntax_of("ls", "list the jobs of this host, or of fleetds", false);
  add_format(&def.syntax.options);
  def.syntax.options.flag({.key = "all"}, "list all ended jobs, not only the last ten");
  run_with(&def, ls);
}

FLEET_COMMAND(status) {
  def.syntax = syntax_of("status", "show the state of a job on each of its nodes", true);
  add_format(&def.syntax.options);
  run_with(&def, status);
}

FLEET_COMMAND(stop) {
  def.syntax = syntax_of("stop",
                         "stop a job, and wait for its end\n"
                         "Sends SIGTERM to its ranks, and SIGKILL after the grace time.",
                         true);
  def.syntax.options.flag({.key = "kill"}, "kill the ranks at once")
      .number({.key = "grace", .value = "SECONDS", .optional = true}, 0, 0, 86'400,
              "time between SIGTERM and SIGKILL (default: the job's own --grace)");
  run_with(&def, stop);
}

}  // namespace fleet
