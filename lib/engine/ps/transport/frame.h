// Frames: the parts in which messages are sent, over gRPC and through shared memory
// (docs/reference/parameter_server_protocol.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "ps/message.h"
#include "ps/transport/receive_memory.h"

namespace fleet::ps {

// Changes with the frames and the handshake. Ends of different versions refuse each other.
inline constexpr int kProtocolVersion = 1;

inline constexpr size_t kFrameBytes = size_t{1} << 20;  // largest payload of a frame
// A larger message must be noise. It is refused when its first frame arrives.
inline constexpr uint64_t kMaxMessageBytes = uint64_t{1} << 40;

enum class FrameKind : uint16_t {
  kOpen = 1,  // the client's first frame: it uses this connection
  kMessage,   // the first part of a message, or all of it
  kMore,      // another part of the same message
  kClose,     // the sender's last frame
};

struct FrameHeader {
  static constexpr uint16_t kMagic = 0x5046;  // "FP"
  uint16_t magic = kMagic;
  FrameKind kind = FrameKind::kMessage;
  uint32_t bytes = 0;     // payload of this frame, which follows the header
  uint64_t total = 0;     // payload of the whole message
  MessageHeader message;  // repeated in all frames of a message
};
static_assert(sizeof(MessageHeader) == 24 && sizeof(FrameHeader) == 40);

// Puts messages together from a stream of frames, cut anywhere. Not thread-safe.
class Assembler {
 public:
  struct Handler {
    std::function<void(Message)> message;
    std::function<void(FrameKind)> control;  // kOpen, kClose
  };
  Assembler(ReceiveMemory& memory, Handler handler)
      : memory_(memory), handler_(std::move(handler)) {}

  // Throws kUsage if the bytes are not such a stream, kNoMemory if a message does not fit into this
  // machine. The assembler is of no use afterwards.
  void feed(std::span<const std::byte> bytes);

 private:
  void begin_frame();
  void begin_message();
  void end_frame();

  ReceiveMemory& memory_;
  const Handler handler_;
  FrameHeader header_;
  size_t header_bytes_ = 0;               // the received part of header_
  size_t left_ = 0;                       // payload of the frame that has not arrived
  std::optional<MessageHeader> message_;  // the one that is being put together
  ReceiveMemory::Block block_;
  size_t filled_ = 0;
};

}  // namespace fleet::ps
