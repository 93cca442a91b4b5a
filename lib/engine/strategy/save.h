// Writes a DistributedStrategy in the form that a release of Paddle reads.
#pragma once

#include <string>
#include <vector>

#include "strategy/strategy_file.h"

namespace fleet {

// The supported releases: "2.0", "2.1", "2.6", "3.3".
const std::vector<std::string>& paddle_releases();

// The set fields, in protobuf's text form and the order of the numbers, like Paddle's
// save_to_prototxt, with only the names of that release. left_out: the paths of fields set to other
// values than their defaults for which the release has no name; these include fleetrun's own
// fields. For 2.0, fields with other defaults there are written explicitly. kUsage for a release
// that is not one of paddle_releases().
std::string strategy_text(const StrategyProto& proto, const std::string& release,
                          std::vector<std::string>* left_out);

// Writes that text to a file; returns the paths that were left out. kIo.
std::vector<std::string> save_strategy_file(const StrategyProto& proto, const std::string& release,
                                            const std::string& path);

}  // namespace fleet
