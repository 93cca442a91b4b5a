#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "rendezvous/types.h"

namespace fleet {
namespace {

using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::GzipInputStream;
using google::protobuf::io::GzipOutputStream;
using google::protobuf::io::LimitingInputStream;
using google::protobuf::io::StringOutputStream;

// The limit for a world that comes: a few bytes may stand for many, and the largest jobs need a
// tenth.
constexpr int64_t kMaxWorld = 16 << 20;

[[noreturn]] void invalid_assignment() {
  throw Error(ErrorCode::kInternal, "the rendezvous sent an invalid assignment");
}

// A list of texts, each without the prefix that it shares with the previous one: the length of the
// prefix, the length of the rest (7 bits a byte, the least first), and the rest. Names that are
// numbered become repetitions, which compress well: a large world is sent to thousands of nodes.
class FrontEncoder {
 public:
  void add(std::string_view text) {
    const size_t most = std::min({text.size(), last_.size(), kMostShared});
    size_t shared = 0;
    while (shared < most && text[shared] == last_[shared]) ++shared;
    bytes_ += static_cast<char>(shared);
    size_t rest = text.size() - shared;
    for (; rest >= 0x80; rest >>= 7) bytes_ += static_cast<char>(rest | 0x80);
    bytes_ += static_cast<char>(rest);
    bytes_ += text.substr(shared);
    last_ = text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  static constexpr size_t kMostShared = 255;
  std::string bytes_, last_;
};

class FrontDecoder {
 public:
  explicit FrontDecoder(std::string_view bytes) : bytes_(bytes) {}
  // False if the bytes are no such list, or all texts together are too long.
  bool next(std::string* text) {
    size_t shared = 0, rest = 0;
    if (!take_byte(&shared) || shared > last_.size() || !take_length(&rest)) return false;
    if (rest > bytes_.size()) return false;
    last_.resize(shared);
    last_ += bytes_.substr(0, rest);
    bytes_.remove_prefix(rest);
    total_ += static_cast<int64_t>(last_.size());
    *text = last_;
    return total_ <= kMaxWorld;
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  bool take_byte(size_t* byte) {
    if (bytes_.empty()) return false;
    *byte = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return true;
  }
  bool take_length(size_t* length) {
    for (int shift = 0; shift < 28; shift += 7) {
      size_t byte = 0;
      if (!take_byte(&byte)) return false;
      *length |= (byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::string_view bytes_;
  std::string last_;
  int64_t total_ = 0;
};

void encode_names(World* world) {
  FrontEncoder addresses, hostnames;
  for (wire::Node& node : *world->mutable_nodes()) {
    addresses.add(node.address());
    hostnames.add(node.hostname());
    node.clear_address();
    node.clear_hostname();
  }
  world->set_addresses(addresses.take());
  world->set_hostnames(hostnames.take());
}

bool decode_names(World* world) {
  FrontDecoder addresses(world->addresses()), hostnames(world->hostnames());
  for (wire::Node& node : *world->mutable_nodes()) {
    if (!addresses.next(node.mutable_address())) return false;
    if (!hostnames.next(node.mutable_hostname())) return false;
  }
  const bool all = addresses.at_end() && hostnames.at_end();
  world->clear_addresses();
  world->clear_hostnames();
  return all;
}

std::shared_ptr<const World> unpack(const wire::Assignment& in) {
  auto world = std::make_shared<World>();
  ArrayInputStream bytes(in.world().data(), static_cast<int>(in.world().size()));
  GzipInputStream unzipped(&bytes, GzipInputStream::ZLIB);
  LimitingInputStream limited(&unzipped, kMaxWorld);
  const bool ok = world->ParseFromZeroCopyStream(&limited) && world->nodes_size() == in.nnodes() &&
                  world->id().generation() == in.generation() && decode_names(world.get());
  if (!ok || !std::all_of(world->nodes().begin(), world->nodes().end(), is_consistent)) {
    invalid_assignment();
  }
  number_ranks(world.get());
  return world;
}

}  // namespace

std::string encode(const World& world) {
  World sent = world;
  for (wire::Node& node : *sent.mutable_nodes()) {
    node.clear_node_rank();
    node.clear_first_rank();
    node.clear_first_server();
  }
  sent.clear_world_size();
  sent.clear_servers();
  encode_names(&sent);
  wire::HostMessage message;
  auto* out = message.mutable_assignment();
  out->set_generation(world.id().generation());
  out->set_nnodes(world.nodes_size());
  {
    StringOutputStream to(out->mutable_world());
    GzipOutputStream::Options options;
    options.format = GzipOutputStream::ZLIB;
    GzipOutputStream zip(&to, options);
    sent.SerializeToZeroCopyStream(&zip);
  }
  return message.SerializeAsString();
}

Assignment decode(wire::Assignment in) {
  const int node_rank = in.node_rank();
  if (node_rank < -1 || node_rank >= in.nnodes()) invalid_assignment();
  // The bytes of a large world are moved, not copied.
  const auto packed = std::make_shared<wire::Assignment>(std::move(in));
  return {SharedWorld([packed] { return unpack(*packed); }), node_rank, {}};
}

}  // namespace fleet
