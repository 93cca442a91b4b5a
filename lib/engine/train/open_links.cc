#include "train/open_links.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace fleet {
namespace {

struct Link {
  GroupId group = -1;
  int peer = 0;
  bool sends = false;
  std::vector<int> ranks;  // the group's
  std::string name;        // the group's
};

// In an order that all ranks share: two ranks never wait for each other on different links.
std::vector<Link> links_of(const Program& program) {
  std::map<GroupId, Link> by_group;
  for (const Op& op : program.ops()) {
    const bool sends = op.type() == "send";
    if (!sends && op.type() != "recv") continue;
    const auto group = static_cast<GroupId>(op.attributes.integer("communicator"));
    const auto& def = program.groups().at(static_cast<size_t>(group));
    by_group[group] = {.group = group,
                       .peer = static_cast<int>(op.attributes.integer("peer")),
                       .sends = sends,
                       .ranks = def.ranks,
                       .name = def.name};
  }
  std::vector<Link> links;
  for (auto& [group, link] : by_group) links.push_back(std::move(link));
  std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) {
    return std::tie(a.ranks, a.name) < std::tie(b.ranks, b.name);
  });
  return links;
}

}  // namespace

void open_links(const Program& program, const std::vector<Communicator*>& communicators,
                Device& device, Stream& stream) {
  const Buffer element = device.allocate(sizeof(float));
  const View view{element.data(), 1, DType::kFloat32};
  for (const Link& link : links_of(program)) {
    Communicator* communicator = communicators.at(static_cast<size_t>(link.group));
    if (!communicator) continue;
    link.sends ? communicator->send(view, link.peer, stream)
               : communicator->recv(view, link.peer, stream);
    stream.synchronize();
    communicator->throw_if_failed();
  }
}

}  // namespace fleet
