#include "tests/control/launch/jobs/fleetrun_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using SteadyClock = std::chrono::steady_clock;
// Generous: only against hanging.
constexpr int kDeadlineMs = 60'000;
constexpr char kMark[] = "FLEET_TEST_MARK";

std::string proc_file(pid_t pid, const char* name) {
  try {
    return read_file("/proc/" + std::to_string(pid) + "/" + name);
  } catch (const Error&) {
    return {};
  }
}

bool is_zombie(pid_t pid) {
  const std::string stat = proc_file(pid, "stat");
  const size_t end = stat.rfind(')');
  return end == std::string::npos || stat.substr(end, 4).find('Z') != std::string::npos;
}

}  // namespace

JobFolder::JobFolder() {
  std::string pattern = ::testing::TempDir() + "fleet_job.XXXXXX";
  path_ = ::mkdtemp(pattern.data());
  static std::atomic<int> count{0};
  mark_ = std::to_string(::getpid()) + "." + std::to_string(++count);
}

JobFolder::~JobFolder() {
  for (const pid_t pid : processes()) ::kill(pid, SIGKILL);
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string JobFolder::marked_environment() const { return kMark + ("=" + mark_); }

std::vector<pid_t> JobFolder::processes() const {
  std::vector<pid_t> found;
  const std::string wanted = marked_environment();
  DIR* proc = ::opendir("/proc");
  while (const dirent* entry = ::readdir(proc)) {
    long long number = 0;
    if (!parse_int(entry->d_name, &number)) continue;
    const auto pid = static_cast<pid_t>(number);
    const std::string variables = std::string(1, '\0') + proc_file(pid, "environ");
    const bool marked = variables.find('\0' + wanted + '\0') != std::string::npos;
    if (marked && !is_zombie(pid)) found.push_back(pid);
  }
  ::closedir(proc);
  return found;
}

std::vector<pid_t> JobFolder::processes(const std::string& name) const {
  std::vector<pid_t> found;
  for (const pid_t pid : processes()) {
    if (trim(proc_file(pid, "comm")) == name) found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> JobFolder::survivors(double seconds) const {
  const auto deadline = SteadyClock::now() + std::chrono::duration<double>(seconds);
  std::vector<pid_t> left = processes();
  while (!left.empty() && SteadyClock::now() < deadline) {
    ::poll(nullptr, 0, 10);
    left = processes();
  }
  return left;
}

std::string JobFolder::read(const std::string& file) const {
  try {
    return read_file(path_ + "/" + file);
  } catch (const Error&) {
    return {};
  }
}

void JobFolder::wait_for(const std::string& file) const {
  const auto deadline = SteadyClock::now() + std::chrono::milliseconds(kDeadlineMs);
  const std::string path = path_ + "/" + file;
  while (!std::filesystem::exists(path) && SteadyClock::now() < deadline) ::poll(nullptr, 0, 5);
  ASSERT_TRUE(std::filesystem::exists(path)) << path;
}

Fleetrun::Fleetrun(const JobFolder& folder, const std::string& name,
                   std::vector<std::string> arguments, const Environment& environment,
                   const std::string& terminal, const std::string& program,
                   const std::string& errors)
    : folder_(folder), name_(name) {
  Environment changes = environment;
  changes.emplace_back(kMark, folder.mark());
  changes.emplace_back("FLEET_TEST_FOLDER", folder.path());
  changes.emplace_back("FLEET_RUNTIME_DIR", folder.path() + "/run");
  const bool own_secret = std::any_of(environment.begin(), environment.end(), [](const auto& each) {
    return each.first == "FLEETD_SECRET";
  });
  if (!own_secret) changes.emplace_back("FLEETD_SECRET", "a secret of these tests");
  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry, key = text.substr(0, text.find('='));
    // Variables that a launcher reads: the tests must not depend on the environment of their start.
    const bool ours = key.starts_with("PADDLE_") || key.starts_with("FLAGS_") ||
                      key == "OMP_NUM_THREADS" || key == "POD_IP" || key == "CUDA_VISIBLE_DEVICES";
    bool changed = ours;
    for (const auto& change : changes) changed = changed || change.first == key;
    if (!changed) variables.push_back(text);
  }
  variables.push_back("CUDA_VISIBLE_DEVICES=");  // CPU mode also where there are GPUs
  for (const auto& [key, value] : changes) {
    if (!value.empty()) variables.push_back(key + "=" + value);
  }
  arguments.insert(arguments.begin(), program_folder() + "/" + program);
  std::vector<char*> argv, envp;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  for (std::string& variable : variables) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addchdir_np(&actions, folder.path().c_str());
  ::posix_spawn_file_actions_addopen(&actions, 1, (name + ".out").c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  if (!terminal.empty()) {
    ::posix_spawn_file_actions_addopen(&actions, 1, terminal.c_str(), O_RDWR | O_NOCTTY, 0);
  }
  if (!errors.empty()) {
    ::posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(),
                                       O_RDWR | O_CREAT | O_APPEND | O_NOCTTY, 0644);
  }
  const int error = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data());
  ::posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0) << "cannot start " << argv[0];
}

Fleetrun::~Fleetrun() {
  if (code_ >= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Fleetrun::signal(int number) const { ASSERT_EQ(::kill(pid_, number), 0); }

int Fleetrun::wait() {
  if (code_ >= 0) return code_;
  const UniqueFd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd readable = {ended.get(), POLLIN, 0};
  if (::poll(&readable, 1, kDeadlineMs) != 1) {
    ADD_FAILURE() << "fleetrun does not end:\n" << output();
    ::kill(pid_, SIGKILL);
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return code_;
}

std::string Fleetrun::output() const { return folder_.read(name_ + ".out"); }

}  // namespace fleet
