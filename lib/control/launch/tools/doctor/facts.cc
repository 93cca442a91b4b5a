#include "launch/tools/doctor/facts.h"

#include <algorithm>

#include "launch/planning/addresses.h"

namespace fleet {

const NetworkInterface* NodeFacts::primary_interface() const {
  if (is_loopback(numeric)) {  // all of 127.0.0.0/8 belongs to lo
    const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                    [](const NetworkInterface& one) { return one.loopback; });
    return found == interfaces.end() ? nullptr : &*found;
  }
  for (const NetworkInterface& one : interfaces) {
    if (std::find(one.addresses.begin(), one.addresses.end(), numeric) != one.addresses.end()) {
      return &one;
    }
  }
  return nullptr;
}

const NetworkInterface* NodeFacts::interface(const std::string& name) const {
  for (const NetworkInterface& one : interfaces) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::string NodeFacts::setting(const std::string& name) const {
  for (const auto* from : {&environment, &nccl_conf}) {
    if (const auto found = from->find(name); found != from->end()) return found->second;
  }
  return {};
}

}  // namespace fleet
