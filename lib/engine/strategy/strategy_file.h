// Reads a DistributedStrategy from its user formats: a text file (.prototxt) or the "strategy"
// section of a job file. See proto/strategy.proto.
#pragma once

#include <string>

#include "base/config.h"
#include "proto/strategy.pb.h"

namespace fleet {

using StrategyProto = paddle::fleet::DistributedStrategy;

// Merges the text over the existing values (strategy/text_reader.h).
void merge_strategy_text(const std::string& text, const std::string& origin, StrategyProto* proto);
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

}  // namespace fleet
