// "user@host" in host files: the launchers that read them pass it to ssh.
#include "launch/planning/compat/line.h"
#include "launch/planning/node_list.h"

namespace fleet {

void take_ssh_user(CompatLine& line) {
  std::vector<ListedNode> nodes = expand_nodes(line.own_option("ips").value_or(""), line.flag());
  std::set<std::string> users;
  for (ListedNode& node : nodes) {
    const size_t at = node.address.find('@');
    users.insert(at == std::string::npos ? std::string() : node.address.substr(0, at));
    if (at != std::string::npos) node.address.erase(0, at + 1);
  }
  if (users.empty() || users == std::set<std::string>{""}) return;
  if (users.size() > 1) {
    return line.refuse_without_correction("its nodes have different users",
                                          "name the user of each node in ~/.ssh/config");
  }
  line.override_option("ips", list_text(nodes));
  line.set_option("via_options", "-l " + *users.begin());
}

}  // namespace fleet
