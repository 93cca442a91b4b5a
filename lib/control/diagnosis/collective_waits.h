// Finds out which rank the others wait for in a collective, from the calls of all ranks.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "transport/control_messages.h"

namespace fleet {

// From Stacks::collectives; the most useful first, at most four. Waits of less than a second do not
// count: ranks of a healthy job wait too. Ranks without calls (of other programs, or of nodes that
// sent nothing) are never called missing. A rank that waits itself in another group is not named
// where a rank is known that does not: it is a consequence. A PyTorch rank whose flight recorder is
// not known is named where others wait in a group with it, as a rank whose calls are unknown.
std::vector<CollectiveWait> find_collective_waits(const Stacks& all);

// The rank to look at: that of the first wait, if it names one only.
std::optional<int> rank_waited_for(const std::vector<CollectiveWait>& waits);

// "\n  rank 3 has not entered all_reduce #812 (bucket 4, 25 MiB) of group data parallel; 7 wait in
// it", a line each.
std::string waits_text(const std::vector<CollectiveWait>& waits);

// "all_reduce #812 (bucket 4, 25 MiB)"
std::string call_text(const GroupCall& call);

// Notes for the user about PyTorch's flight recorder, in addition to the waits that it shows.
// From Stacks::collectives: where the dumps are, which ranks wrote none and why, and how to switch
// the recorder on. A line each, at most eight; none without PyTorch ranks.
std::vector<std::string> flight_notes(const Stacks& all);

// For programs, as verdict.json and `fleetrun stacks --format=json` have it.
// [{"kind": "missing", "group": "data parallel", "operation": "all_reduce", "sequence": 812, "for":
// "bucket 4", "bytes": 26214400, "missing": [3], "waiting": [0, 1, 2], "text": "rank 3 has ..."}]
Json waits_json(const google::protobuf::RepeatedPtrField<CollectiveWait>& waits);

}  // namespace fleet
