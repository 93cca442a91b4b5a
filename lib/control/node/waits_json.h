// Collectives in which ranks wait, for programs: verdict.json and `fleetrun stacks --format json`.
#pragma once

#include <google/protobuf/repeated_field.h>

#include "base/json.h"
#include "rendezvous/types.h"

namespace fleet {

// [{"kind": "missing", "group": "data parallel", "operation": "all_reduce", "sequence": 812, "for":
// "bucket 4", "bytes": 26214400, "missing": [3], "waiting": [0, 1, 2], "text": "rank 3 has ..."}]
Json waits_json(const google::protobuf::RepeatedPtrField<CollectiveWait>& waits);

}  // namespace fleet
