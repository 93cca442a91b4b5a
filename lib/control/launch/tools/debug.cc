#include "launch/tools/debug.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/child_process.h"
#include "base/commands.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_size_signal.h"
#include "base/text.h"
#include "launch/planning/program.h"
#include "launch/planning/refuse.h"
#include "node/proc_view.h"
#include "node/process_handle.h"
#include "transport/local_socket.h"

namespace fleet {
namespace {

// The start of a process.
struct Started {
  std::vector<std::string> command, environment;
  std::string folder;
  cpu_set_t cores;
};

std::vector<std::string> strings_of(const std::string& path) {
  std::string bytes;
  try {
    bytes = read_file(path);
  } catch (const Error&) {
  }
  std::vector<std::string> all;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\0', at), bytes.size());
    all.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

Started started_with(const FoundRank& found) {
  const std::string process = proc_folder(found.rank.pid());
  Started started;
  started.command = strings_of(process + "/cmdline");
  started.environment = strings_of(process + "/environ");
  std::error_code error;
  started.folder = std::filesystem::read_symlink(process + "/cwd", error).string();
  CPU_ZERO(&started.cores);
  ::sched_getaffinity(found.rank.pid(), sizeof started.cores, &started.cores);
  if (started.command.empty() || started.environment.empty() || error) {
    throw Error(
        ErrorCode::kNotFound,
        "its process " + std::to_string(found.rank.pid()) + " has ended or belongs to another user",
        "rank " + std::to_string(found.rank.rank()), "see " + found.rank.log_path());
  }
  return started;
}

bool is_placeholder(const std::vector<std::string>& command) {
  return command.size() > 4 && command[1] == "debug" && command[2] == kPlaceholderFlag;
}

// A foreground program gets this terminal's settings. Unless it is the rank itself, it must not
// report progress in the rank's place.
std::vector<std::string> foreground_environment(std::vector<std::string> all, bool is_the_rank) {
  for (const char* name : {"TERM", "DISPLAY", "COLORTERM"}) {
    const std::string prefix = std::string(name) + "=";
    std::erase_if(all, [&](const std::string& entry) { return entry.starts_with(prefix); });
    if (const auto value = get_env(name)) all.push_back(prefix + *value);
  }
  if (!is_the_rank) {
    std::erase_if(all, [](const std::string& entry) {
      return entry.starts_with("FLEET_PROGRESS_FILE=") ||
             entry.starts_with("FLEET_COLLECTIVES_FILE=") || entry.starts_with("FLEET_STEPS_FILE=");
    });
  }
  return all;
}

[[noreturn]] void execute(const std::vector<std::string>& command,
                          const std::vector<std::string>& environment) {
  const std::vector<char*> argv = pointers_to(command), variables = pointers_to(environment);
  restore_file_size_signal();
  ::execvpe(argv[0], argv.data(), variables.data());
  refuse(std::string("cannot be executed: ") + std::strerror(errno), command[0],
         "install it, or give another program after --");
}

// Replaces the calling process with the command, run as the rank would be.
[[noreturn]] void execute_as(const Started& started, const std::vector<std::string>& command,
                             bool is_the_rank) {
  if (::chdir(started.folder.c_str()) != 0) throw_errno("cannot enter", started.folder);
  ::sched_setaffinity(0, sizeof started.cores, &started.cores);
  execute(command, foreground_environment(started.environment, is_the_rank));
}

// --- the rank that waits for its program ---

sockaddr_un address_of(pid_t pid, socklen_t* size) {
  const std::string name = "fleetrun-debug-" + std::to_string(pid);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // abstract: no file
  *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

// Waits until a fleetrun debug has run the program; returns the program's exit code.
int wait_for_program() {
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t size = 0;
  const sockaddr_un address = address_of(::getpid(), &size);
  if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener.get(), 1) != 0) {
    throw_errno("cannot wait for fleetrun debug");
  }
  const std::string rank = env_or("PADDLE_TRAINER_ID", "0");
  std::printf("rank %s waits for its program: fleetrun debug --rank %s -- gdb --args\n",
              rank.c_str(), rank.c_str());
  std::fflush(stdout);
  for (;;) {
    const UniqueFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client && (errno == EMFILE || errno == ENFILE)) throw_errno("cannot accept a connection");
    if (!client || !is_own_peer(client.get())) continue;
    int32_t code = 0;
    const ssize_t n = ::recv(client.get(), &code, sizeof code, MSG_WAITALL);
    if (n == sizeof code) return code;
    std::printf("fleetrun debug was killed before the program had ended\n");
    return 1;
  }
}

UniqueFd connect_to(pid_t placeholder) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t size = 0;
  const sockaddr_un address = address_of(placeholder, &size);
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    refuse("it is not waiting for fleetrun debug", "pid " + std::to_string(placeholder),
           "try again; if its program already runs, use fleetrun debug --attach");
  }
  return socket;
}

