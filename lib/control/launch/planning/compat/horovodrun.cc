// Options of Horovod's horovodrun.
#include <array>

#include "base/text.h"
#include "launch/planning/compat/line.h"

namespace fleet {
namespace {

// Horovod's library reads the switches as numbers. `on`: the value of the switch itself.
void add_switch(const std::string& flag, const std::string& name, bool on, CompatGroup* group) {
  group->translated({flag}, "", [name, on](const std::string& text, CompatLine& line) {
    line.export_variable(name + "=" + ((text == "true") == on ? "1" : "0"));
  });
}

// --autotune and --no-autotune: the same variable.
void add_pair(const std::string& on, const std::string& off, const std::string& name,
              CompatGroup* group) {
  add_switch(on, name, true, group);
  add_switch(off, name, false, group);
}

// The option is in MiB; the library's variable is in bytes.
void translate_fusion_threshold(const std::string& value, CompatLine& line) {
  long long megabytes = 0;
  const bool ok = parse_int(value, &megabytes) && megabytes >= 0 && megabytes < 1 << 20;
  line.export_variable("HOROVOD_FUSION_THRESHOLD=" +
                       (ok ? std::to_string(megabytes << 20) : value));
}

// A variable of the library that horovodrun sets only with another option.
void add_dependent(const std::string& flag, const std::string& value, const std::string& name,
                   const std::string& condition, CompatGroup* group) {
  CompatOption& option = group->translated(
      {flag}, value, [name, condition](const std::string& text, CompatLine& line) {
        if (!line.has(condition)) return line.ignore("horovodrun uses it only with " + condition);
        line.export_variable(name + "=" + (text == "true" ? "1" : text == "false" ? "0" : text));
      });
  option.late = true;
}

void add_tuning(CompatGroup* group) {
  group->translated({"--fusion-threshold-mb"}, "MB", translate_fusion_threshold);
  group->variable("--cycle-time-ms", "MS", "HOROVOD_CYCLE_TIME");
  group->variable("--cache-capacity", "N", "HOROVOD_CACHE_CAPACITY");
  add_pair("--hierarchical-allreduce", "--no-hierarchical-allreduce",
           "HOROVOD_HIERARCHICAL_ALLREDUCE", group);
  add_pair("--hierarchical-allgather", "--no-hierarchical-allgather",
           "HOROVOD_HIERARCHICAL_ALLGATHER", group);
  add_pair("--torus-allreduce", "--no-torus-allreduce", "HOROVOD_TORUS_ALLREDUCE", group);
  add_switch("--autotune", "HOROVOD_AUTOTUNE", true, group);
  group->ignored({"--no-autotune"}, "", "Horovod does not tune unless it is told to");
  const std::vector<std::array<const char*, 3>> of_autotune = {
      {"--autotune-log-file", "FILE", "HOROVOD_AUTOTUNE_LOG"},
      {"--autotune-warmup-samples", "N", "HOROVOD_AUTOTUNE_WARMUP_SAMPLES"},
      {"--autotune-steps-per-sample", "N", "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE"},
      {"--autotune-bayes-opt-max-samples", "N", "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES"},
      {"--autotune-gaussian-process-noise", "X", "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE"}};
  for (const auto& [flag, value, name] : of_autotune) {
    add_dependent(flag, value, name, "--autotune", group);
  }
}

void add_library(CompatGroup* group) {
  group->variable("--timeline-filename", "FILE", "HOROVOD_TIMELINE");
  add_dependent("--timeline-mark-cycles", "", "HOROVOD_TIMELINE_MARK_CYCLES", "--timeline-filename",
                group);
  group->ignored({"--no-timeline-mark-cycles"}, "", "Horovod marks none unless it is told to");
  add_pair("--no-stall-check", "--stall-check", "HOROVOD_STALL_CHECK_DISABLE", group);
  group->variable("--stall-check-warning-time-seconds", "SECONDS",
                  "HOROVOD_STALL_CHECK_TIME_SECONDS");
  group->variable("--stall-check-shutdown-time-seconds", "SECONDS",
                  "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS");
  add_pair("--mpi-threads-disable", "--no-mpi-threads-disable", "HOROVOD_MPI_THREADS_DISABLE",
           group);
  add_switch("--tcp", "NCCL_IB_DISABLE", true, group);
  group->variable("--thread-affinity", "CORE", "HOROVOD_THREAD_AFFINITY");
  group->variable("--num-nccl-streams", "N", "HOROVOD_NUM_NCCL_STREAMS");
  group->variable("--gloo-timeout-seconds", "SECONDS", "HOROVOD_GLOO_TIMEOUT_SECONDS");
}

void add_logging(CompatGroup* group) {
  add_pair("--log-without-timestamp", "--log-with-timestamp", "HOROVOD_LOG_HIDE_TIME", group);
  add_pair("--log-hide-timestamp", "--no-log-hide-timestamp", "HOROVOD_LOG_HIDE_TIME", group);
  group->translated(
      {"--prefix-output-with-timestamp", "-prefix-timestamp"}, "",
      [](const auto&, CompatLine& line) { line.set_option("timestamps", "console"); });
  // Other levels are fleetrun's own, too.
  group->variable("--log-level", "LEVEL", "HOROVOD_LOG_LEVEL").when = [](const std::string& level) {
    return level == "TRACE" || level == "FATAL";
  };
}

void add_elastic(CompatGroup* group) {
  const std::string elastic = "a job is elastic if --nnodes is a range";
  const std::string range = "give --nnodes=MIN:MAX on every node";
  group->refused({"--min-np", "--min-num-proc"}, "N", elastic, range);
  group->refused({"--max-np", "--max-num-proc"}, "N", elastic, range);
  group->refused({"--host-discovery-script"}, "FILE", elastic, range);
  const std::string only = "horovodrun uses it only in elastic jobs";
  group->ignored({"--reset-limit", "--slots-per-host"}, "N", only);
  group->ignored({"--blacklist-cooldown-range"}, "MIN MAX", only).values = 2;
}

// Every occurrence adds to the list.
void translate_interfaces(const std::string&, CompatLine& line) {
  const auto lists = line.values_of(line.flag());
  line.export_variable("NCCL_SOCKET_IFNAME=" + join(lists, ","));
}

// Programs find Horovod's launcher by its variables.
void choose_dialect(CompatLine& line) {
  if (!line.has_own_option("dialect")) {
    line.set_option("dialect", "paddle,torch,horovod");
    line.note("ranks also get Horovod's variables (--dialect=horovod)");
  }
  if (line.act_for("-v") && line.flag() == "-v") {
    line.refuse_without_correction("it prints the version of horovodrun", "see --version");
  }
}

}  // namespace

CompatGroup horovodrun_options() {
  CompatGroup group("horovodrun");
  group.abbreviates = true;
  group.together = choose_dialect;
  group.translated({"--num-proc"}, "N", translate_total_ranks).late = true;
  group.sets({"--ssh-identity-file", "-i"}, "FILE", "via_options", "-i ").late = true;
  group.sets({"--start-timeout"}, "SECONDS", "rdzv_timeout");
  add_elastic(&group);
  group.ignored({"--gloo", "--mpi", "--jsrun"}, "",
                "--dialect=horovod selects Horovod, which then uses Gloo");
  group.ignored({"--disable-cache"}, "", "fleetrun caches nothing between starts");
  group.translated({"--network-interfaces"}, "LIST", translate_interfaces);
  group.translated({"--network-interface"}, "NAME", translate_interfaces);
  group.ignored({"--mpi-args", "--binding-args"}, "TEXT", "fleetrun starts the ranks without MPI");
  group.refused({"--check-build", "-cb"}, "", "it describes the build of Horovod",
                "run horovodrun --check-build; fleetrun doctor checks this machine");
  add_tuning(&group);
  add_library(&group);
  add_logging(&group);
  for (const char* flag :
       {"--ssh-port", "--version", "--verbose", "--output-filename", "--config-file", "--hosts",
        "--hostfile", "--elastic-timeout", "--help"}) {
    group.also({flag});
  }
  return group;
}

}  // namespace fleet
