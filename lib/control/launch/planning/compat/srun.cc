// Options of Slurm's srun. Its nodes are those of an allocation: --via=slurm.
#include "launch/planning/compat/srun.h"

#include "base/env.h"
#include "base/text.h"
#include "launch/planning/compat/nodes.h"
#include "launch/planning/slurm_allocation.h"

namespace fleet {
namespace {

constexpr char kSrun[] = "srun";

CompatOption ignored(std::vector<std::string> flags, std::string value, std::string why) {
  return {
      .of = kSrun, .flags = std::move(flags), .value = std::move(value), .ignored = std::move(why)};
}

CompatOption refused(std::vector<std::string> flags, std::string value, std::string why,
                     std::string next = {}) {
  return {.of = kSrun,
          .flags = std::move(flags),
          .value = std::move(value),
          .refused = std::move(why),
          .next = std::move(next)};
}

// Options that describe the allocation or the step.
std::vector<CompatOption> of_the_step() {
  std::vector<CompatOption> all;
  const auto add = [&](std::vector<std::string> flags, const char* value) {
    const std::string name = flags[0];
    all.push_back({.of = kSrun,
                   .flags = std::move(flags),
                   .value = value,
                   .translate = [name](const std::string& text, CompatLine& line) {
                     pass_to_srun(text == "true" ? name : name + "=" + text, line);
                   }});
  };
  add({"--partition"}, "NAME");
  add({"--account", "-A"}, "NAME");
  add({"--qos"}, "NAME");
  add({"--constraint", "-C"}, "LIST");
  add({"--time"}, "TIME");
  add({"--mem"}, "SIZE");
  add({"--mem-per-gpu", "--mem-per-cpu"}, "SIZE");
  add({"--gres"}, "LIST");
  add({"--gpus-per-node"}, "N");
  add({"-G"}, "N");
  add({"--nodelist", "-w"}, "LIST");
  add({"--job-name", "-J"}, "NAME");
  add({"--jobid"}, "ID");
  add({"--reservation"}, "NAME");
  add({"--exclusive"}, "");
  add({"--overlap"}, "");
  add({"--container-image"}, "IMAGE");
  add({"--container-name"}, "NAME");
  add({"--container-mounts"}, "LIST");
  add({"--container-workdir"}, "DIR");
  return all;
}

bool is_whole_environment(const std::string& value) {
  return value == "ALL" || value.starts_with("ALL,") || value == "NONE";
}

void translate_export(const std::string& value, CompatLine& line) {
  if (value == "ALL") return line.ignore("ranks inherit this environment");
  if (value == "NONE") {
    return line.refuse("ranks inherit this environment", "start it with env -i NAME=VALUE ...");
  }
  for (const std::string& entry : split(value.substr(4), ',')) translate_variable(entry, line);
}

// Whether the value is a time: "10:00", "1-00:00:00". Values of --tee's -t are single digits.
bool is_time(const std::string& value) {
  const size_t colon = value.rfind(':');
  const bool two_digits = colon != std::string::npos && value.size() - colon == 3;
  return (two_digits && value.find(',') == std::string::npos) ||
         value.find('-') != std::string::npos;
}

std::vector<CompatOption> of_tasks() {
  return {
      {.of = kSrun, .flags = {"--nodes"}, .value = "N", .translate = translate_srun_nodes},
      {.of = kSrun,
       .flags = {"--ntasks"},
       .value = "N",
       .translate = translate_total_ranks,
       .late = true},
      {.of = kSrun,
       .flags = {"--ntasks-per-node", "--tasks-per-node"},
       .value = "N",
       .translate = translate_ranks_per_node},
      {.of = kSrun,
       .flags = {"--mpi"},
       .value = "TYPE",
       .ignored = "--dialect selects the environment variables of the ranks",
       .when = [](const std::string& type) { return type != "true"; }},
      {.of = kSrun,
       .flags = {"--export"},
       .value = "LIST",
       .translate = translate_export,
       .when = is_whole_environment,
       .late = true},
      {.of = kSrun,
       .flags = {"-t"},
       .value = "TIME",
       .translate = [](const auto& value, auto& line) { pass_to_srun("--time=" + value, line); },
       .when = is_time},
      ignored({"--cpus-per-task"}, "N", "fleetrun divides the cores of a node among its ranks"),
      ignored({"--cpu-bind", "--mem-bind", "--hint", "--distribution"}, "HOW",
              "fleetrun divides the cores of a node among its ranks"),
      ignored({"--gpus-per-task", "--gpu-bind"}, "N", "every rank has its own GPU"),
      ignored({"--label", "-l"}, "", "lines of several ranks carry their rank"),
      ignored({"--unbuffered", "-u"}, "", "fleetrun shows lines as they arrive"),
      ignored({"-K"}, "", "the first failure ends the job"),
      ignored({"--kill-on-bad-exit"}, "0|1", "the first failure ends the job"),
      refused({"--output", "-o", "--error", "-e"}, "FILE", "ranks write their logs to --log_dir"),
      refused({"--pty"}, "", "fleetrun gives ranks no terminal", "see fleetrun debug"),
      refused({"-D"}, "DIR", "ranks run in this directory", "cd there first"),
      refused({"--multi-prog"}, "", "all ranks run one program"),
  };
}

}  // namespace

void pass_to_srun(const std::string& word, CompatLine& line) {
  if (in_slurm_allocation(get_env)) {
    if (!line.has_own_option("via")) line.set_option("via", "slurm");
    const std::string before = line.own_option("via_options").value_or("");
    return line.override_option("via_options", (before.empty() ? "" : before + " ") + word);
  }
  line.refuse("it needs Slurm, and fleetrun does not run in an allocation",
              "start fleetrun with srun");
  if (line.prefix().find("srun ") == std::string::npos) {
    line.prepend("srun --ntasks-per-node=1");
  }
  line.prepend(shell_word(word));
}

void translate_srun_nodes(const std::string& value, CompatLine& line) {
  if (value == "1") return line.set_option("nnodes", "1");
  if (in_slurm_allocation(get_env)) {
    if (!line.has_own_option("via")) line.set_option("via", "slurm");
    return line.set_option("nnodes", value);
  }
  pass_to_srun("--nodes=" + value, line);
  line.assume_option("nnodes", value);
}

std::vector<CompatOption> srun_options() {
  std::vector<CompatOption> all = of_the_step();
  for (CompatOption& option : of_tasks()) all.push_back(std::move(option));
  return all;
}

}  // namespace fleet
