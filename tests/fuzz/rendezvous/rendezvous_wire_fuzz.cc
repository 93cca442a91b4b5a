// Messages of nodes, and of the rendezvous, decoded into our types.
#include "rendezvous/stacks.h"
#include "rendezvous/straggler_detector.h"
#include "rendezvous/wire.h"
#include "tests/fuzz/fuzz.h"

static void to_node(std::string_view bytes) {
  fleet::wire::HostMessage message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  if (message.has_assignment()) {
    const fleet::Assignment assignment = fleet::from_wire(message.assignment());
    const fleet::World& world = *assignment.world;  // unpacks it
    for (const fleet::NodePlacement& node : world.nodes) {
      for (int i = 0; i < node.nproc(); ++i) fleet::fuzz::attempt([&] { node.rank_of(i); });
    }
    fleet::encode(world);
  }
  if (message.has_refused()) fleet::to_wire(fleet::from_wire(message.refused()));
  fleet::within_limits(message);
}

static void to_host(std::string_view bytes) {
  fleet::wire::NodeMessage message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  if (message.has_join()) fleet::to_wire(fleet::from_wire(message.join()));
  if (message.has_exit()) fleet::describe(fleet::within_limits(message.exit()), "node");
  if (message.has_steps()) {
    fleet::StragglerDetector detector;
    detector.update(message.steps(), {});
  }
  if (message.has_stacks()) {
    fleet::Stacks stacks = fleet::with_own_frames(message.stacks());
    fleet::stacks_text(fleet::cluster_stacks(stacks));
    fleet::share_frames(&stacks);
  }
}

// "h": to the host, else to a node; then the message.
FLEET_FUZZ(rendezvous_wire) {
  fleet::fuzz::take_byte(&bytes) == 'h' ? to_host(bytes) : to_node(bytes);
}
