// The names of a DistributedStrategy's fields, as paths ("amp_configs.incr_ratio") and as typed by
// users.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace fleet {

// Null if no field or message has this path.
const google::protobuf::FieldDescriptor* find_field(const std::string& path);

// The names in strategy.proto (`also`) under which it is accepted too.
std::vector<std::string> other_names(const google::protobuf::FieldDescriptor& field);
// The names of the values of an enum's field.
std::vector<std::string> enum_names(const google::protobuf::FieldDescriptor& field);

// All fields that are not messages, in the order of their numbers.
const std::vector<std::string>& field_paths();

// The path that a typed path refers to: itself, if it exists; else by the other names in
// strategy.proto (`also`), without a leading underscore (_fuse_grad_size_in_TFLOPS), and for fields
// of a build or execution strategy that are typed at the top level or under the other of the two
// (fuse_bn_act_ops, BuildStrategy.num_iteration_per_drop_scope). "" if none matches.
std::string resolve_field_name(const std::string& typed);

// Advice about an unknown field: "did you mean 'amp_configs.incr_ratio'?"
std::string field_suggestion(const std::string& typed);

// Whether the field, or a message that contains it, has no implementation here (`later`).
bool is_unsupported_field(const std::string& path);
// Whether the field is a message whose contents are not declared here.
bool is_opaque_message(const std::string& path);
// The first release that has a `later` field: "Paddle 2.6".
std::string first_release(const std::string& path);

// The bounds of a number of this field: "from 0 to 1"; "" without bounds.
std::string range_of(const google::protobuf::FieldDescriptor& field);
bool in_range(const google::protobuf::FieldDescriptor& field, double value);
// The required form of a value of this field: "an integer, from 0 to 1".
std::string value_requirement(const google::protobuf::FieldDescriptor& field);

// The number of a named value of an integer field, "Reduce" or
// "fluid.BuildStrategy.ReduceStrategy.Reduce"; -1 if none matches.
int named_value(const google::protobuf::FieldDescriptor& field, const std::string& name);

}  // namespace fleet
