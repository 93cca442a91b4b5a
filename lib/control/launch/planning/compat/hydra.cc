// Options of mpiexec that MPICH (Hydra) and Intel MPI have, and Open MPI lacks.
#include "base/text.h"
#include "launch/planning/compat/line.h"

namespace fleet {
namespace {

constexpr char kCores[] = "fleetrun divides the cores of a node among its ranks";
constexpr char kLogs[] = "ranks write their logs to --log_dir";
constexpr char kVia[] = "--via selects how to reach the nodes";

// -genv NAME VALUE
void translate_two_words(const std::string& value, CompatLine& line) {
  const size_t blank = value.find(' ');
  translate_variable(value.substr(0, blank) + "=" + value.substr(blank + 1), line);
}

void translate_gpus(const std::string& count, CompatLine& line) {
  if (count == "1" || count == "AUTO") return line.ignore("every rank has its own GPU");
  line.refuse_without_correction("fleetrun divides the GPUs of a node among its ranks",
                                 "give the number of ranks of a node: --nproc_per_node=N");
}

}  // namespace

void add_hydra_options(CompatGroup* group) {
  CompatOption& variable = group->translated({"--genv", "-env"}, "NAME VALUE", translate_two_words);
  variable.values = 2;
  variable.late = true;
  group->ignored({"--genvall", "--envall"}, "", "ranks inherit this environment");
  const std::string inherited = "ranks inherit this environment";
  const std::string clean = "start it with env -i NAME=VALUE ...";
  group->refused({"--genvlist", "--envlist"}, "LIST", inherited, clean);
  group->refused({"--genvnone", "--envnone"}, "", inherited, clean);
  group->ignored({"--bootstrap", "--rmk"}, "NAME", kVia);
  group->refused({"--launcher-exec"}, "PATH", kVia, "put that ssh first in PATH");
  group->ignored({"--disable-x"}, "", "fleetrun forwards no X11");
  group->refused({"--enable-x"}, "", "fleetrun forwards no X11", "see --via_options");
  group->ignored({"--topolib", "--membind", "--demux"}, "NAME", kCores);
  group->refused({"--order-nodes"}, "HOW", "fleetrun keeps the order of the list", "sort the list");
  group->translated({"--gpus-per-proc"}, "N", translate_gpus);
  group->ignored({"-profile", "--pmi-port", "--disable-hostname-propagation"}, "",
                 "fleetrun serves the ranks itself");
  group->ignored({"--usize"}, "SIZE", "fleetrun starts no further ranks for a program");
  group->ignored({"--print-all-exitcodes"}, "", "see verdict.json in --log_dir");
  group->refused({"--prepend-pattern"}, "PATTERN", "fleetrun has another template",
                 "use --log_line_prefix_template");
  group->refused({"--outfile-pattern", "--errfile-pattern"}, "PATTERN", kLogs,
                 "use --log_dir, and --log_split for a file of each stream");
  group->refused({"--info"}, "", "it describes the build of MPICH", "run mpiexec -info");
  group->refused({"--nameserver"}, "ADDR", "fleetrun serves no published names",
                 "start it with mpiexec");
  group->refused({"--disable-auto-cleanup"}, "", "the first failure ends the job",
                 "let the program handle its errors");
  group->refused({"--localhost"}, "NAME", "the nodes choose their addresses",
                 "give --ips or --master");
  group->refused({"--skip-launch-node"}, "", "fleetrun starts ranks on every listed node",
                 "leave this host out of the list");
}

}  // namespace fleet
