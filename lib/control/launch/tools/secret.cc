// fleetrun secret [--new | --show]: creates the file of default_secret_path(), or prints a secret.
#include <cstdio>

#include "base/commands.h"
#include "launch/planning/refuse.h"
#include "transport/certificates.h"
#include "transport/security.h"

namespace fleet {
namespace {

int run_secret(const CommandLine& line) {
  const bool fresh = line.settings.boolean("new"), show = line.settings.boolean("show");
  if (fresh && show) {
    refuse("--new and --show contradict each other", "secret", "give only one of them");
  }
  if (fresh) {
    std::puts(new_secret().c_str());
    return 0;
  }
  const std::string path = default_secret_path();
  if (path.empty()) {
    refuse("no home folder to store the secret in", "HOME",
           "set HOME, or print a secret with `fleetrun secret --new`");
  }
  const bool made = !show && make_secret(path);
  const std::string secret = read_secret(path);
  if (show) {
    std::puts(secret.c_str());
  } else {
    std::printf("%s: %s %s\n", path.c_str(), made ? "created the secret" : "has the secret",
                secret_id(secret).c_str());
  }
  return 0;
}

}  // namespace

FLEET_COMMAND(secret) {
  def.syntax = {.program = "fleetrun secret",
                .about = "create or show the secret that your nodes share"};
  def.syntax.options.flag({.key = "show"}, "print the secret, for use in a pipe")
      .flag({.key = "new"}, "print a new secret without storing it");
  def.run = run_secret;
}

}  // namespace fleet
