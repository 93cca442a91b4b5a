#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "base/child_process.h"
#include "base/env.h"
#include "base/file.h"
#include "daemon/node_jobs.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

// The pid of the fleetd that started a launcher.
constexpr char kEnvFleetdPid[] = "FLEETD_PID";

std::vector<std::string> variables_of(const wire::JobRequest& request) {
  // For duplicate names, the last value wins.
  std::map<std::string, std::string> set;
  for (const wire::NamedValue& variable : request.environment()) {
    set[variable.name()] = variable.value();
  }
  set[kEnvFleetdPid] = std::to_string(::getpid());
  // Do not pass on fleetd's secret, or systemd's variables for fleetd.
  const std::set<std::string> own = {"FLEETD_SECRET", "NOTIFY_SOCKET", "INVOCATION_ID",
                                     "STATE_DIRECTORY", "RUNTIME_DIRECTORY"};
  std::vector<std::string> all;
  for (const std::string& text : whole_environment()) {
    const std::string name = text.substr(0, text.find('='));
    if (!own.contains(name) && !set.contains(name)) all.push_back(text);
  }
  for (const auto& [name, value] : set) all.push_back(name + "=" + value);
  return all;
}

}  // namespace

LauncherProcess::LauncherProcess(EventLoop& loop, const wire::JobRequest& request, int rdzv_port,
                                 OnOutput on_output)
    : on_output_(std::move(on_output)), output_(loop, false), errors_(loop, true) {
  std::error_code none;
  if (!std::filesystem::is_directory(request.folder(), none)) {
    refuse("the working directory does not exist", request.folder(),
           "choose a folder of the nodes with --chdir");
  }
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
  output_.end.assign(UniqueFd(out[0]));
  const UniqueFd out_end(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
  errors_.end.assign(UniqueFd(err[0]));
  const UniqueFd err_end(err[1]);
  for (const int fd : {out[0], err[0]}) ::fcntl(fd, F_SETFL, O_NONBLOCK);

  ChildProgram program;
  program.path = "/proc/self/exe";  // this very binary, even if an upgrade has replaced its file
  program.words = {"fleetrun"};
  std::vector<std::string>& words = program.words;
  words.insert(words.end(), request.arguments().begin(), request.arguments().end());
  if (rdzv_port > 0) words.push_back("--rdzv_port=" + std::to_string(rdzv_port));
  words.emplace_back("--");
  words.insert(words.end(), request.program().begin(), request.program().end());
  program.environment = variables_of(request);
  program.folder = request.folder();
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  program.input = null.get();
  program.output = out_end.get();
  program.errors = err_end.get();
  program.own_session = true;
  program.blocked_signals.emplace();
  ::sigemptyset(&*program.blocked_signals);
  program.default_signals = true;
  pid_ = start_child(program);
  if (pid_ < 0) throw_errno("cannot start fleetrun", request.folder(), Wanted::kProcess);
  wait(&output_);
  wait(&errors_);
}

void LauncherProcess::signal(int number) {
  if (!reaped_) ::kill(pid_, number);
}

void LauncherProcess::pause(bool paused) {
  if (paused_ == paused) return;
  paused_ = paused;
  if (paused) return;
  wait(&output_);
  wait(&errors_);
}

void LauncherProcess::on_reaped() {
  reaped_ = true;
  for (Pipe* pipe : {&output_, &errors_}) {
    while (!pipe->closed && read(pipe)) {
    }
    // Other holders of the pipe's far end are no longer part of the job.
    pipe->end.close();
    pipe->closed = true;
  }
}

void LauncherProcess::wait(Pipe* pipe) {
  if (pipe->waits || pipe->closed || paused_) return;
  pipe->waits = true;
  pipe->end.wait(LoopDescriptor::Event::kReadable, [this, pipe](std::error_code error) {
    if (error) return;
    pipe->waits = false;
    if (paused_) return;
    read(pipe);
    wait(pipe);
  });
}

bool LauncherProcess::read(Pipe* pipe) {
  char buffer[65536];
  const ssize_t size = ::read(pipe->end.get(), buffer, sizeof buffer);
  if (size > 0) on_output_(pipe->error, {buffer, static_cast<size_t>(size)});
  if (size == 0) pipe->closed = true;
  return size > 0;
}

void die_with_fleetd() {
  const char* text = std::getenv(kEnvFleetdPid);
  if (!text) return;
  const auto parent = static_cast<pid_t>(std::atol(text));
  ::unsetenv(kEnvFleetdPid);  // fleetrun processes inside the job are not fleetd's children
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(128 + SIGKILL);  // fleetd died before prctl()
}

}  // namespace fleet
