// Horovod with its Gloo controller, which uses an HTTP key-value server.
#include <algorithm>
#include <memory>
#include <utility>

#include "launch/planning/dialects/dialect.h"
#include "launch/planning/dialects/horovod_kv.h"
#include "transport/http_server.h"

namespace fleet {
namespace {

// Only this node's ranks reach the port; each has one request at a time.
constexpr HttpLimits kLimits{.connections = 4096, .seconds = 3600, .body = HttpReader::kMaxBody};

Variables horovod_variables(const Assignment& assignment, int local_rank,
                            const RankContext& context) {
  // Its ranks of other nodes are those with the same local rank.
  const std::vector<int>& nodes = context.lists->nodes_with[static_cast<size_t>(local_rank)];
  const auto own = std::lower_bound(nodes.begin(), nodes.end(), assignment.node_rank);
  Variables all = {
      {"HOROVOD_RANK", std::to_string(assignment.node().first_rank() + local_rank)},
      {"HOROVOD_SIZE", std::to_string(assignment.world_size())},
      {"HOROVOD_LOCAL_RANK", std::to_string(local_rank)},
      {"HOROVOD_LOCAL_SIZE", std::to_string(assignment.node().local_world_size())},
      {"HOROVOD_CROSS_RANK", std::to_string(own - nodes.begin())},
      {"HOROVOD_CROSS_SIZE", std::to_string(nodes.size())},
      {"HOROVOD_HOSTNAME", assignment.node().address()},
      {"HOROVOD_CONTROLLER", "gloo"},
      {"HOROVOD_CPU_OPERATIONS", "gloo"},
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.0.0.1"},
      {"HOROVOD_GLOO_RENDEZVOUS_PORT", std::to_string(context.service_port)},
  };
  if (!context.interface.empty()) all.emplace_back("HOROVOD_GLOO_IFACE", context.interface);
  return all;
}

class HorovodService final : public RankService {
 public:
  explicit HorovodService(const ServiceContext& context)
      : kv_(context.assignment, context.store),
        server_(
            context.loop, "127.0.0.1", context.port,
            [this](const HttpRequest& request, const HttpServer::Respond& respond) {
              kv_.handle(request, [respond](int status, std::string body) {
                respond({.status = status, .type = {}, .body = std::move(body)});
              });
            },
            nullptr, kLimits) {}

  void on_rank_bytes(int, std::string_view) override {}

 private:
  HorovodKv kv_;
  HttpServer server_;
};

}  // namespace

FLEET_DIALECT(horovod) {
  def.variables = horovod_variables;
  def.serve = [](const ServiceContext& context) -> std::unique_ptr<RankService> {
    return std::make_unique<HorovodService>(context);
  };
  def.needs_port = true;
}

}  // namespace fleet
