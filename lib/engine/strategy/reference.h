// Reference of all options of a DistributedStrategy, generated from the registry of meta-optimizers
// and from strategy.proto: docs/reference/strategies.md and fleet-worker --print_flags.
#pragma once

#include <string>
#include <vector>

#include "strategy/meta_optimizer.h"

namespace fleet {

struct OptionRow {
  std::string path;  // "amp_configs.incr_ratio"
  std::string type;  // "bool", "integer", "number", "text", "texts", ...
  std::string initial;
  bool unset_is_on = false;  // the field's default is false, but the feature acts if it is not set
  std::string range;         // "from 0 to 1"; empty: no bounds
  std::vector<std::string> also;  // other accepted names
  // The meta-optimizer that handles it; null: only its default is accepted, and `help` gives the
  // reason.
  const MetaOptimizerDef* def = nullptr;
  std::string help;  // one line; empty if its meta-optimizer does not describe it
};

// A row for each field that is not a message, in the order of the numbers. The registry must be
// complete. kInternal if two meta-optimizers take one field.
std::vector<OptionRow> option_rows();

// The meta-optimizers it can be combined with, as a sentence derived from `paddle_class` and
// `wraps`.
std::string compatibility_text(const MetaOptimizerDef& def);

std::string reference_text();      // a line per option
std::string reference_markdown();  // the generated part of docs/reference/strategies.md

}  // namespace fleet
