// The launcher's output at a start, on standard error: standard output belongs to the program.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/config.h"
#include "launch/planning/cluster_environment.h"
#include "launch/planning/environment.h"
#include "launch/planning/launch_plan.h"
#include "rendezvous/types.h"

namespace fleet {

// Prints the configuration block: values that differ from their defaults, or all values with
// --log_level=DEBUG. Prints nothing with --quiet, and for another StartStyle than kTable. `mode` is
// the line below it; "" for none.
void print_configuration(const LaunchRequest& request, const std::string& mode = {});
// "launch train in GPU mode"
std::string mode_line(const LaunchPlan& plan);

// Prints the table of the first rank's environment, or one line, at the first start, and one line
// at each restart. `speaks`: whether this node prints what concerns the whole job
// (shared_console.h); it always prints warnings.
void print_start(const LaunchPlan& plan, const Assignment& assignment, bool again, bool speaks);
// After a success of a job that has started at `began`.
void print_success(const LaunchPlan& plan, std::chrono::steady_clock::time_point began,
                   std::chrono::steady_clock::time_point now);

// "8 ranks on 2 nodes", with servers "2 servers and 8 ranks on 2 nodes".
std::string world_text(const World& world);
// "12.3 s", from one minute on "1:02:03".
std::string elapsed_text(std::chrono::steady_clock::duration time);

// "-----------  Configuration Arguments -----------", sorted "key: value" lines, 48 dashes and a
// newline. Values are formatted as in Python, None for values not given. Contains all options if
// `all`, else those that differ from their default, and always the program.
std::string configuration_block(const Settings& settings, const std::vector<std::string>& program,
                                bool all);

// The "Distributed Envs" table with four blanks before each line, without a final newline. Paddle's
// is 93 columns wide. `style`: kPaddle; kNarrow, which fits into `columns` (0: 80) and has no
// leading blanks; or "auto", which is Paddle's unless the terminal has fewer `columns` (0: not a
// terminal).
std::string environment_table(const Variables& variables, TableStyle style = TableStyle::kPaddle,
                              int columns = 0);

// The warning about a log folder that another node or another job uses. `holder`: the words of
// that one, "node 1 of job 'x' (pid 7 on host)". `node_rank` and `job`: this one's.
std::string shared_logs_warning(const std::string& log_dir, const std::string& holder,
                                int node_rank, const std::string& job,
                                const EnvironmentLookup& environment);

// The content of log/endpoints.log.
std::string endpoints_log(const World& world);
// The content of log/environment.log: what kTable prints, in Paddle's layout.
inline constexpr char kEnvironmentLog[] = "environment.log";
std::string environment_log(const LaunchPlan& plan, const Assignment& assignment);

// --- proxies in the ranks' environment: fleetrun leaves them unchanged ---

// Whether `no_proxy` ("localhost,.cluster,10.0.0.0/8" or "*") excludes `host`. Entries are names,
// domain suffixes, addresses or networks.
bool excepted_from_proxy(const std::string& host, const std::string& no_proxy);
// A warning for each of these dialects whose library would connect to another rank through the
// proxy.
std::vector<std::string> proxy_warnings(const std::vector<std::string>& dialects,
                                        const Assignment& assignment,
                                        const EnvironmentLookup& environment);

}  // namespace fleet
