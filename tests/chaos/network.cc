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

Network::Network(std::string name, int nodes) : name_(std::move(name)), nodes_(nodes) {
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
    must_run("ip -n " + own + " addr add " + address(node) + "/24 dev cable");
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

void Network::set_cut(int node, bool cut) {
  const std::string change = cut ? " -I " : " -D ";
  const std::string rules = "ip netns exec " + name_of(node) + " iptables -w";
  must_run(rules + change + "INPUT -i cable -j DROP");
  must_run(rules + change + "OUTPUT -o cable -j DROP");
}

}  // namespace fleet::chaos
