// Reads a DistributedStrategy in protobuf's text form, with all names that users may type.
#pragma once

#include <string>

#include "proto/strategy.pb.h"

namespace fleet {

// Merges the text over the existing values, like Paddle's load_from_prototxt: sets scalars, appends
// to lists. Accepts all names that resolve_field_name() knows (strategy/names.h); it is an error if
// one field has two names with two values. Ignores a `later` field at its default, with a debug
// line. kUsage naming origin:line:column, the nearest known name, and the required form of a value;
// kUnsupported for a `later` field with another value than its default.
void read_strategy_text(const std::string& text, const std::string& origin,
                        paddle::fleet::DistributedStrategy* proto);

}  // namespace fleet
