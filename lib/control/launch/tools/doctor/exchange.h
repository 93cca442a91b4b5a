// Exchanges the findings of a job's nodes.
#pragma once

#include <string>

#include "launch/tools/doctor/report.h"
#include "rendezvous/types.h"
#include "store/store.h"

namespace fleet {

// Every node calls it. It listens on the node's first port of the assignment (held), tries every
// other node and sends its report to node 0, which returns one report on all nodes to everyone.
// Blocks. A
// single node uses no network. Throws the store's errors.
//   listen    numeric address of this node's sockets
JobReport exchange_reports(const Assignment& assignment, const std::string& listen, Store& store,
                           NodeReport mine, bool allow_skew);

}  // namespace fleet
