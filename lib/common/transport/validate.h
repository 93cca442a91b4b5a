// Checks of messages from peers, called once where a message enters: each of the four links of
// control.proto, and files that another version may have written.
#pragma once

#include "transport/control_messages.h"

namespace fleet {

// Cuts texts and lists beyond their limits. Throws kUsage, in one line, for a kind or an enum value
// that this version does not know and for a number that cannot be. The code of a Failure may be
// unknown: its text says what failed. A packed World is checked
// when it is unpacked.
void validate(wire::NodeMessage* message);
void validate(wire::HostMessage* message);
void validate(wire::GuardianCommand* message);
void validate(wire::GuardianEvent* message);
void validate(wire::ControlRequest* message);
void validate(wire::ControlReply* message);
void validate(const wire::ClientMessage& message);
void validate(const wire::FleetdMessage& message);
void validate(const wire::JobInfo& job);

// For senders: a receiver cuts to the same limits.
void cut(wire::RankExit* exit);
void cut(wire::Stacks* stacks);

}  // namespace fleet
