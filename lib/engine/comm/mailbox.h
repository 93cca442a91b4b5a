// Messages from one rank to another through shared memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/communicator.h"
#include "comm/control_block.h"
#include "comm/group.h"

namespace fleet {

// One direction between two ranks of a group, in memory that both share and that is zero at first.
// A message is sent in pieces through two boxes.
struct Mailbox {
  static constexpr size_t kPieceBytes = 64 << 10;

  alignas(128) std::atomic<uint64_t> sent;   // pieces; counted by the sender
  alignas(128) std::atomic<uint64_t> taken;  // counted by the receiver
  alignas(64) uint64_t message_bytes[2];     // the whole message's
  alignas(64) char pieces[2][kPieceBytes];
};

// Both throw the group's failure if the other rank does not come. Only one thread of each rank may
// use a Mailbox at a time.

// Returns once the receiver has taken all but the last two pieces.
void send_message(Mailbox& to, const View& data, ControlBlock& control, int receiver);
// Fails the group (kInternal) if the message has another size than `data`.
void receive_message(Mailbox& from, const View& data, ControlBlock& control, const Group& group,
                     int sender);

}  // namespace fleet
