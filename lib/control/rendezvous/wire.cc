#include "rendezvous/wire.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

namespace fleet {
namespace {

using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::GzipInputStream;
using google::protobuf::io::GzipOutputStream;
using google::protobuf::io::LimitingInputStream;
using google::protobuf::io::StringOutputStream;

constexpr size_t kMaxTail = 64 << 10, kMaxCause = 4 << 10;
constexpr int kMaxFrames = 64;
constexpr size_t kMaxFrame = 256, kMaxMissing = 1 << 10;
constexpr size_t kMaxErrorMessage = 4 << 10, kMaxCallstack = 16 << 10;
// Of a world that comes: a few bytes may stand for many, and the largest jobs need a tenth.
constexpr int64_t kMaxWorld = 16 << 20;

void keep_first(size_t most, std::string* text) { text->resize(std::min(text->size(), most)); }
void keep_last(size_t most, std::string* text) {
  text->erase(0, text->size() - std::min(text->size(), most));
}

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

Assignment from_wire(const wire::Assignment& in) {
  if (in.node_rank() < -1 || in.node_rank() >= in.nnodes()) invalid_assignment();
  return {
      SharedWorld([packed = std::make_shared<wire::Assignment>(in)] { return unpack(*packed); }),
      in.node_rank(),
      {}};
}

RankExit within_limits(RankExit exit) {
  keep_last(kMaxTail, exit.mutable_tail());
  keep_first(kMaxCause, exit.mutable_cause());
  if (exit.at_error_ns() < 0) exit.clear_at_error_ns();
  if (!exit.has_error()) return exit;
  keep_first(kMaxErrorMessage, exit.mutable_error()->mutable_message());
  // The innermost calls come last.
  keep_last(kMaxCallstack, exit.mutable_error()->mutable_callstack());
  return exit;
}

Stacks within_limits(Stacks stacks) {
  for (StackCluster& cluster : *stacks.mutable_clusters()) {
    if (cluster.frames_size() > kMaxFrames) {
      cluster.mutable_frames()->DeleteSubrange(kMaxFrames, cluster.frames_size() - kMaxFrames);
    }
    for (std::string& frame : *cluster.mutable_frames()) keep_first(kMaxFrame, &frame);
    keep_first(kMaxMissing, cluster.mutable_missing());
  }
  return stacks;
}

wire::Failure to_wire(const Error& error) {
  wire::Failure failure;
  failure.set_code(static_cast<wire::Failure::Code>(error.code()));
  failure.set_what(error.failure());
  failure.set_where(error.where());
  failure.set_next(error.next());
  return failure;
}

Error from_wire(const wire::Failure& failure) {
  const bool known = wire::Failure::Code_IsValid(failure.code());
  return Error(known ? static_cast<ErrorCode>(failure.code()) : ErrorCode::kInternal,
               failure.what(), failure.where(), failure.next());
}
static_assert(static_cast<int>(ErrorCode::kUsage) == wire::Failure::USAGE &&
              static_cast<int>(ErrorCode::kTimeout) == wire::Failure::TIMEOUT &&
              static_cast<int>(ErrorCode::kPeerLost) == wire::Failure::PEER_LOST &&
              static_cast<int>(ErrorCode::kStale) == wire::Failure::STALE &&
              static_cast<int>(ErrorCode::kInternal) == wire::Failure::INTERNAL);

wire::HostMessage within_limits(wire::HostMessage message) {
  const auto limit = [](Verdict* verdict) {
    if (verdict->has_exit()) {
      *verdict->mutable_exit() = within_limits(std::move(*verdict->mutable_exit()));
    }
  };
  if (message.has_verdict()) limit(message.mutable_verdict());
  if (message.has_restart()) limit(message.mutable_restart()->mutable_cause());
  if (message.kind_case() != wire::HostMessage::KIND_NOT_SET) return message;
  throw Error(ErrorCode::kInternal, "the rendezvous sent a message of an unknown kind");
}

}  // namespace fleet
