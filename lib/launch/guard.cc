#include "launch/guard.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/addresses.h"
#include "rendezvous/certificates.h"
#include "rendezvous/job_secret.h"

namespace fleet {
namespace {

// The words of this process's command line, for a shell.
std::string own_command_line() {
  std::string line;
  std::istringstream words(read_file("/proc/self/cmdline"));
  for (std::string word; std::getline(words, word, '\0');) {
    line += (line.empty() ? "" : " ") + shell_word(word);
  }
  return line;
}

// The other nodes read the same file where the home is shared. Where it is not, somebody has to
// bring it to them: only a terminal is shown the secret, logs are not.
void say_made(const Security& security) {
  spdlog::info("made the secret of your jobs: {}. Nodes without this folder need a copy",
               security.origin);
  if (::isatty(STDERR_FILENO) != 1) return;
  std::fprintf(stderr, "of it, or to be started with this line:\n  %s=%s %s\n", kEnvJobSecret,
               security.secret.c_str(), own_command_line().c_str());
}

Security shared_secret(const Settings& settings, const Topology& topology, bool make) {
  const bool hosts = topology.hosting == Topology::Hosting::kYes;
  try {
    const FoundSecret found = find_secret(settings.text("secret_file"), make);
    if (found.made && hosts) say_made(found.security);
    return found.security;
  } catch (const Error&) {
    // Nothing is given and nothing can be kept: a secret for this once, where somebody can see it.
    const bool given = settings.given("secret_file") || ::getenv(kEnvJobSecret);
    if (!given && !make) return {};  // --dry_run: it would be made
    if (given || !hosts || ::isatty(STDERR_FILENO) != 1) throw;
    const Security made{new_secret(), true, "made for this job"};
    std::fprintf(stderr, "start the other nodes with this line:\n  %s=%s %s\n", kEnvJobSecret,
                 made.secret.c_str(), own_command_line().c_str());
    return made;
  }
}

}  // namespace

Security guard_job(const Settings& settings, const Topology& topology, bool make) {
  if (settings.boolean("insecure")) {
    if (settings.given("secret_file")) {
      throw Error(ErrorCode::kUsage, "it contradicts --insecure", "--secret_file",
                  "give one of them");
    }
    return {};
  }
  if (!topology.alone()) return shared_secret(settings, topology, make);
  // Its Unix socket asks the kernel who comes. A bad file is an error nevertheless.
  const std::string& file = settings.text("secret_file");
  if (!file.empty()) read_secret(file);
  return {};
}

CredentialsFile::CredentialsFile(const Security& security) {
  if (security.open()) return;
  memory_ = UniqueFd(::memfd_create("fleetrun credentials", MFD_CLOEXEC));
  if (!memory_) throw_errno("no memory for the ranks' credentials");
  const std::string text = to_text(security);
  if (::fchmod(memory_.get(), 0400) != 0 ||
      ::write(memory_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw_errno("cannot keep the ranks' credentials");
  }
  path_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(memory_.get());
}

namespace {

int run_secret(const CommandLine& line) {
  const bool fresh = line.settings.boolean("new"), show = line.settings.boolean("show");
  if (fresh && show) {
    throw Error(ErrorCode::kUsage, "--new and --show contradict each other", "fleetrun secret",
                "give one of them");
  }
  if (fresh) {
    std::puts(new_secret().c_str());
    return 0;
  }
  const std::string path = default_secret_path();
  if (path.empty()) {
    throw Error(ErrorCode::kUsage, "there is no home to keep it in", "HOME",
                "`fleetrun secret --new` prints one");
  }
  const bool made = !show && make_secret(path);
  const std::string secret = read_secret(path);
  if (show) {
    std::puts(secret.c_str());
  } else {
    std::printf("%s: %s %s\n", path.c_str(), made ? "made the secret" : "has the secret",
                secret_id(secret).c_str());
  }
  return 0;
}

}  // namespace

Command secret_command() {
  CommandSyntax syntax{.program = "fleetrun secret",
                       .about = "make or show the secret that your nodes share"};
  syntax.options.flag({.key = "show"}, "print it, for a pipe")
      .flag({.key = "new"}, "print a new one and keep nothing");
  return {.name = "secret", .syntax = std::move(syntax), .run = run_secret};
}

}  // namespace fleet
