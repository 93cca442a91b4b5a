#include "launch/starting/metrics_server.h"

#include <utility>

#include "base/log.h"
#include "launch/planning/addresses.h"
#include "launch/starting/http_server.h"
#include "transport/security.h"

namespace fleet {
namespace {

constexpr char kType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

std::shared_ptr<void> serve_metrics(const MetricsConfig& config, EventLoop& loop, AskLive ask) {
  const std::string token = config.token_file.empty() ? "" : read_secret(config.token_file);
  auto server = std::make_shared<HttpServer>(
      loop, config.address, config.port,
      [ask = std::move(ask), token](const HttpRequest& request, HttpServer::Respond respond) {
        if (!token.empty() && !has_token(request, token)) {
          return respond({.status = 401, .body = "the token is missing or wrong\n"});
        }
        const std::string path = request.path.substr(0, request.path.find('?'));
        if (path != "/metrics") return respond({.status = 404, .body = "look at /metrics\n"});
        if (request.method != "GET") return respond({.status = 405, .body = "use GET\n"});
        ask([respond = std::move(respond)](const LiveReport& report, int node_rank) {
          respond({.type = kType, .body = metrics_text(report, node_rank)});
        });
      });
  spdlog::info("metrics are at http://{}/metrics", endpoint(config.address, config.port));
  return server;
}

}  // namespace fleet
