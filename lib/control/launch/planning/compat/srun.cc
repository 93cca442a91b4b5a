// Options of Slurm's srun. Its nodes come from an allocation: --via=slurm.

#include "base/env.h"
#include "base/text.h"
#include "launch/planning/compat/line.h"
#include "launch/planning/slurm.h"

namespace fleet {
namespace {

// Options that describe the allocation or the step.
void add_step_options(CompatGroup* group) {
  const std::vector<std::pair<CompatGroup::Flags, const char*>> options = {
      {{"--partition"}, "NAME"},
      {{"--account", "-A"}, "NAME"},
      {{"--qos"}, "NAME"},
      {{"--constraint", "-C"}, "LIST"},
      {{"--time"}, "TIME"},
      {{"--mem"}, "SIZE"},
      {{"--mem-per-gpu", "--mem-per-cpu"}, "SIZE"},
      {{"--gres"}, "LIST"},
      {{"--gpus-per-node"}, "N"},
      {{"-G"}, "N"},
      {{"--nodelist", "-w"}, "LIST"},
      {{"--job-name", "-J"}, "NAME"},
      {{"--jobid"}, "ID"},
      {{"--reservation"}, "NAME"},
      {{"--exclusive"}, ""},
      {{"--overlap"}, ""},
      {{"--container-image"}, "IMAGE"},
      {{"--container-name"}, "NAME"},
      {{"--container-mounts"}, "LIST"},
      {{"--container-workdir"}, "DIR"}};
  for (const auto& [flags, value] : options) {
    group->translated(flags, value, [name = flags[0]](const std::string& text, CompatLine& line) {
      pass_to_srun(text == "true" ? name : name + "=" + text, line);
    });
  }
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

CompatGroup srun_options() {
  CompatGroup group("srun");
  add_step_options(&group);
  group.translated({"--nodes"}, "N", translate_srun_nodes);
  group.translated({"--ntasks"}, "N", translate_total_ranks).late = true;
  group.sets({"--ntasks-per-node", "--tasks-per-node"}, "N", "nproc_per_node");
  group.ignored({"--mpi"}, "TYPE", "--dialect selects the environment variables of the ranks")
      .when = [](const std::string& type) { return type != "true"; };
  CompatOption& exported = group.translated({"--export"}, "LIST", translate_export);
  exported.when = is_whole_environment;
  exported.late = true;
  group
      .translated(
          {"-t"}, "TIME",
          [](const std::string& value, CompatLine& line) { pass_to_srun("--time=" + value, line); })
      .when = is_time;
  const std::string cores = "fleetrun divides the cores of a node among its ranks";
  group.ignored({"--cpus-per-task"}, "N", cores);
  group.ignored({"--cpu-bind", "--mem-bind", "--hint", "--distribution"}, "HOW", cores);
  group.ignored({"--gpus-per-task", "--gpu-bind"}, "N", "every rank has its own GPU");
  group.ignored({"--label", "-l"}, "", "lines of several ranks carry their rank");
  group.ignored({"--unbuffered", "-u"}, "", "fleetrun shows lines as they arrive");
  group.ignored({"-K"}, "", "the first failure ends the job");
  group.ignored({"--kill-on-bad-exit"}, "0|1", "the first failure ends the job");
  group.refused({"--output", "-o", "--error", "-e"}, "FILE", "ranks write their logs to --log_dir");
  group.refused({"--pty"}, "", "fleetrun gives ranks no terminal", "see fleetrun debug");
  group.refused({"-D"}, "DIR", "ranks run in this directory", "cd there first");
  group.refused({"--multi-prog"}, "", "all ranks run one program");
  return group;
}

}  // namespace fleet
