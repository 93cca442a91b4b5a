// Layer-wise decay of the learning rate (Clark et al., ELECTRA, 2020; timm's layer_decay): layers
// near the input, which carry earlier training, change less.
#pragma once

#include <span>
#include <string>

#include "base/config.h"
#include "graph/program.h"

namespace fleet {

// Sets Var::rate of each parameter from the optimizer's key "layer_decay". The blocks of a model
// are its layers 0 to L - 1, and everything behind the last block is layer L: a parameter of layer
// l, which is where the section reads it first, has the factor decay^(L - l). So an embedding, the
// first block of a model of texts and of ViT, is lowest, and a head has 1, as in timm's
// param_groups_layer_decay(). Block::tail and joins_next move what timm counts to another layer
// than its block's. A tied head is an embedding. Call before the backward pass.
// Returns a line for the log; "" if layer_decay is 1. kUsage for a model without blocks.
std::string set_layer_rates(Program& program, SectionId forward, std::span<const Block> blocks,
                            const Settings& optimizer);

}  // namespace fleet
