// Parts of models of clicks. Their inputs are the columns "ids", int64 [N, K, L] (K slots of up to
// L ids of one id space, padded with -1), and "dense", float32 [N, D]; their output is "logits",
// [N, 1].
#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace fleet {

// The keys ids, dim, embedding_init and sparse_embedding, of tables.
Schema table_schema(int64_t dim);
// A table of this width by these keys.
Table table_of(const Settings& settings, int64_t dim);

// Whether the network has the input "dense": for models with the key "dense", which data without
// numbers set to false.
ModelPorts click_ports(const Settings& settings);
Schema& dense_key(Schema& schema);

// Fully connected layers PREFIX1, PREFIX2, ... with a ReLU behind each. kUsage naming `key` for a
// layer without outputs.
VarId hidden_layers(Network& network, const std::string& prefix, VarId x, const Settings& settings,
                    const std::string& key);

}  // namespace fleet
