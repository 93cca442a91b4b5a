#include "ps/transport/grpc_stream.h"

#include <cstring>

namespace fleet::ps {
namespace {

// Copied rather than lent: less work than gRPC has with another piece.
constexpr size_t kCopiedBytes = 4 << 10;

// Memory of the sender that gRPC reads.
struct Lent {
  std::shared_ptr<const void> owner;
  std::shared_ptr<Outgoing> outgoing;
  size_t bytes;
  static void release(void* self) {
    auto* const lent = static_cast<Lent*>(self);
    lent->owner.reset();
    lent->outgoing->release(lent->bytes);
    delete lent;
  }
};

}  // namespace

grpc::ByteBuffer to_byte_buffer(Outgoing::Frame frame, const std::shared_ptr<Outgoing>& outgoing) {
  const FrameHeader& header = frame.header;
  if (header.bytes <= kCopiedBytes) {
    grpc::Slice slice(sizeof header + header.bytes);
    auto* to = const_cast<uint8_t*>(slice.begin());
    std::memcpy(to, &header, sizeof header);
    to += sizeof header;
    for (const Bytes& part : frame.parts) {
      std::memcpy(to, part.data.data(), part.data.size());
      to += part.data.size();
    }
    frame.parts.clear();
    if (header.bytes > 0) outgoing->release(header.bytes);
    return grpc::ByteBuffer(&slice, 1);
  }
  std::vector<grpc::Slice> slices;
  slices.emplace_back(&header, sizeof header);
  for (Bytes& part : frame.parts) {
    auto* lent = new Lent{std::move(part.owner), outgoing, part.data.size()};
    slices.emplace_back(const_cast<std::byte*>(part.data.data()), part.data.size(), &Lent::release,
                        lent);
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace fleet::ps
