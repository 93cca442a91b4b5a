// The nodes that a user lists.
#pragma once

#include <string>
#include <vector>

namespace fleet {

struct ListedNode {
  std::string address;  // IP address (IPv6 without brackets) or host name
  int devices = 0;      // GPUs to use there, or ranks on a node without GPUs; 0: not given

  bool operator==(const ListedNode&) const = default;
};

// A list as in --ips, written out, in its order:
//   10.0.0.1,10.0.0.2       addresses or names; blanks around them are fine
//   host[01-16,20].cluster  ranges (the zeros of the first number count), as Slurm writes them
//   host:8                  a node with 8 GPUs; [fd00::1]:8 where the address is IPv6
//   @hostfile               a file of such entries, one or more a line; `host slots=8` and #
//   comments
// kUsage, naming `origin`, where an entry makes no sense; kNotFound for a file that is not there.
std::vector<ListedNode> expand_nodes(const std::string& list, const std::string& origin);

// IP addresses by their numbers ("10.0.0.9" before "10.0.0.10"), names behind them by theirs.
void sort_by_address(std::vector<ListedNode>* nodes);

// What expand_nodes() was given, in one form: "a,b:8,[fd00::1]:8".
std::string list_text(const std::vector<ListedNode>& nodes);

}  // namespace fleet
