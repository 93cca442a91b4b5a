// The list of nodes that a user gives.
#pragma once

#include <string>
#include <vector>

namespace fleet {

struct ListedNode {
  std::string address;  // IP address (IPv6 without brackets) or host name
  int devices = 0;      // GPUs to use there, or ranks on a node without GPUs; 0: not given

  bool operator==(const ListedNode&) const = default;
};

// Expands a list as in --ips, in its order:
//   10.0.0.1,10.0.0.2       addresses or names; blanks around them are fine
//   host[01-16,20].cluster  ranges as in Slurm; leading zeros of the first number are kept
//   host:8                  a node with 8 GPUs; [fd00::1]:8 for an IPv6 address
//   @hostfile               a file of such entries, one or more per line; also `host slots=8`
//                           and # comments
// Throws kUsage, naming `origin`, for an invalid entry, and kNotFound for a missing file.
std::vector<ListedNode> expand_nodes(const std::string& list, const std::string& origin);

// Sorts IP addresses numerically ("10.0.0.9" before "10.0.0.10"), then names alphabetically.
void sort_by_address(std::vector<ListedNode>* nodes);

// The inverse of expand_nodes(), in canonical form: "a,b:8,[fd00::1]:8".
std::string list_text(const std::vector<ListedNode>& nodes);

}  // namespace fleet
