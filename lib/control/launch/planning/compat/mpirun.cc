// Options of mpirun and mpiexec: Open MPI, MPICH (Hydra) and Intel MPI.
#include "base/text.h"
#include "launch/planning/compat/nodes.h"

namespace fleet {
namespace {

constexpr char kMpirun[] = "mpirun";
constexpr char kCores[] = "fleetrun divides the cores of a node among its ranks";
constexpr char kNoMpi[] = "fleetrun does not configure the ranks' communication";
constexpr char kShown[] = "--dry_run shows what fleetrun starts";

CompatOption ignored(std::vector<std::string> flags, std::string value, std::string why,
                     int values = 1) {
  return {.of = kMpirun,
          .flags = std::move(flags),
          .value = std::move(value),
          .values = values,
          .ignored = std::move(why)};
}

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

std::vector<CompatOption> nodes_and_ranks() {
  return {
      {.of = kMpirun,
       .flags = {"-H", "-hosts", "--hosts"},
       .value = "LIST",
       .translate = translate_hosts},
      {.of = kMpirun,
       .flags = {"--host"},
       .value = "LIST",
       .translate = translate_hosts,
       .when = names_several},
      {.of = kMpirun,
       .flags = {"--hostfile", "--machinefile", "-f", "--default-hostfile"},
       .value = "FILE",
       .translate = translate_host_file},
      {.of = kMpirun,
       .flags = {"-np"},
       .value = "N",
       .translate = translate_total_ranks,
       .late = true},
      {.of = kMpirun,
       .flags = {"--npernode", "-ppn", "--ppn", "--perhost"},
       .value = "N",
       .translate = translate_ranks_per_node},
      {.of = kMpirun, .flags = {"--map-by"}, .value = "HOW", .translate = translate_map_by},
      {.of = kMpirun,
       .flags = {"-genv", "-env"},
       .value = "NAME VALUE",
       .values = 2,
       .translate = translate_two_words,
       .late = true},
  };
}

std::vector<CompatOption> without_meaning() {
  return {
      ignored({"--allow-run-as-root"}, "", "fleetrun also runs as root"),
      ignored({"--bind-to"}, "HOW", kCores),
      ignored({"--rank-by"}, "HOW", kCores),
      ignored({"--report-bindings"}, "", kCores),
      ignored({"--use-hwthread-cpus"}, "", kCores),
      ignored({"--bycore", "--bynode", "--byslot", "--bind-to-core", "--bind-to-none",
               "--bind-to-socket"},
              "", kCores),
      ignored({"--cpus-per-proc", "--cpus-per-rank", "--cpu-set"}, "LIST", kCores),
      ignored({"--oversubscribe", "--nooversubscribe"}, "", kCores),
      ignored({"--mca", "--gmca", "--pmixmca", "--prtemca"}, "KEY VALUE", kNoMpi, 2),
      ignored({"--iface"}, "NAME", kNoMpi),
      ignored({"--display-map", "--display-allocation", "--display-devel-map"}, "", kShown),
      ignored({"--display"}, "WHAT", kShown),
      ignored({"--tag-output", "-prepend-rank"}, "", "lines of several ranks carry their rank"),
      ignored({"--merge-stderr-to-stdout"}, "", "logs hold both streams in order"),
      ignored({"--verbose", "-v"}, "", "use --log_level=DEBUG"),
      ignored({"-genvall", "-envall"}, "", "ranks inherit this environment"),
      ignored({"--bootstrap"}, "NAME", "--via selects how to reach the nodes"),
  };
}

CompatOption refused(std::vector<std::string> flags, std::string value, std::string why,
                     std::string next = {}) {
  return {.of = kMpirun,
          .flags = std::move(flags),
          .value = std::move(value),
          .refused = std::move(why),
          .next = std::move(next)};
}

std::vector<CompatOption> with_another_name() {
  return {
      {.of = kMpirun,
       .flags = {"--output-filename"},
       .value = "DIR",
       .translate =
           [](const auto& value, auto& line) {
             line.set_option("log_dir", value.substr(0, value.find(':')));
           }},
      {.of = kMpirun,
       .flags = {"--timestamp-output"},
       .translate = [](const auto&, auto& line) { line.set_option("timestamps", "console"); }},
      {.of = kMpirun,
       .flags = {"--timeout"},
       .value = "SECONDS",
       .translate =
           [](const std::string& value, CompatLine& line) {
             line.refuse("fleetrun has no time limit for a job", "start it with timeout " + value);
             line.prepend("timeout " + value);
           }},
      refused({"--wdir", "--wd"}, "DIR", "ranks run in this directory", "cd there first"),
      refused({"--app", "--configfile"}, "FILE", "all ranks run one program"),
      refused({"--xterm"}, "RANKS", "fleetrun does not open terminals for ranks",
              "see fleetrun debug"),
      refused({"--stdin"}, "RANKS", "ranks do not get standard input"),
  };
}

}  // namespace

std::vector<CompatOption> mpirun_options() {
  std::vector<CompatOption> all = nodes_and_ranks();
  for (const auto& more : {without_meaning(), with_another_name()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace fleet
