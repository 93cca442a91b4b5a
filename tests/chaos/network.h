// Nodes of a cluster on one machine: network namespaces joined by a bridge.
#pragma once

#include <string>
#include <vector>

namespace fleet::chaos {

class Network {
 public:
  enum class Family { kIpv4, kIpv6 };  // the nodes have no address of the other
  // `nodes` namespaces, named after `name`, with the addresses 10.78.0.1 or fd78::1 and up. Throws
  // fleet::Error where this machine allows none (not root, no ip).
  Network(std::string name, int nodes, Family family = Family::kIpv4);
  ~Network();  // takes them away
  Network(const Network&) = delete;

  int nodes() const { return nodes_; }
  std::string address(int node) const {
    return (family_ == Family::kIpv6 ? "fd78::" : "10.78.0.") + std::to_string(node + 1);
  }
  std::string all_addresses() const;  // "10.78.0.1,10.78.0.2"
  // Moves the calling process (a fresh child) into the node's namespace; false if it cannot.
  bool enter(int node) const;
  // From now on nothing gets in or out of the node, as if its cable were cut; or it does again.
  void set_cut(int node, bool cut) { set_loss(node, cut ? 100 : 0); }
  // From now on so many of 100 packets that come to the node are lost; 0: none; 100: none comes in
  // or gets out.
  // Throws fleet::Error where that cannot be.
  void set_loss(int node, int percent);
  bool can_lose() const;  // nft is there

 private:
  void set_up();
  void take_down();
  std::string name_of(int node) const { return name_ + "_" + std::to_string(node); }

  const std::string name_;
  const int nodes_;
  const Family family_;
};

}  // namespace fleet::chaos
