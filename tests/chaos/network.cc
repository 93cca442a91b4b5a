#include "tests/chaos/network.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"

namespace fleet::chaos {
namespace {

bool runs(const std::string& command) {
  const int status = std::system((command + " 2>/dev/null").c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void must_run(const std::string& command) {
  if (!runs(command)) throw Error(ErrorCode::kUnsupported, "failed: " + command);
}

}  // namespace

Network::Network(std::string name, int nodes, Family family)
    : name_(std::move(name)), nodes_(nodes), family_(family) {
  if (::getuid() != 0) throw Error(ErrorCode::kUnsupported, "network namespaces need root");
  try {
    set_up();
  } catch (const Error&) {  // a chroot lets namespaces be made, but not entered
    take_down();
    throw;
  }
}

void Network::set_up() {
  const std::string hub = name_ + "_hub";
  must_run("ip netns add " + hub);
  must_run("ip -n " + hub + " link add hub type bridge");
  must_run("ip -n " + hub + " link set hub up");
  for (int node = 0; node < nodes_; ++node) {
    const std::string own = name_of(node), port = "port" + std::to_string(node);
    must_run("ip netns add " + own);
    must_run("ip -n " + own + " link add cable type veth peer name " + port + " netns " + hub);
    // Nobody else can have this address: no looking for duplicates.
    const std::string bits = family_ == Family::kIpv6 ? "/64 nodad" : "/24";
    must_run("ip -n " + own + " addr add " + address(node) + bits + " dev cable");
    must_run("ip -n " + own + " link set lo up");
    must_run("ip -n " + own + " link set cable up");
    must_run("ip -n " + hub + " link set " + port + " master hub");
    must_run("ip -n " + hub + " link set " + port + " up");
  }
}

Network::~Network() { take_down(); }

void Network::take_down() {
  for (int node = 0; node < nodes_; ++node) runs("ip netns del " + name_of(node));
  runs("ip netns del " + name_ + "_hub");
}

std::string Network::all_addresses() const {
  std::string all;
  for (int node = 0; node < nodes_; ++node) all += (node > 0 ? "," : "") + address(node);
  return all;
}

bool Network::enter(int node) const {
  const UniqueFd space(::open(("/run/netns/" + name_of(node)).c_str(), O_RDONLY | O_CLOEXEC));
  return space && ::setns(space.get(), CLONE_NEWNET) == 0;
}

bool Network::can_lose() const {
  return runs("ip netns exec " + name_of(0) + " nft list ruleset >/dev/null");
}

void Network::set_loss(int node, int percent) {
  const std::string nft = "ip netns exec " + name_of(node) + " nft ";
  runs(nft + "delete table inet chaos");
  if (percent == 0) return;
  const std::string some =
      percent < 100 ? "numgen random mod 100 < " + std::to_string(percent) + " drop" : "drop";
  const std::string sent =
      percent < 100 ? ""
                    : " chain out { type filter hook output priority 0; oifname cable drop; };";
  must_run(nft + "'add table inet chaos { chain in { type filter hook input priority 0; " +
           "iifname cable " + some + "; };" + sent + " }'");
}

}  // namespace fleet::chaos
