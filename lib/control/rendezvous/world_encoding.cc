#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

#include "rendezvous/types.h"

namespace fleet {
namespace {

using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::GzipInputStream;
using google::protobuf::io::GzipOutputStream;
using google::protobuf::io::LimitingInputStream;
using google::protobuf::io::StringOutputStream;

// Of a world that comes: a few bytes may stand for many, and the largest jobs need a tenth.
constexpr int64_t kMaxWorld = 16 << 20;

[[noreturn]] void invalid_assignment() {
  throw Error(ErrorCode::kInternal, "the rendezvous sent an invalid assignment");
}

std::shared_ptr<const World> unpack(const wire::Assignment& in) {
  auto world = std::make_shared<World>();
  ArrayInputStream bytes(in.world().data(), static_cast<int>(in.world().size()));
  GzipInputStream unzipped(&bytes, GzipInputStream::ZLIB);
  LimitingInputStream limited(&unzipped, kMaxWorld);
  const bool ok = world->ParseFromZeroCopyStream(&limited) && world->nodes_size() == in.nnodes() &&
                  world->id().generation() == in.generation();
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
