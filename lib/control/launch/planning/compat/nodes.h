// Translation of other launchers' nodes and rank counts, for CompatOption::translate.
#pragma once

#include <string>

#include "launch/planning/compat/line.h"

namespace fleet {

// "host1:4,host2:4" or "host1,host2" becomes --ips, started from here over ssh as mpirun does. A
// list of only this machine becomes --nproc_per_node.
void translate_hosts(const std::string& value, CompatLine& line);
// The same for a host file.
void translate_host_file(const std::string& path, CompatLine& line);
// The total number of ranks of the job (mpirun -np). Call it after the nodes are known.
void translate_total_ranks(const std::string& value, CompatLine& line);
// "NAME" or "NAME=VALUE" for the ranks' environment. Call it after the nodes are known.
void translate_variable(const std::string& value, CompatLine& line);

// Whether the line gives the total number of ranks: "-np", "--ntasks", ...
bool gives_total_ranks(const CompatLine& line);

// Adds --via=ssh, unless the line shows that fleetrun runs on each node.
void use_ssh(CompatLine& line);

// Passes an option on to srun: through --via=slurm inside an allocation. Outside one it is
// rejected, and the corrected line starts fleetrun with srun.
void pass_to_srun(const std::string& word, CompatLine& line);
void translate_srun_nodes(const std::string& value, CompatLine& line);

}  // namespace fleet
