// Options of mpirun and mpiexec that Open MPI has, and those that MPICH shares with it. MPICH's own
// are in hydra.cc.
#include "base/text.h"
#include "launch/planning/compat/line.h"

namespace fleet {
namespace {

constexpr char kCores[] = "fleetrun divides the cores of a node among its ranks";
constexpr char kNoMpi[] = "fleetrun does not configure the ranks' communication";
constexpr char kShown[] = "--dry_run shows what fleetrun starts";
constexpr char kNoDaemon[] = "fleetrun starts no daemons of Open MPI";
constexpr char kOrder[] = "fleetrun numbers the ranks node by node";

void refuse_per_part(const std::string& part, CompatLine& line) {
  line.refuse_without_correction("the number of ranks depends on the " + part + "s of the nodes",
                                 "give the number of ranks with -np");
}

// "ppr:4:node". Slots are counted by --ips as well.
void translate_map_by(const std::string& value, CompatLine& line) {
  const std::vector<std::string> parts = split(value, ':');
  if (parts.size() >= 3 && parts[0] == "ppr") {
    if (parts[2] == "node") return line.set_option("nproc_per_node", parts[1]);
    if (!gives_total_ranks(line)) return refuse_per_part(parts[2], line);
  }
  line.ignore(parts[0] == "node" ? kOrder : kCores);
}

void translate_per_socket(const std::string&, CompatLine& line) {
  gives_total_ranks(line) ? line.ignore(kCores) : refuse_per_part("socket", line);
}

// plm_rsh_args are ssh's; the other parameters configure Open MPI's libraries.
void translate_mca(const std::string& value, CompatLine& line) {
  const size_t blank = value.find(' ');
  if (value.substr(0, blank) != "plm_rsh_args") return line.ignore(kNoMpi);
  if (line.own_option("via") == "ssh") {
    return line.set_option("via_options", value.substr(blank + 1));
  }
  line.ignore("fleetrun connects to no other node by ssh here");
}

void translate_timeout(const std::string& value, CompatLine& line) {
  line.refuse("fleetrun has no time limit for a job", "start it with timeout " + value);
  line.prepend("timeout " + value);
}

// Whether the value is a list: "a,b" or "a:4". Two colons make it an IPv6 address.
bool names_several(const std::string& value) {
  const size_t colon = value.find(':');
  const bool counted = colon != std::string::npos && colon == value.rfind(':');
  return counted || value.find(',') != std::string::npos;
}

void add_nodes_and_ranks(CompatGroup* group) {
  group->translated({"-H", "-hosts", "--hosts"}, "LIST", translate_hosts).shared = true;
  group->translated({"--host"}, "LIST", translate_hosts).when = names_several;
  group->translated({"--hostfile"}, "FILE", translate_host_file).shared = true;
  group->translated({"--machinefile", "-f", "--default-hostfile"}, "FILE", translate_host_file);
  CompatOption& total = group->translated({"-np"}, "N", translate_total_ranks);
  total.late = true;
  total.shared = true;
  group->sets({"--npernode", "-ppn", "--ppn", "--perhost"}, "N", "nproc_per_node");
  group->translated({"--pernode"}, "",
                    [](const auto&, CompatLine& line) { line.set_option("nproc_per_node", "1"); });
  group->translated({"--npersocket"}, "N", translate_per_socket);
  group->translated({"--map-by"}, "HOW", translate_map_by);
  group->translated({"--ppr"}, "N:PART", [](const std::string& value, CompatLine& line) {
    translate_map_by("ppr:" + value, line);
  });
  group->refused({"--rankfile", "-rf"}, "FILE", "fleetrun places the ranks itself",
                 "give the nodes and counts with --ips=a:4,b:2");
  group->refused({"--nolocal"}, "", "fleetrun starts ranks on every listed node",
                 "leave this host out of the list");
  group->refused({"--max-vm-size"}, "N", "fleetrun starts ranks on every listed node",
                 "shorten the list");
}

// Options about cores, which fleetrun divides itself.
void add_binding(CompatGroup* group) {
  group->ignored({"--bind-to"}, "HOW", kCores);
  group->ignored({"--report-bindings", "--use-hwthread-cpus", "--bycore", "--byslot",
                  "--bind-to-core", "--bind-to-none", "--bind-to-socket", "--nooversubscribe"},
                 "", kCores);
  group->ignored({"--cpus-per-proc", "--cpus-per-rank"}, "N", kCores);
  group->ignored({"--cartofile", "-cf"}, "FILE", kCores);
  group->ignored({"--rank-by"}, "HOW", kOrder);
  group->ignored({"--bynode"}, "", kOrder);
  group->refused({"--cpu-set", "--cpu-list"}, "LIST",
                 "fleetrun numbers the cores as the system does, Open MPI does not",
                 "start fleetrun with taskset -c");
}

void add_parameters(CompatGroup* group) {
  CompatOption& mca =
      group->translated({"--mca", "--gmca", "--pmixmca", "--prtemca"}, "KEY VALUE", translate_mca);
  mca.values = 2;
  mca.late = true;
  group->ignored({"-am", "--am"}, "FILE", kNoMpi);
  group->ignored({"--iface"}, "NAME", kNoMpi);
  group->refused({"--tune"}, "FILE", "only Open MPI reads it", "give its variables with -x");
  group->refused({"--prefix"}, "DIR", "fleetrun sets no PATH for Open MPI on the nodes",
                 "give -x PATH -x LD_LIBRARY_PATH");
  group->ignored({"--noprefix"}, "", "fleetrun sets no PATH for Open MPI on the nodes");
  group->refused({"--path"}, "LIST", "fleetrun looks for the program in PATH",
                 "give its path, or set PATH");
}

void add_output(CompatGroup* group) {
  group->ignored({"--display-map", "--display-allocation", "--display-devel-map",
                  "--display-devel-allocation", "--display-diffable-map", "--display-topo"},
                 "", kShown);
  group->ignored({"--display"}, "WHAT", kShown);
  group->ignored({"--tag-output", "--prepend-rank"}, "", "lines of several ranks carry their rank");
  group->ignored({"--merge-stderr-to-stdout"}, "", "logs hold both streams in order");
  group->ignored({"--output-proctable"}, "", "fleetrun status shows the processes");
  group->ignored({"--show-progress"}, "", "a start is fast");
  group
      ->translated({"--output-filename"}, "DIR",
                   [](const std::string& value, CompatLine& line) {
                     line.set_option("log_dir", value.substr(0, value.find(':')));
                   })
      .shared = true;
  group->translated({"--timestamp-output"}, "", [](const auto&, CompatLine& line) {
    line.set_option("timestamps", "console");
  });
  group->refused({"--xml"}, "", "fleetrun writes no XML", "read log/verdict.json");
  group->refused({"--xml-file"}, "FILE", "fleetrun writes no XML", "read log/verdict.json");
  group->refused({"--xterm"}, "RANKS", "fleetrun does not open terminals for ranks",
                 "see fleetrun debug");
  group->translated({"--stdin"}, "RANK", [](const std::string& rank, CompatLine& line) {
    if (rank == "none") return line.ignore("ranks get no standard input");
    line.refuse_without_correction("ranks get no standard input", "let the program read a file");
  });
}

// What Open MPI's own daemons and debuggers do.
void add_runtime(CompatGroup* group) {
  group->ignored({"--allow-run-as-root"}, "", "fleetrun also runs as root");
  group->ignored(
      {"--novm", "--leave-session-attached", "--do-not-resolve", "--use-regexp", "--debug-daemons",
       "--debug-daemons-file", "--debug-devel", "--report-child-jobs-separately",
       "--enable-instant-on-support", "--fwd-mpirun-port"},
      "", kNoDaemon);
  group->ignored({"--report-events"}, "URI", kNoDaemon);
  group->ignored({"--disable-recovery"}, "", "the first failure ends the job");
  group->ignored({"--get-stack-traces", "--report-state-on-timeout"}, "",
                 "they belong to --timeout; see fleetrun stacks");
  group->translated({"--timeout"}, "SECONDS", translate_timeout);
  group->translated({"--personality"}, "LIST", [](const std::string& list, CompatLine& line) {
    if (list == "ompi") return line.ignore(kNoDaemon);
    line.refuse_without_correction(kNoDaemon, "start it with mpirun");
  });
  for (const char* flag : {"--dvm", "--terminate"}) {
    group->refused({flag}, "", kNoDaemon, "start it with mpirun");
  }
  group->refused({"--hnp", "--ompi-server", "--report-uri", "--launch-agent"}, "VALUE", kNoDaemon,
                 "start it with mpirun");
  group->refused({"--report-pid"}, "WHERE", "fleetrun does not print its pid", "see fleetrun ls");
  group->refused({"--continuous", "--enable-recovery"}, "",
                 "the first failure ends the job, or restarts all of it", "give --max_restart=N");
  group->refused({"--do-not-launch"}, "", "it starts nothing", "use --dry_run");
  group->refused({"--debugger"}, "LIST", "fleetrun starts no debugger for all ranks",
                 "see fleetrun debug");
  group->refused({"-debug", "-tv", "--tv"}, "", "fleetrun starts no debugger for all ranks",
                 "see fleetrun debug");
}

void add_program(CompatGroup* group) {
  const std::string no_copies = "fleetrun copies no files to the nodes";
  group->refused({"--wdir", "--wd"}, "DIR", "ranks run in this directory", "cd there first");
  group->refused({"--set-cwd-to-session-dir"}, "", "ranks run in this directory", "cd there first");
  group->refused({"--preload-binary"}, "", no_copies, "copy the program first");
  group->refused({"--preload-files"}, "LIST", no_copies, "copy them first");
  group->refused({"--app", "--configfile"}, "FILE", "all ranks run one program",
                 "start one fleetrun for each program");
  group->refused({"--index-argv-by-rank"}, "", "all ranks have the same arguments",
                 "let the program read RANK");
}

}  // namespace

CompatGroup mpirun_options() {
  CompatGroup group("mpirun");
  add_nodes_and_ranks(&group);
  add_binding(&group);
  add_parameters(&group);
  add_output(&group);
  add_runtime(&group);
  add_program(&group);
  add_hydra_options(&group);
  return group;
}

}  // namespace fleet
