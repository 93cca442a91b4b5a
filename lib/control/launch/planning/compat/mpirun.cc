// Options of mpirun and mpiexec: Open MPI, MPICH (Hydra) and Intel MPI.
#include "base/text.h"
#include "launch/planning/compat/line.h"

namespace fleet {
namespace {

constexpr char kCores[] = "fleetrun divides the cores of a node among its ranks";
constexpr char kNoMpi[] = "fleetrun does not configure the ranks' communication";
constexpr char kShown[] = "--dry_run shows what fleetrun starts";

// Slots are counted by --ips as well.
void translate_map_by(const std::string& value, CompatLine& line) {
  const std::vector<std::string> parts = split(value, ':');
  const bool per_node = parts.size() >= 3 && parts[0] == "ppr" && parts[2] == "node";
  if (per_node && !gives_total_ranks(line)) return line.set_option("nproc_per_node", parts[1]);
  line.ignore(kCores);
}

// -genv NAME VALUE
void translate_two_words(const std::string& value, CompatLine& line) {
  const size_t blank = value.find(' ');
  translate_variable(value.substr(0, blank) + "=" + value.substr(blank + 1), line);
}

// Whether the value is a list: "a,b" or "a:4". Two colons make it an IPv6 address.
bool names_several(const std::string& value) {
  const size_t colon = value.find(':');
  const bool counted = colon != std::string::npos && colon == value.rfind(':');
  return counted || value.find(',') != std::string::npos;
}

}  // namespace

CompatGroup mpirun_options() {
  CompatGroup group("mpirun");
  group.translated({"-H", "-hosts", "--hosts"}, "LIST", translate_hosts);
  group.translated({"--host"}, "LIST", translate_hosts).when = names_several;
  group.translated({"--hostfile", "--machinefile", "-f", "--default-hostfile"}, "FILE",
                   translate_host_file);
  group.translated({"-np"}, "N", translate_total_ranks).late = true;
  group.sets({"--npernode", "-ppn", "--ppn", "--perhost"}, "N", "nproc_per_node");
  group.translated({"--map-by"}, "HOW", translate_map_by);
  CompatOption& variable = group.translated({"-genv", "-env"}, "NAME VALUE", translate_two_words);
  variable.values = 2;
  variable.late = true;
  group.ignored({"--allow-run-as-root"}, "", "fleetrun also runs as root");
  group.ignored({"--bind-to", "--rank-by"}, "HOW", kCores);
  group.ignored({"--report-bindings", "--use-hwthread-cpus", "--bycore", "--bynode", "--byslot",
                 "--bind-to-core", "--bind-to-none", "--bind-to-socket", "--oversubscribe",
                 "--nooversubscribe"},
                "", kCores);
  group.ignored({"--cpus-per-proc", "--cpus-per-rank", "--cpu-set"}, "LIST", kCores);
  group.ignored({"--mca", "--gmca", "--pmixmca", "--prtemca"}, "KEY VALUE", kNoMpi).values = 2;
  group.ignored({"--iface"}, "NAME", kNoMpi);
  group.ignored({"--display-map", "--display-allocation", "--display-devel-map"}, "", kShown);
  group.ignored({"--display"}, "WHAT", kShown);
  group.ignored({"--tag-output", "-prepend-rank"}, "", "lines of several ranks carry their rank");
  group.ignored({"--merge-stderr-to-stdout"}, "", "logs hold both streams in order");
  group.ignored({"--verbose", "-v"}, "", "use --log_level=DEBUG");
  group.ignored({"-genvall", "-envall"}, "", "ranks inherit this environment");
  group.ignored({"--bootstrap"}, "NAME", "--via selects how to reach the nodes");
  group.translated({"--output-filename"}, "DIR", [](const auto& value, CompatLine& line) {
    line.set_option("log_dir", value.substr(0, value.find(':')));
  });
  group.translated({"--timestamp-output"}, "",
                   [](const auto&, CompatLine& line) { line.set_option("timestamps", "console"); });
  group.translated({"--timeout"}, "SECONDS", [](const std::string& value, CompatLine& line) {
    line.refuse("fleetrun has no time limit for a job", "start it with timeout " + value);
    line.prepend("timeout " + value);
  });
  group.refused({"--wdir", "--wd"}, "DIR", "ranks run in this directory", "cd there first");
  group.refused({"--app", "--configfile"}, "FILE", "all ranks run one program");
  group.refused({"--xterm"}, "RANKS", "fleetrun does not open terminals for ranks",
                "see fleetrun debug");
  group.refused({"--stdin"}, "RANKS", "ranks do not get standard input");
  return group;
}

}  // namespace fleet
