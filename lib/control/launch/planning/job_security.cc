#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "base/proc_number.h"
#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/launch_plan.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

// This process's command line, quoted for a shell.
std::string own_command_line() {
  std::string line;
  std::istringstream words(read_file("/proc/self/cmdline"));
  for (std::string word; std::getline(words, word, '\0');) {
    line += (line.empty() ? "" : " ") + shell_word(word);
  }
  return line;
}

// On a shared home the other nodes read the same file. Otherwise the user must copy it. Only a
// terminal shows the secret, logs do not.
void announce_secret(const Security& security) {
  spdlog::info("created the secret of your jobs: {}. Nodes without this folder need a copy",
               security.origin);
  if (::isatty(STDERR_FILENO) != 1) return;
  std::fprintf(stderr, "of it, or start them with this line:\n  %s=%s %s\n", kEnvJobSecret,
               security.secret.c_str(), own_command_line().c_str());
}

Security shared_secret(const SecurityConfig& config, const Topology& topology, bool make) {
  const bool hosts = topology.hosting == Topology::Hosting::kYes;
  try {
    const FoundSecret found = find_secret(config.secret_file.value, make);
    if (found.made && hosts) announce_secret(found.security);
    return found.security;
  } catch (const Error&) {
    // No secret was given and none can be stored: make one for this job, if a terminal can show it.
    const bool given = config.secret_file.given() || ::getenv(kEnvJobSecret);
    if (!given && !make) return {};  // --dry_run: a start would make it
    if (given || !hosts || ::isatty(STDERR_FILENO) != 1) throw;
    const Security made{new_secret(), true, "made for this job"};
    std::fprintf(stderr, "start the other nodes with this line:\n  %s=%s %s\n", kEnvJobSecret,
                 made.secret.c_str(), own_command_line().c_str());
    return made;
  }
}

}  // namespace

Security resolve_job_security(const SecurityConfig& config, const Topology& topology, bool make) {
  if (config.insecure) {
    if (config.secret_file.given()) {
      refuse("it contradicts --insecure", "--secret_file", "give only one of them");
    }
    return {};
  }
  if (!topology.is_single_node()) return shared_secret(config, topology, make);
  // A single-node job's Unix socket checks the peer's user. A bad file is still an error.
  const std::string& file = config.secret_file.value;
  if (!file.empty()) read_secret(file);
  return {};
}

CredentialsFile::CredentialsFile(const Security& security) {
  if (security.open()) return;
  memory_ = UniqueFd(::memfd_create("fleetrun credentials", MFD_CLOEXEC));
  if (!memory_) throw_errno("cannot allocate memory for the ranks' credentials");
  const std::string text = to_text(security);
  if (::fchmod(memory_.get(), 0400) != 0 ||
      ::write(memory_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw_errno("cannot store the ranks' credentials");
  }
  path_ = "/proc/" + std::to_string(own_proc_number()) + "/fd/" + std::to_string(memory_.get());
}

}  // namespace fleet
