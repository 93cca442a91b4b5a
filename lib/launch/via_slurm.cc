#include "launch/via_slurm.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "launch/given_flags.h"
#include "launch/surroundings.h"
#include "rendezvous/security.h"

namespace fleet {
namespace {

using Environment = std::function<std::optional<std::string>(const std::string&)>;

[[noreturn]] void refuse(const std::string& what, const std::string& where,
                         const std::string& next) {
  throw Error(ErrorCode::kUsage, what, where, next);
}

// Above this are the steps that Slurm makes for itself: a batch script, salloc's own shell.
constexpr long long kFirstOwnStep = 0xfffffff0;

void check_allocation(const Environment& environment) {
  if (!environment("SLURM_JOB_ID") || !environment("SLURM_JOB_NODELIST")) {
    refuse("this is no allocation of Slurm", "--via=slurm",
           "get one with salloc or sbatch; see config/slurm");
  }
  long long step = 0;
  const auto text = environment("SLURM_STEP_ID");
  if (text && parse_int(*text, &step) && step < kFirstOwnStep) {
    refuse("this is step " + *text + " of a Slurm job already", "--via=slurm",
           "leave --via out: srun --ntasks-per-node=1 fleetrun ... knows its nodes");
  }
}

long long node_count(const Settings& settings, const Environment& environment) {
  if (settings.given("nnodes")) return settings.integer("nnodes");
  long long nodes = 0;
  const auto text = environment("SLURM_JOB_NUM_NODES");
  if (!text || !parse_int(*text, &nodes) || nodes < 1) {
    refuse("the number of nodes is not known", "environment SLURM_JOB_NUM_NODES",
           "say it with --nnodes");
  }
  return nodes;
}

}  // namespace

std::vector<std::string> srun_command(const LaunchRequest& request, const Environment& environment,
                                      const std::string& self) {
  const Settings& settings = request.settings;
  check_allocation(environment);
  for (const char* key : {"ips", "host", "master", "rank", "servers", "workers"}) {
    if (!settings.given(key)) continue;
    refuse("with --via=slurm the nodes are those of the allocation", settings.origin(key),
           "leave it out; for fewer nodes give --nnodes");
  }
  const std::string nodes = std::to_string(node_count(settings, environment));
  // The step has every core of its nodes: fleetrun shares them out. No MPI of Slurm's: what that
  // sets would reach the ranks.
  std::vector<std::string> command = {"srun",
                                      "--nodes=" + nodes,
                                      "--ntasks=" + nodes,
                                      "--ntasks-per-node=1",
                                      "--cpu-bind=none",
                                      "--mpi=none"};
  for (const std::string& word : split(settings.text("via_options"), ' ')) {
    if (!word.empty()) command.push_back(word);
  }
  command.push_back(settings.given("remote_fleetrun") ? settings.text("remote_fleetrun") : self);
  for (std::string& flag :
       given_flags(settings, {"via", "via_options", "remote_fleetrun", "nnodes"})) {
    command.push_back(std::move(flag));
  }
  if (nodes != "1" && !settings.given("ranks") && !settings.given("local_ranks_filter")) {
    command.push_back("--local_ranks_filter=0");  // lines of several nodes need their rank
  }
  command.push_back("--");
  command.insert(command.end(), request.program.begin(), request.program.end());
  return command;
}

int start_via_slurm(LaunchRequest request) {
  std::error_code none;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", none).string();
  std::vector<std::string> words = srun_command(request, get_env, self);
  // What the options said of the environment is in the command now.
  for (const Option& option : launch_options()) {
    for (const std::string& name : option.environment) ::unsetenv(name.c_str());
  }
  // Slurm takes both to the nodes.
  if (!get_env("FLEET_JOB_SECRET")) ::setenv("FLEET_JOB_SECRET", new_secret().c_str(), 1);
  ::setenv(kEnvVia, "slurm", 1);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(argv[0], argv.data());
  if (errno == ENOENT) {
    refuse("srun is not in PATH", "--via=slurm", "is this a node of the Slurm cluster?");
  }
  throw_errno("srun cannot be started", "--via=slurm");
}

}  // namespace fleet
