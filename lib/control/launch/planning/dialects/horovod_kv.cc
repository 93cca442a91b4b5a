#include "launch/planning/dialects/horovod_kv.h"

#include <algorithm>

#include "base/text.h"
#include "launch/planning/dialects/dialect.h"

namespace fleet {
namespace {

// A rank polls. Holding its request for a moment makes it poll less.
constexpr std::chrono::milliseconds kPollTimeout{200};

int status_of(const Error& error) { return error.code() == ErrorCode::kTimeout ? 404 : 503; }

}  // namespace

int HorovodKv::scope_size(const std::string& scope) const {
  const World& world = *assignment_.world;
  if (scope.starts_with("global")) return world.world_size();
  if (scope.starts_with("local_")) {
    for (const wire::Node& node : world.nodes()) {
      if (scope.substr(6) == node.address()) return node.local_world_size();
    }
  }
  long long local_rank = 0;
  if (scope.starts_with("cross_") && parse_int(scope.substr(6), &local_rank) && local_rank >= 0 &&
      local_rank < 1 << 20) {
    return static_cast<int>(std::count_if(
        world.nodes().begin(), world.nodes().end(),
        [&](const wire::Node& node) { return node.local_world_size() > local_rank; }));
  }
  return 0;
}

// Each use of a scope has its own key prefix, so that keys of a finished use are never read again.
void HorovodKv::with_scope_round(const std::string& scope, const Respond& respond,
                                 std::function<void(const std::string& prefix)> then) {
  const int size = scope_size(scope);
  store_->add("horovod/" + scope + "/finished", 0,
              [=, then = std::move(then)](const AsyncStore::Answer& answer) {
                if (answer.error) return respond(503, answer.error->what());
                const long long round = size > 0 ? std::stoll(answer.value) / size : 0;
                then("horovod/" + scope + "/" + std::to_string(round) + "/");
              });
}

void HorovodKv::handle(const HttpRequest& request, const Respond& respond) {
  const size_t slash = request.path.find('/', 1);
  if (!request.path.starts_with('/') || slash == std::string::npos ||
      slash + 1 == request.path.size()) {
    return respond(400, "the path must be /SCOPE/KEY");
  }
  const std::string scope = request.path.substr(1, slash - 1);
  const std::string key = request.path.substr(slash + 1);
  if (request.method == "PUT") {
    with_scope_round(scope, respond,
                     [this, key, body = request.body, respond](const std::string& prefix) {
                       store_->set(prefix + key, body, [respond](const AsyncStore::Answer& answer) {
                         answer.error ? respond(status_of(*answer.error), answer.error->what())
                                      : respond(200, "");
                       });
                     });
  } else if (request.method == "GET") {
    with_scope_round(scope, respond, [this, key, respond](const std::string& prefix) {
      store_->get(prefix + key, kPollTimeout, [respond](const AsyncStore::Answer& answer) {
        answer.error ? respond(status_of(*answer.error), "") : respond(200, answer.value);
      });
    });
  } else if (request.method == "DELETE") {
    store_->add("horovod/" + scope + "/finished", 1, [respond](const AsyncStore::Answer& answer) {
      answer.error ? respond(503, answer.error->what()) : respond(200, "");
    });
  } else {
    respond(400, "use GET, PUT or DELETE");
  }
}

}  // namespace fleet
