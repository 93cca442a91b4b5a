// A bottleneck for programs, as verdict.json and `fleetrun top --format=json` have it.
#pragma once

#include "base/json.h"
#include "transport/control_messages.h"

namespace fleet {

// {"line": "bottleneck: ...", "compute": 0.6, "causes": [{"kind": "input", "share": 0.31, "rank":
// null, "action": "..."}]}
Json bottleneck_json(const wire::Bottleneck& bottleneck);

}  // namespace fleet
