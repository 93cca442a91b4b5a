// Reads a DistributedStrategy in protobuf's text form, with the names that users type.
#pragma once

#include <string>

#include "proto/strategy.pb.h"

namespace fleet {

// Merges the text over what is there, as Paddle's load_from_prototxt does: sets scalars, appends to
// lists. Names may be any that meant_field() knows (strategy/names.h); one field under two names
// with two values is an error. A `later` field at its default is passed over, with a line for
// debugging. kUsage naming origin:line:column, the nearest known name, and what a value must be;
// kUnsupported for a `later` field with another value than its default.
void read_strategy_text(const std::string& text, const std::string& origin,
                        paddle::fleet::DistributedStrategy* proto);

}  // namespace fleet
