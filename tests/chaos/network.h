// Nodes of a cluster on one machine: network namespaces joined by a bridge.
#pragma once

#include <string>
#include <vector>

namespace fleet::chaos {

class Network {
 public:
  // `nodes` namespaces, named after `name`, with the addresses 10.78.0.1 and up. Throws
  // fleet::Error where this machine allows none (not root, no ip).
  Network(std::string name, int nodes);
  ~Network();  // takes them away
  Network(const Network&) = delete;

  int nodes() const { return nodes_; }
  static std::string address(int node) { return "10.78.0." + std::to_string(node + 1); }
  std::string all_addresses() const;  // "10.78.0.1,10.78.0.2"
  // The calling process (a fresh child) goes on in the node's namespace; false where it cannot.
  bool enter(int node) const;
  // From now on nothing gets in or out of the node, as if its cable were cut; or it does again.
  void set_cut(int node, bool cut);

 private:
  void set_up();
  void take_down();
  std::string name_of(int node) const { return name_ + "_" + std::to_string(node); }

  const std::string name_;
  const int nodes_;
};

}  // namespace fleet::chaos
