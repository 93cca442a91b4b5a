// Reads a DistributedStrategy from its user formats: a text file (.prototxt) or the "strategy"
// section of a job file. See proto/strategy.proto.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "proto/strategy.pb.h"

namespace fleet {

using StrategyProto = paddle::fleet::DistributedStrategy;

// As read_strategy_text() does.
void merge_strategy_file(const std::string& path, StrategyProto* proto);

// The keys of a job file's strategy section: "file", and every field of the message under its own
// name ("fuse_grad_size_in_MB", "build_strategy.fuse_bn_act_ops"). Made from the message's
// descriptor.
Schema strategy_schema();

// Moves values given under any accepted name (strategy/names.h) to the paths of their fields:
// PREFIX.thread_num to PREFIX.execution_strategy.num_threads, a string at PREFIX itself to
// PREFIX.file. Replaces named values of Python by their numbers. kUsage naming both if one field
// has two names with two values. Unknown names stay.
void canonicalize_strategy_fields(const std::string& prefix, ConfigTree* tree);

// Copies the fields of the file that the tree's PREFIX.file names to their keys, unless the tree
// has them, with the origin "PREFIX.file PATH": so printed and queried values are those in use.
void add_strategy_file_fields(const std::string& prefix, ConfigTree* tree);

// Copies the set fields of a strategy to the keys PREFIX.*, unless the tree has them.
void add_strategy_fields(const StrategyProto& proto, const std::string& prefix,
                         const std::string& origin, ConfigTree* tree);

// The file that the section names, overridden by the section's keys: a given list replaces the
// file's.
StrategyProto strategy_from(const Settings& section);

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

// Merges the text over the existing values, like Paddle's load_from_prototxt: sets scalars, appends
// to lists. Accepts all names that resolve_field_name() knows (strategy/names.h); it is an error if
// one field has two names with two values. Ignores a `later` field at its default, with a debug
// line. kUsage naming origin:line:column, the nearest known name, and the required form of a value;
// kUnsupported for a `later` field with another value than its default.
void read_strategy_text(const std::string& text, const std::string& origin,
                        paddle::fleet::DistributedStrategy* proto);

}  // namespace fleet
