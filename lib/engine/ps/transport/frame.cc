#include "ps/transport/frame.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/error.h"

namespace fleet::ps {
namespace {

[[noreturn]] void not_frames(const std::string& what) {
  throw Error(ErrorCode::kUsage, "the data are not parameter servers' frames: " + what, {},
              "check which program uses this address");
}

bool same(const MessageHeader& a, const MessageHeader& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

void Assembler::feed(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (left_ > 0) {
      const size_t size = std::min(left_, bytes.size());
      std::memcpy(block_.data() + filled_, bytes.data(), size);
      filled_ += size;
      left_ -= size;
      bytes = bytes.subspan(size);
      if (left_ == 0) end_frame();
      continue;
    }
    const size_t size = std::min(sizeof header_ - header_bytes_, bytes.size());
    std::memcpy(reinterpret_cast<std::byte*>(&header_) + header_bytes_, bytes.data(), size);
    header_bytes_ += size;
    bytes = bytes.subspan(size);
    if (header_bytes_ == sizeof header_) begin_frame();
  }
}

void Assembler::begin_frame() {
  header_bytes_ = 0;
  if (header_.magic != FrameHeader::kMagic) not_frames("wrong first bytes");
  if (header_.bytes > kFrameBytes) not_frames("a part is too large");
  switch (header_.kind) {
    case FrameKind::kOpen:
    case FrameKind::kClose:
      if (message_ || header_.bytes > 0) not_frames("a part is missing");
      return handler_.control(header_.kind);
    case FrameKind::kMessage:
      if (message_) not_frames("a part is missing");
      begin_message();
      break;
    case FrameKind::kMore:
      if (!message_ || !same(*message_, header_.message) || header_.total != block_.size()) {
        not_frames("a part belongs to no message");
      }
      break;
    default:
      not_frames("unknown kind " + std::to_string(static_cast<int>(header_.kind)));
  }
  if (header_.bytes > block_.size() - filled_) not_frames("a message is longer than it says");
  left_ = header_.bytes;
  if (left_ == 0) end_frame();
}

void Assembler::begin_message() {
  if (header_.total > kMaxMessageBytes) {
    not_frames("a message of more than " + std::to_string(kMaxMessageBytes >> 30) + " GiB");
  }
  try {
    block_ = memory_.take(header_.total);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kNoMemory,
                "no memory for a message of " + std::to_string(header_.total) + " bytes", {},
                "use more servers, or a machine with more memory");
  }
  message_ = header_.message;
  filled_ = 0;
}

void Assembler::end_frame() {
  if (filled_ < block_.size()) return;
  Message message{*message_, {}};
  if (block_.size() > 0) message.parts.push_back(std::move(block_).bytes());
  block_ = {};
  message_.reset();
  handler_.message(std::move(message));
}

}  // namespace fleet::ps
