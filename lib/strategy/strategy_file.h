// DistributedStrategy as users give it: a text file (.prototxt) or the "strategy" section of a job
// file. See proto/strategy.proto.
#pragma once

#include <string>

#include "base/config.h"
#include "proto/strategy.pb.h"

namespace fleet {

using StrategyProto = paddle::fleet::DistributedStrategy;

// Merges the text over what is there (strategy/text_reader.h).
void merge_strategy_text(const std::string& text, const std::string& origin, StrategyProto* proto);
void merge_strategy_file(const std::string& path, StrategyProto* proto);

// The keys of a job file's strategy section: "file", and every field of the message under its own
// name ("fuse_grad_size_in_MB", "build_strategy.fuse_bn_act_ops"). Made from the message's
// descriptor.
Schema strategy_schema();

// Puts what a job gives under the names it typed (strategy/names.h) where their fields are:
// PREFIX.thread_num to PREFIX.execution_strategy.num_threads, a text at PREFIX itself to
// PREFIX.file. Values typed as Python's names of them become what they stand for. kUsage naming
// both where one field has two names and two values. Unknown names stay.
void name_strategy_fields(const std::string& prefix, ConfigTree* tree);

// Puts the fields of the file that the tree's PREFIX.file names under their keys, where the tree
// has none, with the origin "PREFIX.file PATH": what is printed and asked for is what is used.
void take_strategy_file(const std::string& prefix, ConfigTree* tree);

// Puts what a strategy has set under the keys PREFIX.*, where the tree has none.
void take_strategy(const StrategyProto& proto, const std::string& prefix, const std::string& origin,
                   ConfigTree* tree);

// The file the section names, with the keys it gives over it: a given list replaces the file's.
StrategyProto strategy_from(const Settings& section);

}  // namespace fleet
