// The names of a DistributedStrategy's fields, as paths ("amp_configs.incr_ratio") and as users
// type them.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace fleet {

// Null where there is no such field, or message.
const google::protobuf::FieldDescriptor* find_field(const std::string& path);

// All fields that are no messages, in the order of the numbers.
const std::vector<std::string>& field_paths();

// The path that a path as typed means: itself, if it is one, else by the other names that
// strategy.proto has (`also`), without a leading underscore (_fuse_grad_size_in_TFLOPS), and where
// a field of a build or execution strategy stands on the strategy or on the other of the two
// (fuse_bn_act_ops, BuildStrategy.num_iteration_per_drop_scope). "": none.
std::string meant_field(const std::string& typed);

// A clause for an unknown one: "did you mean 'amp_configs.incr_ratio'?"
std::string field_suggestion(const std::string& typed);

// Whether nothing here can do what the field says, or the message it is in (`later`).
bool is_later(const std::string& path);
// Whether the field is a message whose contents are not even known here.
bool is_elsewhere(const std::string& path);
// The first release that has a later field: "Paddle 2.6".
std::string first_release(const std::string& path);

// What a number of this field must be, where it is bounded: "from 0 to 1"; "" where it is not.
std::string range_of(const google::protobuf::FieldDescriptor& field);
bool in_range(const google::protobuf::FieldDescriptor& field, double value);
// What a value of this field must be: "an integer, from 0 to 1".
std::string wanted_of(const google::protobuf::FieldDescriptor& field);

// The number that a name of an integer's value stands for, "Reduce" or
// "fluid.BuildStrategy.ReduceStrategy.Reduce"; -1: none.
int named_value(const google::protobuf::FieldDescriptor& field, const std::string& name);

}  // namespace fleet
