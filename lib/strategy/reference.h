// Reference of all options of a DistributedStrategy, made from the registry of meta-optimizers and
// from strategy.proto: docs/reference/strategies.md and fleet-worker --print_flags.
#pragma once

#include <string>
#include <vector>

#include "strategy/meta_optimizer.h"

namespace fleet {

struct OptionRow {
  std::string path;  // "amp_configs.incr_ratio"
  std::string type;  // "bool", "integer", "number", "text", "texts", ...
  std::string initial;
  bool unset_is_on = false;  // a field whose default is false, and that acts where it is not set
  std::string range;         // "from 0 to 1"; empty: none
  std::vector<std::string> also;  // other names that users type
  // Who takes it; null: only its default is accepted, and `help` says why.
  const MetaOptimizerDef* def = nullptr;
  std::string help;  // one line; empty where its meta-optimizer tells nothing of it
};

// A row for each field that is no message, in the order of the numbers. The registry must be
// complete. kInternal where two meta-optimizers take one field, or field_help names a field that
// its meta-optimizer does not take.
std::vector<OptionRow> option_rows();

// What a meta-optimizer goes with, in a sentence: made from `paddle_class` and `wraps`.
std::string goes_with(const MetaOptimizerDef& def);

std::string reference_text();      // a line an option
std::string reference_markdown();  // the generated part of docs/reference/strategies.md

}  // namespace fleet
