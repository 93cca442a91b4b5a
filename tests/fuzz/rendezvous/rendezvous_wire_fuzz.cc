// Messages of nodes, and of the rendezvous, decoded into our types.
#include "diagnosis/stacks.h"
#include "diagnosis/straggler_detector.h"
#include "rendezvous/membership.h"
#include "rendezvous/types.h"
#include "tests/fuzz/fuzz.h"
#include "transport/control_messages.h"
#include "transport/validate.h"

static void to_node(std::string_view bytes) {
  fleet::wire::HostMessage message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  if (message.has_assignment()) {
    const fleet::Assignment assignment = fleet::decode(message.assignment());
    const fleet::World& world = *assignment.world;  // unpacks it
    for (const fleet::wire::Node& node : world.nodes()) {
      for (int i = 0; i < node.local_world_size(); ++i)
        fleet::fuzz::attempt([&] { fleet::rank_of(node, i); });
    }
    fleet::encode(world);
  }
  if (message.has_refused()) fleet::to_wire(fleet::from_wire(message.refused()));
  fleet::validate(&message);
}

static void to_host(std::string_view bytes) {
  fleet::wire::NodeMessage message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  if (message.has_join()) {
    std::optional<fleet::SessionId> replaced;
    fleet::Membership(fleet::JobSpec()).add(1, message.join(), &replaced);
  }
  fleet::validate(&message);
  if (message.has_exit()) fleet::describe(message.exit(), "node");
  if (message.has_steps()) {
    fleet::StragglerDetector detector;
    detector.update(message.steps(), {});
  }
  if (message.has_stacks()) {
    const fleet::Stacks stacks = message.stacks();
    fleet::stacks_text(fleet::cluster_stacks(stacks));
  }
}

// "h": to the host, else to a node; then the message.
FLEET_FUZZ(rendezvous_wire) {
  fleet::fuzz::take_byte(&bytes) == 'h' ? to_host(bytes) : to_node(bytes);
}
