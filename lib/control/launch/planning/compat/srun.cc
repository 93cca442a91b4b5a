// Options of Slurm's srun. Its nodes come from an allocation: --via=slurm.
#include <algorithm>

#include "base/env.h"
#include "base/text.h"
#include "launch/planning/compat/line.h"
#include "launch/planning/slurm.h"

namespace fleet {
namespace {

constexpr char kCores[] = "fleetrun divides the cores of a node among its ranks";
constexpr char kInherited[] = "ranks inherit this environment";
constexpr char kFirstFailure[] = "the first failure ends the job";
constexpr char kNoInput[] = "ranks get no standard input";
constexpr char kNoCopies[] = "fleetrun copies no files to the nodes";

using PassedOptions = std::vector<std::pair<CompatGroup::Flags, const char*>>;

void add_passed(const PassedOptions& options, CompatGroup* group) {
  for (const auto& [flags, value] : options) {
    const bool is_flag = *value == 0;
    group->translated(flags, value,
                      [name = flags[0], is_flag](const std::string& text, CompatLine& line) {
                        if (is_flag && text == "true") return pass_to_srun(name, line);
                        const bool one_letter = name.size() == 2;
                        pass_to_srun(name + (one_letter ? "" : "=") + text, line);
                      });
  }
}

// Options that describe the allocation or the step, and mean the same for a step of one task a
// node. A flag, or an option whose value needs "=", has the value "".
void add_step_options(CompatGroup* group) {
  const PassedOptions options = {{{"--account", "-A"}, "NAME"},
                                 {{"--acctg-freq"}, "INTERVAL"},
                                 {{"--bb"}, "SPEC"},
                                 {{"--bbf"}, "FILE"},
                                 {{"--begin", "-b"}, "TIME"},
                                 {{"--cluster-constraint"}, "LIST"},
                                 {{"--clusters", "-M"}, "LIST"},
                                 {{"--comment"}, "TEXT"},
                                 {{"--constraint", "-C"}, "LIST"},
                                 {{"--container"}, "PATH"},
                                 {{"--contiguous"}, ""},
                                 {{"--core-spec", "-S"}, "N"},
                                 {{"--cores-per-socket"}, "N"},
                                 {{"--cpu-freq"}, "RANGE"},
                                 {{"--cpus-per-gpu"}, "N"},
                                 {{"--deadline"}, "TIME"},
                                 {{"--delay-boot"}, "MINUTES"},
                                 {{"--dependency", "-d"}, "LIST"},
                                 {{"--epilog"}, "FILE"},
                                 {{"--exact"}, ""},
                                 {{"--exclusive"}, ""},
                                 {{"--extra-node-info", "-B"}, "S:C:T"},
                                 {{"--gpu-freq"}, "RANGE"},
                                 {{"--gpus-per-node"}, "N"},
                                 {{"--gpus-per-socket"}, "N"},
                                 {{"-G"}, "N"},
                                 {{"--gres"}, "LIST"},
                                 {{"--gres-flags"}, "LIST"},
                                 {{"--hold"}, ""},
                                 {{"--immediate", "-I"}, ""},
                                 {{"--job-name", "-J"}, "NAME"},
                                 {{"--jobid"}, "ID"},
                                 {{"--licenses", "-L"}, "LIST"},
                                 {{"--mail-type"}, "LIST"},
                                 {{"--mail-user"}, "NAME"},
                                 {{"--mcs-label"}, "NAME"},
                                 {{"--mem"}, "SIZE"},
                                 {{"--mem-per-gpu"}, "SIZE"},
                                 {{"--mem-per-cpu"}, "SIZE"},
                                 {{"--mincpus"}, "N"},
                                 {{"--network"}, "TYPE"},
                                 {{"--nice"}, ""},
                                 {{"--no-allocate", "-Z"}, ""},
                                 {{"--nodefile", "-F"}, "FILE"},
                                 {{"--nodelist", "-w"}, "LIST"},
                                 {{"--overlap"}, ""},
                                 {{"--partition"}, "NAME"},
                                 {{"--power"}, "LIST"},
                                 {{"--prefer"}, "LIST"},
                                 {{"--priority"}, "N"},
                                 {{"--profile"}, "LIST"},
                                 {{"--prolog"}, "FILE"},
                                 {{"--propagate"}, ""},
                                 {{"--qos"}, "NAME"},
                                 {{"--reboot"}, ""},
                                 {{"--relative"}, "N"},
                                 {{"--reservation"}, "NAME"},
                                 {{"--resv-ports"}, ""},
                                 {{"--signal"}, "SIGNAL"},
                                 {{"--slurmd-debug"}, "LEVEL"},
                                 {{"--sockets-per-node"}, "N"},
                                 {{"--spread-job"}, ""},
                                 {{"--switches"}, "N"},
                                 {{"--test-only"}, ""},
                                 {{"--thread-spec"}, "N"},
                                 {{"--threads", "-T"}, "N"},
                                 {{"--threads-per-core"}, "N"},
                                 {{"--time"}, "TIME"},
                                 {{"--time-min"}, "TIME"},
                                 {{"--tmp"}, "SIZE"},
                                 {{"--use-min-nodes"}, ""},
                                 {{"--wckey"}, "NAME"},
                                 {{"--x11"}, ""}};
  add_passed(options, group);
}

// "1", "a100:1"
void translate_gpus_per_rank(const std::string& value, CompatLine& line) {
  if (value.substr(value.rfind(':') + 1) == "1") return line.ignore("every rank has its own GPU");
  line.refuse_without_correction("fleetrun divides the GPUs of a node among its ranks",
                                 "give --ntasks-per-node=N");
}

bool is_whole_environment(const std::string& value) {
  return value == "ALL" || value.starts_with("ALL,") || value == "NONE";
}

void translate_export(const std::string& value, CompatLine& line) {
  if (value == "ALL") return line.ignore(kInherited);
  if (value == "NONE") {
    return line.refuse_without_correction(kInherited, "start it with env -i NAME=VALUE ...");
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

void add_tasks(CompatGroup* group) {
  group->translated({"--nodes"}, "N", translate_srun_nodes);
  group->translated({"--ntasks"}, "N", translate_total_ranks).late = true;
  group->sets({"--ntasks-per-node", "--tasks-per-node"}, "N", "nproc_per_node");
  group->translated({"--cpus-per-task"}, "N", translate_cores_per_rank).last = true;
  group->translated({"--gpus-per-task", "--ntasks-per-gpu"}, "N", translate_gpus_per_rank);
  group->ignored({"--cpu-bind", "--mem-bind", "--hint"}, "HOW", kCores);
  group->ignored({"--gpu-bind"}, "HOW", "every rank has its own GPU");
  group->ignored({"--distribution"}, "HOW", "fleetrun numbers the ranks node by node");
  group->ignored({"--overcommit", "-O"}, "", "the number of ranks decides");
  group->refused({"--ntasks-per-core", "--ntasks-per-socket"}, "N", "fleetrun places ranks by node",
                 "give --ntasks-per-node=N");
  group->refused({"--multi-prog"}, "", "all ranks run one program",
                 "start a script that chooses by RANK");
  group->refused({"--het-group"}, "LIST", "a job has one kind of nodes",
                 "start one fleetrun for each component");
  group->refused({"--preserve-env", "-E"}, "", "fleetrun's options count",
                 "give them instead of variables");
  group->refused({"--task-prolog", "--task-epilog"}, "FILE", "srun would run it once for each node",
                 "let the ranks' program do it");
}

void add_environment_and_files(CompatGroup* group) {
  CompatOption& exported = group->translated({"--export"}, "LIST", translate_export);
  exported.when = is_whole_environment;
  exported.late = true;
  group->ignored({"--mpi"}, "TYPE", "--dialect selects the environment variables of the ranks")
      .when = [](const std::string& type) { return type != "true"; };
  group->refused({"--bcast"}, "", kNoCopies, "copy the program first");
  group->refused({"--bcast-exclude"}, "LIST", kNoCopies, "copy the program first");
  group->refused({"--send-libs", "--compress"}, "", kNoCopies, "copy the program first");
  group->refused({"-D"}, "DIR", "ranks run in this directory", "cd there first");
}

void add_output_and_signals(CompatGroup* group) {
  group->ignored({"--label", "-l"}, "", "lines of several ranks carry their rank");
  group->ignored({"--unbuffered", "-u"}, "", "fleetrun shows lines as they arrive");
  group->refused({"--output", "-o", "--error", "-e"}, "FILE", "ranks write their logs to --log_dir",
                 "give --log_dir=DIR");
  group->refused({"--open-mode"}, "MODE", "ranks write their logs to --log_dir",
                 "see --log_overwrite");
  group->translated({"--input"}, "FILE", [](const std::string& file, CompatLine& line) {
    if (file == "none") return line.ignore(kNoInput);
    line.refuse_without_correction(kNoInput, "let the program read the file");
  });
  group->refused({"--pty"}, "", "fleetrun gives ranks no terminal", "see fleetrun debug");
  group->translated({"-Q"}, "",
                    [](const auto&, CompatLine& line) { line.set_option("quiet", "true"); });
  group->ignored({"--disable-status", "-X", "--quit-on-interrupt"}, "",
                 "the first Ctrl-C ends the job");
  group->translated({"--kill-on-bad-exit"}, "", [](const std::string& on, CompatLine& line) {
    if (on != "0") return line.ignore(kFirstFailure);
    line.refuse_without_correction(kFirstFailure, "let the program handle its errors");
  });
  group->ignored({"-K"}, "", kFirstFailure);
  group->refused({"--no-kill", "-k"}, "", "a lost node ends the job, or restarts it",
                 "give --max_restart=N");
  group->translated({"--wait", "-W"}, "SECONDS", [](const std::string& wait, CompatLine& line) {
    if (wait == "0") return line.ignore("fleetrun waits for all ranks");
    line.refuse_without_correction("fleetrun waits for all ranks", "see --hang_timeout");
  });
  group->refused({"--usage"}, "", "it describes srun", "see fleetrun --help");
}

}  // namespace

// Each task of srun is a rank, but the step that starts fleetrun has one task a node.
void translate_cores_per_rank(const std::string& value, CompatLine& line) {
  const bool needs_srun = line.own_option("via") == "slurm" || line.prefix().starts_with("srun ");
  if (!needs_srun) return line.ignore(kCores);
  long long cores = 0, ranks = 0;
  const bool known = parse_int(value, &cores) && cores > 0 && cores < 1 << 20 &&
                     parse_int(line.own_option("nproc_per_node").value_or(""), &ranks);
  if (!known) {
    return line.refuse_without_correction(
        "it is a number of cores for each rank, and the number of ranks of a node is unknown",
        "give --ntasks-per-node=N too");
  }
  pass_to_srun("--cpus-per-task=" + std::to_string(cores * ranks), line);
}

void pass_to_srun(const std::string& word, CompatLine& line) {
  if (in_slurm_allocation(get_env)) {
    if (!line.has_own_option("via")) line.set_option("via", "slurm");
    const std::string before = line.own_option("via_options").value_or("");
    return line.override_option("via_options",
                                (before.empty() ? "" : before + " ") + shell_word(word));
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

// Those of a plugin of srun, which takes no abbreviations of them.
CompatGroup pyxis_options() {
  CompatGroup group("srun");
  add_passed({{{"--container-image"}, "IMAGE"},
              {{"--container-name"}, "NAME"},
              {{"--container-mounts"}, "LIST"},
              {{"--container-workdir"}, "DIR"}},
             &group);
  return group;
}

CompatGroup srun_options() {
  CompatGroup group("srun");
  group.abbreviates = true;
  for (const char* own : {"--chdir", "--export", "--gpus", "--help", "--quiet", "--version"}) {
    group.also({own});
  }
  for (const char* shared : {"--exclude", "--oversubscribe", "--verbose"}) group.also({shared});
  add_step_options(&group);
  add_tasks(&group);
  add_environment_and_files(&group);
  add_output_and_signals(&group);
  group
      .translated(
          {"-t"}, "TIME",
          [](const std::string& value, CompatLine& line) { pass_to_srun("--time=" + value, line); })
      .when = is_time;
  return group;
}

}  // namespace fleet
