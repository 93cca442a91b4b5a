#include "launch/doctor/facts.h"

#include <algorithm>

namespace fleet {

const NetworkInterface* NodeFacts::facing() const {
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
