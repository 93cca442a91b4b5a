// Messages between trainers and parameter servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace fleet::ps {

// The numbers are part of the protocol; docs/reference/parameter_server_protocol.md describes it.
enum class MessageType : uint16_t {
  kHello = 1,   // trainer: its rank and the hash of its blocks; server: its answer
  kInitial,     // trainer 0: initial values of blocks, and states to continue with
  kPush,        // trainer: gradients (or differences, in geo) of blocks or rows
  kPull,        // trainer: asks for values of at least this version
  kValues,      // server: values of blocks or rows
  kPullStates,  // trainer: asks for the optimizer's states, for a checkpoint
  kStates,      // server
  kAccepted,    // server: a push or initial values are applied or kept; carries their sequence
  kCommand,     // trainer 0: load, cut, write, drop or shrink tables; JSON
  kResult,      // server: the answer to a command; JSON
  kFailure,     // server: the reason why the job cannot continue; text
  kGoodbye,     // trainer: it has ended as planned
  kNorms,       // server: sums of squares of its gradients; trainer 0: those of all servers
  kMeeting,     // trainer, if apart: it waits for the others, which do not wait for its steps
};

// The host's byte order: all hosts of a job are little-endian.
struct MessageHeader {
  MessageType type = MessageType::kHello;
  uint16_t table = 0;     // 0: the dense blocks; > 0: a sparse table, by its position in the job
  uint32_t count = 0;     // blocks or rows in the payload
  uint64_t sequence = 0;  // ascends by one with each push of a trainer; a retried push keeps its
                          // own. Meetings: ascends from one to the next, the same for all trainers
  int64_t version = 0;  // push: the step of its gradients; pull, values: updates that they include
};

// Bytes of a payload, and the owner of their memory; a null owner: the sender keeps it
// unchanged until Connection::wait_until_unsent(0) has returned.
struct Bytes {
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner = nullptr;
};

// The payload is the parts one after another. A received message has at most one part, which owns
// its memory and is aligned for any type.
struct Message {
  MessageHeader header;
  std::vector<Bytes> parts = {};

  size_t bytes() const {
    size_t sum = 0;
    for (const Bytes& part : parts) sum += part.data.size();
    return sum;
  }
  std::span<const std::byte> payload() const {  // for received messages
    return parts.empty() ? std::span<const std::byte>() : parts[0].data;
  }
};

}  // namespace fleet::ps
