// Payloads of messages about dense blocks: a fixed head, then sections in this order. Trainers and
// servers compute the sections from the same placement; docs/reference/parameter_server_protocol.md
// describes the bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "ps/message.h"
#include "ps/served_model.h"

namespace fleet::ps {

inline constexpr uint32_t kDenseProtocol = 4;

// A trainer's kHello, also the server's answer, whose header.version is: to the first process of a
// trainer, the training steps in the values (-1: none yet); to one that takes its place, the
// training steps that the pushes of its predecessors include.
struct HelloHead {
  uint32_t protocol = kDenseProtocol;
  int32_t trainer = 0, trainers = 1;
  int32_t server = 0, servers = 1;
  uint32_t mode = 0;                                             // ServerMode
  uint64_t parameters = 0, rule = 0, placement = 0, tables = 0;  // hashes
  uint32_t incarnation = 0;  // how many processes the trainer has had before
  uint32_t reserved = 0;
};

// kInitial; the sections follow. header.version: training steps that they include. header.sequence:
// ordinal of this collective call of the trainers (begin() is 1), see StatesHead.
struct InitialHead {
  uint32_t sections = 0;  // Sections, as bits
  uint32_t reserved = 0;
};

// kPush; gradients follow, in geo differences of values. header.version: the training step, from 0.
struct PushHead {
  float learning_rate = 0;
  uint32_t loss_is_bad = 0;   // 1: infinite or NaN
  uint32_t bad_gradient = 0;  // lowest bad input of check_finite, counted from 1; 0: none
  uint32_t reserved = 0;
};

// kValues; values follow. header.version: training steps of all trainers that they include.
struct ValuesHead {
  uint32_t left_out = 0;      // 1: some loss or gradient was bad, so that this update was left out
  uint32_t bad_gradient = 0;  // the lowest of all trainers
};

// kPullStates, and kStates before its sections. The server answers when it has the values of
// header.version and what trainer 0 has sent with this ordinal.
struct StatesHead {
  uint64_t ordinal = 0;  // 0: of no call
  uint32_t sections = 0;
  uint32_t reserved = 0;
};

// Parts of a server's blocks, as bits.
enum Sections : uint32_t {
  kValueSection = 1,     // values of blocks
  kAverageSection = 2,   // their averages (train.ema)
  kStateSection = 4,     // states of blocks
  kCounterSection = 8,   // counters
  kKeptSection = 16,     // variables that the server keeps
  kGradientSection = 32  // gradients of blocks; of kPush only
};
inline constexpr uint32_t kAllSections =
    kValueSection | kAverageSection | kStateSection | kCounterSection | kKeptSection;

// A contiguous part of a section. In a payload each begins at a multiple of 8 bytes.
struct BlockSegment {
  Sections section = kValueSection;
  int item = 0;          // index of the block, counter or kept variable
  int state = 0;         // kStateSection: index of the state
  std::string variable;  // a name in the trainer's Program
  DType dtype = DType::kFloat32;
  int64_t begin = 0;  // first element, in the variable
  size_t bytes = 0;
  size_t padded() const { return (bytes + 7) / 8 * 8; }
};
std::vector<BlockSegment> segments_of(const ServedModel& model, const Placement& placement,
                                      int server, uint32_t sections);
size_t bytes_of(const std::vector<BlockSegment>& segments);  // with padding

// The head of a received message; kInternal if the payload is shorter.
template <typename Head>
Head head_of(const Message& message) {
  Head head;
  FLEET_CHECK(message.payload().size() >= sizeof head, "a message that is too short");
  std::memcpy(&head, message.payload().data(), sizeof head);
  return head;
}
// The bytes behind it.
template <typename Head>
std::span<const std::byte> behind_head(const Message& message) {
  return message.payload().subspan(sizeof(Head));
}

// Bytes that the result owns.
Bytes owned_bytes(const void* data, size_t size);
template <typename Head>
Bytes bytes_of_head(const Head& head) {
  return owned_bytes(&head, sizeof head);
}
// The parts one after another, in memory of its own that other messages use again.
Bytes copy_of_parts(std::span<const Bytes> parts);
// Zeros, at most 7.
Bytes padding_bytes(size_t count);
// Adds a segment and its padding to a message's parts.
void append_segment(std::vector<Bytes>& parts, const BlockSegment& segment, Bytes bytes);

// An exception of any kind as an error; where: for those that name no place.
Error error_of(const std::exception& exception, const std::string& where);
// The error of a kFailure, and back. kInternal for other payloads.
Message failure_message(const Error& error);
Error error_of(const Message& failure);

}  // namespace fleet::ps
