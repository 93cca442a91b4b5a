// fleetd runs once per node. It starts fleetrun for remote clients and reports on the jobs of the
// node.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/option_group.h"
#include "daemon/node_jobs.h"
#include "transport/event_loop.h"

namespace fleet {

// A page with the jobs of a fleetd, which a module above this one provides.
struct FleetdPage {
  // Serves the page while the result exists.
  using Serve = std::function<std::shared_ptr<void>(EventLoop&, NodeJobs&)>;

  void (*add_options)(OptionGroup*);
  // Empty if the options do not ask for the page. Throws kUsage for wrong options.
  Serve (*read_options)(const Settings&);
};

// Runs a command line (without argv[0]) and returns an exit code. Throws Error for user errors and
// for requests that the machine rejects. Call it from the main thread of a process without other
// threads.
int fleetd_main(const std::vector<std::string>& arguments, const FleetdPage& page);

}  // namespace fleet
