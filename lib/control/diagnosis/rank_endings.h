// Ranks of a hung job that do not run any longer, or that have printed an exception: the others may
// wait for them. Pure. Not thread-safe.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <string>

#include "base/json.h"
#include "transport/control_messages.h"

namespace fleet {

// A rank that has printed an exception and has not ended; nullptr if no rank has.
const RankEnding* find_failing(const Stacks& all);
// The trainer that ended first, if at most half of them have ended: otherwise the job was about to
// end, and the remaining ranks are the ones to inspect. nullptr if no trainer qualifies.
const RankEnding* find_early_end(const Stacks& all);

// "\n  rank 1 has ended with 0, 4.03 s before", a line for ranks with the same error; at most
// eight.
std::string endings_text(const Stacks& all);

// For programs: [{"role": "trainer", "rank": 1, "node_rank": 0, "ended": true, "ago": 4.03,
// "error": "", "log": "log/workerlog.1"}]
Json endings_json(const google::protobuf::RepeatedPtrField<RankEnding>& endings);

}  // namespace fleet
