// Options of Horovod's horovodrun.
#include "base/text.h"
#include "launch/planning/compat/line.h"

namespace fleet {
namespace {

// Horovod's library reads the switches as numbers.
void add_switch(const std::string& flag, const std::string& name, CompatGroup* group) {
  group->translated({flag}, "", [name](const std::string& text, CompatLine& line) {
    line.export_variable(name + "=" + (text == "true" ? "1" : text));
  });
}

// The option is in MiB; the library's variable is in bytes.
void translate_fusion_threshold(const std::string& value, CompatLine& line) {
  long long megabytes = 0;
  const bool ok = parse_int(value, &megabytes) && megabytes >= 0 && megabytes < 1 << 20;
  line.export_variable("HOROVOD_FUSION_THRESHOLD=" +
                       (ok ? std::to_string(megabytes << 20) : value));
}

}  // namespace

CompatGroup horovodrun_options() {
  CompatGroup group("horovodrun");
  group.translated({"--num-proc"}, "N", translate_total_ranks).late = true;
  group.sets({"--ssh-port"}, "PORT", "via_options", "-p ").late = true;
  group.sets({"--ssh-identity-file"}, "FILE", "via_options", "-i ").late = true;
  group.sets({"--start-timeout"}, "SECONDS", "rdzv_timeout");
  group.sets({"--reset-limit"}, "N", "max_restart");
  group.sets({"--slots", "--slots-per-host"}, "N", "nproc_per_node");
  group.refused({"--min-np", "--min-num-proc", "--max-np", "--max-num-proc"}, "N",
                "a job is elastic if --nnodes is a range", "give --nnodes=MIN:MAX on every node");
  group.refused({"--host-discovery-script"}, "FILE", "a job is elastic if --nnodes is a range",
                "give --nnodes=MIN:MAX on every node");
  group.ignored({"--gloo", "--mpi", "--use-gloo", "--use-mpi", "--jsrun"}, "",
                "--dialect=horovod selects Horovod, which then uses Gloo");
  group.ignored({"--disable-cache"}, "", "fleetrun caches nothing between starts");
  group.ignored({"--network-interfaces", "--network-interface"}, "NAME",
                "the addresses in --ips select the network");
  group.ignored({"--mpi-args"}, "TEXT", "fleetrun starts the ranks without MPI");
  group.refused({"--check-build", "-cb"}, "", "it describes the build of Horovod",
                "run horovodrun --check-build; fleetrun doctor checks this machine");
  group.translated({"--fusion-threshold-mb"}, "MB", translate_fusion_threshold);
  group.variable("--cycle-time-ms", "MS", "HOROVOD_CYCLE_TIME");
  group.variable("--cache-capacity", "N", "HOROVOD_CACHE_CAPACITY");
  group.variable("--timeline-filename", "FILE", "HOROVOD_TIMELINE");
  group.variable("--autotune-log-file", "FILE", "HOROVOD_AUTOTUNE_LOG");
  add_switch("--autotune", "HOROVOD_AUTOTUNE", &group);
  add_switch("--no-stall-check", "HOROVOD_STALL_CHECK_DISABLE", &group);
  add_switch("--hierarchical-allreduce", "HOROVOD_HIERARCHICAL_ALLREDUCE", &group);
  return group;
}

}  // namespace fleet
