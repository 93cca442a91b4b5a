#include "rendezvous/world_wire.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <map>

#include "rendezvous/wire.h"

namespace fleet {
namespace {

constexpr size_t kCompressFrom = 4 << 10;
// Of a world that comes: a few bytes may stand for many, and the largest jobs need a tenth.
constexpr int64_t kMaxBytes = 64 << 20;    // once unpacked
constexpr size_t kMaxNumbers = 4'000'000;  // ports, ranks' devices

using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::GzipInputStream;
using google::protobuf::io::GzipOutputStream;
using google::protobuf::io::LimitingInputStream;
using google::protobuf::io::StringOutputStream;

std::string compress(const std::string& bytes) {
  std::string out;
  StringOutputStream to(&out);
  GzipOutputStream::Options options;
  options.format = GzipOutputStream::ZLIB;
  GzipOutputStream zip(&to, options);
  void* room = nullptr;
  int size = 0;
  for (size_t at = 0; at < bytes.size() && zip.Next(&room, &size);) {
    const size_t part = std::min(static_cast<size_t>(size), bytes.size() - at);
    memcpy(room, bytes.data() + at, part);
    if (part < static_cast<size_t>(size)) zip.BackUp(size - static_cast<int>(part));
    at += part;
  }
  zip.Close();
  return out;
}

wire::Nodes pack(const World& world) {
  wire::Nodes out;
  using Looks = std::tuple<const std::vector<std::vector<int>>&, const std::vector<int>&, int,
                           const std::string&>;
  std::map<Looks, int> shapes;
  for (const NodePlacement& node : world.nodes) {
    const auto [shape, is_new] = shapes.try_emplace(
        Looks(node.devices, node.ports, node.servers, node.role), out.shapes_size());
    if (is_new) {
      auto* added = out.add_shapes();
      put_devices(node.devices, added);
      for (const int port : node.ports) added->add_ports(port);
      added->set_servers(node.servers);
      added->set_role(node.role);
    }
    auto* added = out.add_nodes();
    added->set_address(node.address);
    added->set_hostname(node.hostname);
    added->set_shape(static_cast<uint32_t>(shape->second));
    for (const int rank : node.ranks) added->add_ranks(rank);
    added->set_rdzv_port(node.rdzv_port);
  }
  return out;
}

[[noreturn]] void makes_no_sense() {
  throw Error(ErrorCode::kInternal, "the rendezvous sent an invalid assignment");
}

wire::Nodes parse_nodes(const wire::World& in) {
  wire::Nodes nodes;
  bool ok = false;
  if (in.compressed()) {
    ArrayInputStream bytes(in.nodes().data(), static_cast<int>(in.nodes().size()));
    GzipInputStream unzipped(&bytes, GzipInputStream::ZLIB);
    LimitingInputStream limited(&unzipped, kMaxBytes);
    ok = nodes.ParseFromZeroCopyStream(&limited);
  } else {
    ok = nodes.ParseFromString(in.nodes());
  }
  if (!ok || nodes.nodes_size() != in.nnodes()) makes_no_sense();
  return nodes;
}

// How much memory a node of this shape takes.
size_t numbers_of(const wire::Shape& shape) {
  size_t numbers = 1 + static_cast<size_t>(shape.ports_size());
  for (const wire::Devices& devices : shape.devices()) {
    numbers += 1 + static_cast<size_t>(devices.ids_size());
  }
  return numbers;
}

void check_nodes(const wire::Nodes& nodes) {
  std::vector<size_t> numbers;
  for (const wire::Shape& shape : nodes.shapes()) {
    if (shape.servers() < 0 || shape.servers() > shape.ports_size()) makes_no_sense();
    numbers.push_back(numbers_of(shape));
  }
  size_t all = 0;
  for (const wire::Placement& node : nodes.nodes()) {
    if (node.shape() >= numbers.size()) makes_no_sense();
    all += numbers[node.shape()];
    const int ranks = node.ranks_size();
    const bool fits =
        ranks == 0 || ranks == nodes.shapes(static_cast<int>(node.shape())).ports_size();
    if (!fits || all > kMaxNumbers) makes_no_sense();
  }
}

std::shared_ptr<const World> unpack(const wire::World& in) {
  const wire::Nodes nodes = parse_nodes(in);
  check_nodes(nodes);
  auto world = std::make_shared<World>();
  world->generation = in.generation();
  world->leader = in.leader();
  world->run = in.run();
  world->base = {in.base_generation(), in.base_leader()};
  world->restarts = in.restarts();
  world->master_address = in.master_address();
  world->master_port = in.master_port();
  world->nodes.reserve(static_cast<size_t>(nodes.nodes_size()));
  for (const wire::Placement& node : nodes.nodes()) {
    const wire::Shape& shape = nodes.shapes(static_cast<int>(node.shape()));
    world->nodes.push_back({node.address(),
                            node.hostname(),
                            static_cast<int>(world->nodes.size()),
                            world->world_size,
                            get_devices(shape),
                            {shape.ports().begin(), shape.ports().end()},
                            shape.servers(),
                            world->servers,
                            {node.ranks().begin(), node.ranks().end()},
                            node.rdzv_port(),
                            shape.role()});
    world->world_size += world->nodes.back().trainers();
    world->servers += shape.servers();
  }
  return world;
}

}  // namespace

std::string encode(const World& world) {
  wire::HostMessage message;
  auto* out = message.mutable_assignment()->mutable_world();
  out->set_generation(world.generation);
  out->set_leader(world.leader);
  out->set_run(world.run);
  out->set_base_generation(world.base.generation);
  out->set_base_leader(world.base.leader);
  out->set_restarts(world.restarts);
  out->set_master_address(world.master_address);
  out->set_master_port(world.master_port);
  out->set_nnodes(static_cast<int>(world.nodes.size()));
  std::string nodes = pack(world).SerializeAsString();
  out->set_compressed(nodes.size() >= kCompressFrom);
  out->set_nodes(out->compressed() ? compress(nodes) : std::move(nodes));
  return message.SerializeAsString();
}

Assignment from_wire(const wire::Assignment& in) {
  if (in.node_rank() < -1 || in.node_rank() >= in.world().nnodes()) makes_no_sense();
  auto packed = std::make_shared<wire::World>(in.world());
  return {SharedWorld([packed] { return unpack(*packed); }), in.node_rank(), {}};
}

}  // namespace fleet
