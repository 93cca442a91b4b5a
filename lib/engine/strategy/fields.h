// The fields of a DistributedStrategy by their paths: "amp_configs.incr_ratio".
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "strategy/strategy_file.h"

namespace fleet {

// Whether the value equals the field's default, set or not; for a list, whether it is empty.
bool is_default(const google::protobuf::Message& message,
                const google::protobuf::FieldDescriptor& field);

// Whether a number in the message is within the bounds of the field (`least`, `most`).
bool in_range(const google::protobuf::FieldDescriptor& field,
              const google::protobuf::Message& message);

// The given fields that are set, to any value.
std::vector<std::string> given_fields(const StrategyProto& proto,
                                      const std::vector<std::string>& paths);

// Resets a field or message to unset. kInternal for an unknown path.
void clear_field(const std::string& path, StrategyProto* proto);

// The value of a bool field, if it is set. kInternal for a path that is not a bool field.
std::optional<bool> given_boolean(const StrategyProto& proto, const std::string& path);

// The fields that differ from their defaults and are not among `taken`, in which a message stands
// for all of its fields. The configuration of a feature that is off (localsgd_configs without
// localsgd) has no effect, as in Paddle; if it differs from the default, a log line reports it.
std::vector<std::string> unclaimed_fields(const StrategyProto& proto,
                                          const std::set<std::string>& taken);

}  // namespace fleet