// Runs the program as the rank and reports its exit code to the process that stands in for it.
int run_as_rank(const Started& started, const std::vector<std::string>& command,
                pid_t placeholder) {
  const UniqueFd rank = connect_to(placeholder);
  const pid_t pid = ::fork();
  if (pid < 0) throw_errno("cannot start another process", {}, Wanted::kProcess);
  if (pid == 0) {
    try {
      execute_as(started, command, true);
    } catch (const Error& error) {
      std::fprintf(stderr, "fleetrun: %s\n", error.what());
      ::_exit(127);
    }
  }
  // Leave the terminal's Ctrl-C to the debugger.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGQUIT, SIG_IGN);
  constexpr int kLookMs = 100;  // without a descriptor
  const ProcessHandle child(pid);
  const UniqueFd ended = child.end_descriptor();
  pollfd waits[] = {{ended.get(), POLLIN, 0}, {rank.get(), POLLIN, 0}};
  while (child.runs() && ::poll(waits, 2, ended ? -1 : kLookMs) <= 0) {
  }
  if (waits[1].revents != 0 && child.runs()) {
    std::fprintf(stderr, "\nfleetrun: the job has ended without this rank; it is left to you\n");
  }
  const int32_t code = wait_for_child(pid);
  ::send(rank.get(), &code, sizeof code, MSG_NOSIGNAL);
  return code;
}

}  // namespace

DebugRequest parse_debug_request(const CommandLine& line) {
  DebugRequest request;
  request.rank = static_cast<int>(line.settings.integer("rank"));
  if (request.rank < 0) refuse("no rank is given", "debug", "add --rank R");
  if (!line.words.empty()) request.job = line.words[0];
  request.attach = line.settings.boolean("attach");
  request.wrapper = line.rest;
  if (request.wrapper.empty()) {
    request.wrapper = request.attach ? std::vector<std::string>{"gdb", "-p"}
                                     : std::vector<std::string>{"gdb", "--args"};
  }
  return request;
}

FoundRank find_rank(const DebugRequest& request, const std::vector<JobRecord>& jobs) {
  std::vector<FoundRank> found;
  std::vector<std::string> others;
  for (const JobRecord& job : jobs) {
    if (!request.job.empty() && job.job_id() != request.job &&
        std::to_string(job.pid()) != request.job)
      continue;
    std::vector<std::string> ranks;
    for (const JobRecord::Rank& rank : job.ranks()) {
      if (rank.server()) continue;
      ranks.push_back(std::to_string(rank.rank()));
      if (rank.rank() == request.rank) found.push_back({job, rank});
    }
    others.push_back("job '" + job.job_id() + "' (pid " + std::to_string(job.pid()) + ") has " +
                     (ranks.empty() ? "no rank yet" : "rank " + join(ranks, ", ")));
  }
  const std::string rank = "rank " + std::to_string(request.rank);
  if (found.empty()) {
    refuse(others.empty() ? "no job " + (request.job.empty() ? "" : "'" + request.job + "' ") +
                                "runs on this node"
                          : "no job on this node has it: " + join(others, "; "),
           rank, "run this on the node of the rank; fleetrun ls lists the jobs of this node");
  }
  if (found.size() > 1) {
    std::vector<std::string> names;
    for (const FoundRank& one : found) {
      names.push_back(one.job.job_id() + " (pid " + std::to_string(one.job.pid()) + ")");
    }
    refuse("several jobs have it: " + join(names, ", "), rank,
           "add the job id, or the pid of its fleetrun");
  }
  return found[0];
}

namespace {

int run_debug(const CommandLine& line) {
  if (line.settings.boolean("stand_in")) return wait_for_program();
  const DebugRequest request = parse_debug_request(line);
  const FoundRank found = find_rank(request, find_jobs());
  std::vector<std::string> command = request.wrapper;
  const std::string pid = std::to_string(found.rank.pid());
  const Started started = started_with(found);
  const bool waits = is_placeholder(started.command);
  if (request.attach) {
    if (waits)
      refuse("its program has not started yet", "rank " + std::to_string(request.rank),
             "start it: fleetrun debug without --attach");
    command.push_back(pid);
    execute(command, whole_environment());
  }
  const auto program = started.command.begin() + (waits ? 4 : 0);
  command.insert(command.end(), program, started.command.end());
  if (waits) return run_as_rank(started, command, found.rank.pid());
  std::fprintf(
      stderr,
      "fleetrun: rank %d already runs, as pid %s. This second process has its environment, "
      "folder and cores, but cannot take part in collective operations and may write the "
      "same files. To debug the rank itself use --attach, or start the job with "
      "--debug_rank=%d\n",
      request.rank, pid.c_str(), request.rank);
  execute_as(started, command, false);
}

}  // namespace

FLEET_COMMAND(debug) {
  def.syntax = {
      .program = "fleetrun debug",
      .words = "--rank R [JOB] [-- WRAPPER...]",
      .about =
          "debug one rank of a job, at its start or while it runs\n"
          "Starts the program of rank R of a job on this node in the foreground, with "
          "the environment,\nfolder and cores of that rank: WRAPPER PROGRAM ARGUMENTS... (default "
          "wrapper: "
          "gdb --args).\nIf the job was started with --debug_rank=R, this process is the rank. "
          "Otherwise it is "
          "a second process\nalongside the rank and cannot take part in collective operations.",
      .most = 1,
      .takes_rest = true};
  def.syntax.options
      .integer({.key = "rank", .value = "R", .optional = true}, -1, 0, 1 << 30,
               "rank of the job, counted from 0")
      .flag({.key = "attach"},
            "run WRAPPER PID on the running rank instead (default wrapper: gdb -p)")
      .flag({.key = "stand_in", .internal = true}, "wait for a fleetrun debug");
  def.run = run_debug;
}

}  // namespace fleet
