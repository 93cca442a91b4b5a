// Lists of nodes: --ips, and host files.
#include "launch/planning/node_list.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

// A list; or behind "@\n" a host file.
FLEET_FUZZ(nodes) {
  const bool file = bytes.starts_with("@\n");
  if (file) {
    const fleet::fuzz::MemoryFile hosts(bytes.substr(2));
    fleet::expand_nodes("@" + hosts.path(), "--ips");
    return;
  }
  if (bytes.find('@') != bytes.npos) return;  // no files of this machine
  std::vector<fleet::ListedNode> nodes = fleet::expand_nodes(std::string(bytes), "--ips");
  fleet::fuzz::require(nodes.size() <= 65536, "there are not too many nodes");
  const std::string text = fleet::list_text(nodes);
  fleet::fuzz::require(nodes == fleet::expand_nodes(text, "--ips"),
                       "a list of nodes as text is that list");
  fleet::sort_by_address(&nodes);
}
