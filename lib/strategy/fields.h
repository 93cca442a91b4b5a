// The fields of a DistributedStrategy by their paths: "amp_configs.incr_ratio".
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "strategy/strategy_file.h"

namespace fleet {

// Whether there is such a field, or message.
bool is_field(const std::string& path);

// Whether the message has the field's default, given or not; a list: none.
bool is_default(const google::protobuf::Message& message,
                const google::protobuf::FieldDescriptor& field);

// Whether a number that the message has is one that the field can be (`least`, `most`).
bool in_range(const google::protobuf::FieldDescriptor& field,
              const google::protobuf::Message& message);

// Those of these fields that are set, to whatever value.
std::vector<std::string> given_fields(const StrategyProto& proto,
                                      const std::vector<std::string>& paths);

// Takes back what a field, or a message, was set to. kInternal for an unknown path.
void clear_field(const std::string& path, StrategyProto* proto);

// A bool field, where it is set. kInternal for a path that is no bool field.
std::optional<bool> given_boolean(const StrategyProto& proto, const std::string& path);

// The fields that differ from their defaults and are not among `taken`, in which a message stands
// for all of its fields. The configuration of a feature that is off (localsgd_configs without
// localsgd) has no effect, as in Paddle; a line in the log says so, if it differs from the default.
std::vector<std::string> fields_not_taken(const StrategyProto& proto,
                                          const std::set<std::string>& taken);

}  // namespace fleet
