// Flags that several launchers share.
#include <algorithm>

#include "launch/planning/compat/line.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

// Means nodes for srun, ranks per node for mpirun.
void translate_capital_n(const std::string& value, CompatLine& line) {
  if (line.uses_launcher("srun")) return translate_srun_nodes(value, line);
  if (line.uses_launcher("mpirun")) return line.set_option("nproc_per_node", value);
  line.refuse("it means nodes for srun, ranks per node for mpirun",
              "write --nproc_per_node=" + value + " or --nnodes=" + value);
  line.set_option("nproc_per_node", value);
}

// Total number of ranks; number of nodes with Paddle's elastic options.
void translate_np(const std::string& value, CompatLine& line) {
  if (line.uses_launcher("Paddle")) return line.set_option("nnodes", value);
  translate_total_ranks(value, line);
}

// Means variables for mpirun, nodes to exclude for srun.
void translate_x(const std::string& value, CompatLine& line) {
  if (line.uses_launcher("srun")) return pass_to_srun("--exclude=" + value, line);
  translate_variable(value, line);
}

// Means the number of ranks for mpirun, cores per rank for srun.
void translate_c(const std::string& value, CompatLine& line) {
  if (line.uses_launcher("mpirun")) return translate_total_ranks(value, line);
  translate_cores_per_rank(value, line);
}

// Means a port for horovodrun, a partition for srun.
void translate_p(const std::string& value, CompatLine& line) {
  const bool is_port =
      std::all_of(value.begin(), value.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
  if (!is_port) return pass_to_srun("--partition=" + value, line);
  pass_to_ssh(value, line);
}

// deepspeed's hosts are not known before its options are translated together.
void translate_ssh_port(const std::string& port, CompatLine& line) {
  if (!line.uses_launcher("deepspeed")) pass_to_ssh(port, line);
}

// Means more ranks than slots for mpirun, nodes that are shared with other jobs for srun.
void translate_oversubscribe(const std::string&, CompatLine& line) {
  if (line.uses_launcher("srun")) return pass_to_srun("--oversubscribe", line);
  line.ignore("the number of ranks decides");
}

// Copies the program to the nodes for mpirun; the same as --oversubscribe for srun.
void translate_s(const std::string& value, CompatLine& line) {
  if (!line.uses_launcher("mpirun")) return translate_oversubscribe(value, line);
  line.refuse_without_correction("fleetrun copies no files to the nodes", "copy the program first");
}

}  // namespace

void pass_to_ssh(const std::string& port, CompatLine& line) {
  if (line.own_option("via") == "ssh") return line.set_option("via_options", "-p " + port);
  line.ignore("fleetrun connects to no other node by ssh here");
}

void refuse_several_programs(const std::vector<std::string>& program, const CompatLine& line) {
  const bool of_mpi = line.uses_launcher("mpirun") || line.uses_launcher("srun");
  if (!of_mpi && !gives_total_ranks(line)) return;
  if (std::ranges::find(program, ":") == program.end()) return;
  refuse("all ranks run one program, and ':' begins another one", ":",
         "start one fleetrun for each program, or a script that chooses by RANK");
}

CompatGroup several_options() {
  CompatGroup group(kSeveral);
  group.translated({"-n", "--n", "--np"}, "N", translate_np).late = true;
  group.translated({"-N"}, "N", translate_capital_n);
  group.translated({"-x"}, "NAME[=VALUE]", translate_x).late = true;
  group.translated({"-c"}, "N", translate_c).last = true;
  group.translated({"-p"}, "PORT", translate_p).late = true;
  group.translated({"--ssh-port"}, "PORT", translate_ssh_port).late = true;
  group.ignored({"--verbose", "-v"}, "", "use --log_level=DEBUG");
  group.translated({"--oversubscribe"}, "", translate_oversubscribe).late = true;
  group.translated({"-s"}, "", translate_s).late = true;
  group.translated({"--launcher"}, "NAME", [](const std::string& value, CompatLine& line) {
    if (value == "slurm" || value == "SLURM") return line.set_option("via", "slurm");
    line.ignore("--via selects how to reach the nodes");
  });
  return group;
}

}  // namespace fleet
