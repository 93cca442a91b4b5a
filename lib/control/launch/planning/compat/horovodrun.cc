// Options of Horovod's horovodrun.
#include "base/text.h"
#include "launch/planning/compat/nodes.h"

namespace fleet {
namespace {

constexpr char kHorovodrun[] = "horovodrun";

// An option that Horovod's library reads as an environment variable.
CompatOption variable(std::string flag, std::string value, std::string name) {
  return {.of = kHorovodrun,
          .flags = {std::move(flag)},
          .value = std::move(value),
          .translate = [name](const std::string& text, CompatLine& line) {
            line.export_variable(name + "=" + (text == "true" ? "1" : text));
          }};
}

CompatOption another_name(std::vector<std::string> flags, std::string value, std::string key) {
  return {.of = kHorovodrun,
          .flags = std::move(flags),
          .value = std::move(value),
          .translate = [key](const std::string& text, CompatLine& line) {
            line.set_option(key, text);
          }};
}

CompatOption elastic(std::string flag, std::string value) {
  return {.of = kHorovodrun,
          .flags = {std::move(flag)},
          .value = std::move(value),
          .refused = "a job is elastic if --nnodes is a range",
          .next = "give --nnodes=MIN:MAX on every node"};
}

// The option is in MiB; the library's variable is in bytes.
void translate_fusion_threshold(const std::string& value, CompatLine& line) {
  long long megabytes = 0;
  const bool ok = parse_int(value, &megabytes) && megabytes >= 0 && megabytes < 1 << 20;
  line.export_variable("HOROVOD_FUSION_THRESHOLD=" +
                       (ok ? std::to_string(megabytes << 20) : value));
}

}  // namespace

std::vector<CompatOption> horovodrun_options() {
  return {
      {.of = kHorovodrun,
       .flags = {"--num-proc"},
       .value = "N",
       .translate = translate_total_ranks,
       .late = true},
      {.of = kHorovodrun,
       .flags = {"--ssh-port"},
       .value = "PORT",
       .translate = [](const auto& port,
                       auto& line) { line.set_option("via_options", "-p " + port); },
       .late = true},
      {.of = kHorovodrun,
       .flags = {"--ssh-identity-file"},
       .value = "FILE",
       .translate = [](const auto& file,
                       auto& line) { line.set_option("via_options", "-i " + file); },
       .late = true},
      another_name({"--start-timeout"}, "SECONDS", "rdzv_timeout"),
      another_name({"--reset-limit"}, "N", "max_restart"),
      another_name({"--slots", "--slots-per-host"}, "N", "nproc_per_node"),
      elastic("--min-np", "N"),
      elastic("--min-num-proc", "N"),
      elastic("--max-np", "N"),
      elastic("--max-num-proc", "N"),
      elastic("--host-discovery-script", "FILE"),
      {.of = kHorovodrun,
       .flags = {"--gloo", "--mpi", "--use-gloo", "--use-mpi", "--jsrun"},
       .ignored = "--dialect=horovod selects Horovod, which then uses Gloo"},
      {.of = kHorovodrun,
       .flags = {"--disable-cache"},
       .ignored = "fleetrun caches nothing between starts"},
      {.of = kHorovodrun,
       .flags = {"--network-interfaces", "--network-interface"},
       .value = "NAME",
       .ignored = "the addresses in --ips select the network"},
      {.of = kHorovodrun,
       .flags = {"--mpi-args"},
       .value = "TEXT",
       .ignored = "fleetrun starts the ranks without MPI"},
      {.of = kHorovodrun,
       .flags = {"--check-build", "-cb"},
       .refused = "it describes the build of Horovod",
       .next = "run horovodrun --check-build; fleetrun doctor checks this machine"},
      {.of = kHorovodrun,
       .flags = {"--fusion-threshold-mb"},
       .value = "MB",
       .translate = translate_fusion_threshold},
      variable("--cycle-time-ms", "MS", "HOROVOD_CYCLE_TIME"),
      variable("--cache-capacity", "N", "HOROVOD_CACHE_CAPACITY"),
      variable("--timeline-filename", "FILE", "HOROVOD_TIMELINE"),
      variable("--autotune", "", "HOROVOD_AUTOTUNE"),
      variable("--autotune-log-file", "FILE", "HOROVOD_AUTOTUNE_LOG"),
      variable("--no-stall-check", "", "HOROVOD_STALL_CHECK_DISABLE"),
      variable("--hierarchical-allreduce", "", "HOROVOD_HIERARCHICAL_ALLREDUCE"),
  };
}

}  // namespace fleet
