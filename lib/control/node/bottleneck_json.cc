#include "node/bottleneck_json.h"

#include "base/json.h"
#include "diagnosis/bottleneck.h"

namespace fleet {

Json bottleneck_json(const wire::Bottleneck& bottleneck) {
  Json causes = Json::array();
  for (const wire::Cause& cause : bottleneck.causes()) {
    causes.push_back({{"kind", name_of(cause.kind())},
                      {"share", cause.share()},
                      {"rank", cause.has_rank() ? Json(cause.rank()) : Json(nullptr)},
                      {"action", cause.action()}});
  }
  return {{"line", bottleneck.line()}, {"compute", bottleneck.compute()}, {"causes", causes}};
}

}  // namespace fleet
