// A DistributedStrategy as a release of Paddle reads it.
#pragma once

#include <string>
#include <vector>

#include "strategy/strategy_file.h"

namespace fleet {

// Those that text can be written for: "2.0", "2.1", "2.6", "3.3".
const std::vector<std::string>& paddle_releases();

// What is set, in protobuf's text form and the order of the numbers, as save_to_prototxt writes it,
// with the names of that release only. left_out: the paths of what is set, not to its default, and
// that the release has no name for; fleetrun's own fields are among them. For 2.0 the fields that
// have other defaults there are written out. kUsage for a release that is none of
// paddle_releases().
std::string strategy_text(const StrategyProto& proto, const std::string& release,
                          std::vector<std::string>* left_out);

// Writes that text to a file; the paths that were left out. kIo.
std::vector<std::string> save_strategy_file(const StrategyProto& proto, const std::string& release,
                                            const std::string& path);

}  // namespace fleet
