#include "launch/starting/via_slurm.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/child_process.h"
#include "base/counted.h"
#include "base/env.h"
#include "base/file.h"
#include "base/text.h"
#include "launch/planning/arguments.h"
#include "launch/planning/cluster_environment.h"
#include "launch/planning/launch_config.h"
#include "launch/planning/options.h"
#include "launch/planning/program.h"
#include "launch/planning/refuse.h"
#include "launch/planning/slurm.h"
#include "launch/planning/start_style.h"
#include "launch/planning/torchrun/translate.h"
#include "transport/security.h"

namespace fleet {
namespace {

void check_allocation(const EnvironmentLookup& environment) {
  if (!has_slurm_allocation(environment)) {
    refuse("fleetrun does not run in a Slurm allocation", "--via=slurm",
           "create one with salloc or sbatch; see config/slurm");
  }
  if (in_slurm_step(environment)) {
    refuse("this is already step " + *environment("SLURM_STEP_ID") + " of a Slurm job",
           "--via=slurm",
           "leave --via out: in a step of one task a node, fleetrun finds its nodes");
  }
  if (in_heterogeneous_job(environment)) {
    refuse("it cannot use the components of a heterogeneous Slurm job", "--via=slurm",
           "start fleetrun in one component: srun --het-group=N --ntasks-per-node=1 fleetrun ...");
  }
}

// --nnodes, unless it is only torchrun's default.
std::optional<NodeCount> wanted_count(const NodesConfig& config) {
  return config.count.origin == kTorchrunDefault ? std::nullopt : config.count.value;
}

// The number of nodes of the step.
long long node_count(const NodesConfig& config, const EnvironmentLookup& environment) {
  const std::optional<NodeCount> count = wanted_count(config);
  if (count && !count->is_range()) return count->max;
  long long nodes = 0;
  const auto text = environment("SLURM_JOB_NUM_NODES");
  if (!text || !parse_int(*text, &nodes) || nodes < 1) {
    refuse("the number of nodes is unknown", "environment SLURM_JOB_NUM_NODES", "give --nnodes");
  }
  if (!count) return nodes;
  if (nodes < count->min) {
    refuse("this allocation has only " + counted(static_cast<int>(nodes), "node"),
           config.count.with(count->text()), "ask Slurm for more nodes, or lower the minimum");
  }
  return std::min<long long>(nodes, count->max);
}

// srun gets its own process group, so that a terminal's Ctrl-C reaches only this process.
pid_t spawn_srun(std::vector<std::string> words, const sigset_t& mask, UniqueFd* control_pipe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
  const UniqueFd reading(ends[0]);
  *control_pipe = UniqueFd(ends[1]);
  ChildProgram program;
  program.words = std::move(words);
  program.input = reading.get();
  program.own_group = true;
  program.blocked_signals = mask;
  const pid_t pid = start_child(program);
  if (pid < 0 && errno == ENOENT) {
    refuse("srun is not in PATH", "--via=slurm", "run this on a node of the Slurm cluster");
  }
  if (pid < 0) throw_errno("cannot start srun", "--via=slurm", Wanted::kProcess);
  return pid;
}

int run_srun(std::vector<std::string> words) {
  // On SIGTERM srun itself would kill its tasks without their grace time, so signals are sent
  // through the tasks' standard input instead (--control_pipe).
  sigset_t forwarded, before;
  ::sigemptyset(&forwarded);
  for (const int signal : forwarded_signals()) ::sigaddset(&forwarded, signal);
  ::sigaddset(&forwarded, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &forwarded, &before);
  UniqueFd control_pipe;
  const pid_t srun = spawn_srun(std::move(words), before, &control_pipe);
  ::signal(SIGPIPE, SIG_IGN);
  for (int stops = 0;;) {
    int signal = 0, status = 0;
    if (::sigwait(&forwarded, &signal) != 0) continue;
    if (signal == SIGCHLD) {
      if (::waitpid(srun, &status, WNOHANG) != srun) continue;
      return exit_code_of(status);
    }
    const char byte = static_cast<char>(signal);
    stops += signal != SIGUSR1 && signal != SIGUSR2;
    const bool written = ::write(control_pipe.get(), &byte, 1) == 1;
    if (stops > 2 || !written) ::kill(srun, SIGTERM);  // end srun without waiting for the tasks
  }
}

}  // namespace

std::vector<std::string> srun_command(const LaunchRequest& request,
                                      const EnvironmentLookup& environment,
                                      const std::string& self) {
  const Settings& settings = request.settings;
  check_allocation(environment);
  for (const char* key : {"ips", "host", "master", "rank", "servers", "workers"}) {
    if (!given_by_flag(settings, key)) continue;
    refuse("--via=slurm uses the nodes of the allocation", settings.origin(key),
           "leave it out, or give --nnodes to use fewer nodes");
  }
  const std::string nodes = std::to_string(node_count(request.config.nodes, environment));
  // The step gets every core of its nodes, which fleetrun divides. --mpi=none: variables of Slurm's
  // MPI would reach the ranks. --kill-on-bad-exit=0: fleetrun itself ends the job after a failure,
  // with its verdict and --grace, whatever the cluster's default.
  std::vector<std::string> command = {"srun",
                                      "--nodes=" + nodes,
                                      "--ntasks=" + nodes,
                                      "--ntasks-per-node=1",
                                      "--cpu-bind=none",
                                      "--mpi=none",
                                      "--kill-on-bad-exit=0"};
  if (request.config.restarts.max_restarts > 0) {  // the job outlives its nodes
    command.insert(command.end(), {"--no-kill", "--wait=0"});
  }
  const ViaConfig& via = request.config.via;
  command.insert(command.end(), via.options.begin(), via.options.end());
  command.push_back(via.remote_fleetrun.value_or(self));
  std::vector<std::string> flags =
      given_flags(request, {"via", "via_options", "remote_fleetrun", "nnodes", "ips", "host",
                            "master", "rank", "servers", "workers"});
  keep_start_style(request, &flags);
  command.insert(command.end(), flags.begin(), flags.end());
  const std::optional<NodeCount> count = wanted_count(request.config.nodes);
  if (count && count->is_range()) command.push_back("--nnodes=" + count->text());
  if (nodes != "1" && !request.config.logs.shown.chosen) {
    command.push_back("--local_ranks_filter=0");  // lines of several nodes need their rank
  }
  command.push_back("--control_pipe");
  command.push_back("--");
  command.insert(command.end(), request.program.begin(), request.program.end());
  return command;
}

ViaPlan plan_via_slurm(const LaunchRequest& request, const EnvironmentLookup& environment,
                       const std::string& self) {
  const LaunchConfig& config = request.config;
  ViaPlan plan;
  plan.via = "slurm";
  plan.program = request.program;
  plan.command = srun_command(request, environment, self);
  const std::string name = slurm_job_name(environment("SLURM_JOB_ID").value_or(""), "STEP");
  plan.job_id = config.job_id.given() ? config.job_id.value : name;
  std::vector<ListedNode> nodes = expand_nodes(environment("SLURM_JOB_NODELIST").value_or(""),
                                               "environment SLURM_JOB_NODELIST");
  nodes.resize(
      std::min(nodes.size(), static_cast<size_t>(node_count(request.config.nodes, environment))));
  const std::vector<NodeProcesses> processes = expected_processes(config, nodes);
  const Sourced<std::string>& folder = config.logs.folder;
  const std::string logs =
      folder.given() || config.as_torchrun ? folder.value : folder.value + "/" + name;
  for (size_t k = 0; k < nodes.size(); ++k) {
    NodeStart& node = plan.nodes.emplace_back();
    node.name = nodes[k].address;
    node.through = "srun task";
    node.gpus = config.gpus.given() ? join(config.gpus.value, ",") : "the step's";
    node.logs = nodes.size() > 1 ? logs + "/node" + std::to_string(k) : logs;
    node.processes = processes[k];
  }
  plan.environment = {{"FLEET_JOB_SECRET", "created for this job"}, {kEnvVia, "slurm"}};
  plan.notes = {"Slurm chooses the nodes and passes this environment to them"};
  return plan;
}

ViaPlan plan_via_slurm(const LaunchRequest& request) {
  return plan_via_slurm(request, get_env, own_path());
}

int start_via_slurm(const LaunchRequest& request) {
  std::vector<std::string> words = srun_command(request, get_env, own_path());
  // The command line now contains the options from the environment.
  for (const Option& option : launch_options()) {
    for (const std::string& name : option.environment) ::unsetenv(name.c_str());
  }
  // Slurm passes both variables to the nodes.
  if (!get_env("FLEET_JOB_SECRET")) ::setenv("FLEET_JOB_SECRET", new_secret().c_str(), 1);
  ::setenv(kEnvVia, "slurm", 1);
  return run_srun(std::move(words));
}

}  // namespace fleet
