// How other launchers say which nodes there are and how many ranks: for CompatOption::translate.
#pragma once

#include <string>

#include "launch/compat/line.h"

namespace fleet {

// "host1:4,host2:4", or "host1,host2": --ips, started from here over ssh as mpirun does. What is
// only this machine becomes --nproc_per_node.
void translate_hosts(const std::string& value, CompatLine& line);
// A file of them.
void translate_host_file(const std::string& path, CompatLine& line);
// The number of ranks of the whole job (mpirun -np), after the nodes are known.
void translate_total_ranks(const std::string& value, CompatLine& line);
// How many ranks each node has.
void translate_ranks_per_node(const std::string& value, CompatLine& line);
// "NAME" or "NAME=VALUE", for the ranks' environment; after the nodes are known.
void translate_variable(const std::string& value, CompatLine& line);

// The flags that say the number of all ranks: "-np", "--ntasks", ...
bool gives_total_ranks(const CompatLine& line);

// --ips from here, where the line does not say that each node runs it.
void start_over_ssh(CompatLine& line);

}  // namespace fleet
