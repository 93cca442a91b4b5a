// Flags that several launchers have.
#include <algorithm>

#include "launch/compat/nodes.h"
#include "launch/compat/srun.h"

namespace fleet {
namespace {

// Nodes to srun, ranks of each node to mpirun.
void translate_capital_n(const std::string& value, CompatLine& line) {
  if (line.speaks("srun")) return translate_srun_nodes(value, line);
  if (line.speaks("mpirun")) return translate_ranks_per_node(value, line);
  line.refuse("srun means nodes by it, mpirun ranks of each node",
              "write --nproc_per_node=" + value + " or --nnodes=" + value);
  line.means("nproc_per_node", value);
}

// Of all ranks; with Paddle's elastic options, of nodes.
void translate_np(const std::string& value, CompatLine& line) {
  if (line.speaks("Paddle")) return line.means("nnodes", value);
  translate_total_ranks(value, line);
}

// Variables to mpirun, nodes to leave out to srun.
void translate_x(const std::string& value, CompatLine& line) {
  if (line.speaks("srun")) return give_to_srun("--exclude=" + value, line);
  translate_variable(value, line);
}

// A number of ranks to mpirun, of cores for each to srun.
void translate_c(const std::string& value, CompatLine& line) {
  if (line.speaks("mpirun")) return translate_total_ranks(value, line);
  line.means_nothing("ranks share the cores of their node by themselves");
}

// A port to horovodrun, a partition to srun.
void translate_p(const std::string& value, CompatLine& line) {
  const bool is_port =
      std::all_of(value.begin(), value.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
  if (!is_port) return give_to_srun("--partition=" + value, line);
  if (line.ours("via") == "ssh") return line.means("via_options", "-p " + value);
  line.means_nothing("no other node is reached from here");
}

}  // namespace

std::vector<CompatOption> several_options() {
  return {
      {.of = kSeveral,
       .flags = {"-n", "--n", "--np"},
       .value = "N",
       .translate = translate_np,
       .late = true},
      {.of = kSeveral, .flags = {"-N"}, .value = "N", .translate = translate_capital_n},
      {.of = kSeveral,
       .flags = {"-x"},
       .value = "NAME[=VALUE]",
       .translate = translate_x,
       .late = true},
      {.of = kSeveral, .flags = {"-c"}, .value = "N", .translate = translate_c, .late = true},
      {.of = kSeveral, .flags = {"-p"}, .value = "PORT", .translate = translate_p, .late = true},
      {.of = kSeveral,
       .flags = {"--launcher"},
       .value = "NAME",
       .translate =
           [](const std::string& value, CompatLine& line) {
             if (value == "slurm" || value == "SLURM") return line.means("via", "slurm");
             line.means_nothing("--via says how nodes are reached");
           }},
  };
}

}  // namespace fleet
