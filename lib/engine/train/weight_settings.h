// Settings that belong to trained weights although the shapes of the weights do not tell them: with
// another number of heads, the same numbers are another network.
#pragma once

#include <map>
#include <string>

#include "train/job.h"

namespace fleet {

// Their values, as JSON, by key: "model.num_attention_heads", "data.mean". Those of the model "hf"
// come from its config.json. Errors of language_source().
using WeightSettings = std::map<std::string, std::string>;
WeightSettings weight_settings(const Job& job);

// "was trained with model.hidden_act=\"gelu\", this job has \"relu\"", for settings of the network
// and for data.ids; "" if they are the same, or unknown on either side, as in checkpoints of
// earlier releases.
std::string network_difference(const WeightSettings& saved, const WeightSettings& own);
// Like network_difference(), for the preparation of images.
std::string input_difference(const WeightSettings& saved, const WeightSettings& own);

}  // namespace fleet
