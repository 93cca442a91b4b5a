// The nodes of a job tell each other what their checks have found.
#pragma once

#include <string>

#include "launch/doctor/report.h"
#include "rendezvous/types.h"
#include "store/store.h"

namespace fleet {

// Every node calls it: listens on its first port of the assignment (held), tries every other node,
// and tells node 0, whose report on all of them everyone gets, the same on each. Blocks; of one
// node it uses no network. Errors are the store's.
//   listen    the numeric address of this node's own sockets
JobReport exchange_reports(const Assignment& assignment, const std::string& listen, Store& store,
                           NodeReport mine, bool allow_skew);

}  // namespace fleet
