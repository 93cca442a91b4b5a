#include "train/weight_settings.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "models/evaluated_network.h"
#include "models/model.h"
#include "models/text/language_models.h"

namespace fleet {
namespace {

constexpr char kModel[] = "model.", kData[] = "data.";

// Keys of models that change what the same weights compute. Those that change their shapes need no
// record. Those of rope are left out: a longer context is often trained or tried with others.
constexpr const char* kOfNetworks[] = {"activation",
                                       "activation_function",
                                       "batch_norm_epsilon",
                                       "hidden_act",
                                       "layer_norm_eps",
                                       "layer_norm_epsilon",
                                       "n_head",
                                       "n_heads",
                                       "norm_epsilon",
                                       "num_attention_heads",
                                       "rms_norm_eps",
                                       "same_padding",
                                       "scale_attn_by_inverse_layer_idx",
                                       "scale_attn_weights",
                                       "window_rule"};

// The number that model.batch_norm_epsilon=0, the network's own, stands for. 0 if its layers have
// several, or if the model does not read an image.
double own_epsilon(const Job& job) {
  const ModelDef* model = model_registry().find(job.model_name);
  if (!model || model->image.rank() != 3) return 0;
  const Shape image = {1, model->image[0], model->image[1], model->image[2]};
  std::set<double> found;
  try {
    const EvaluatedNetwork built = evaluated_network(job.model_name, job.model, image, {"logits"});
    for (const Op& op : built.program.ops()) {
      if (op.type() == "batch_norm") found.insert(op.attributes.number("epsilon"));
    }
  } catch (const Error&) {
    return 0;  // the start refuses these settings, or feeds the network something else
  }
  return found.size() == 1 ? *found.begin() : 0;
}

// One number stands for all channels.
std::string channels_text(std::vector<double> values) {
  const auto other = [&](double value) { return value != values.front(); };
  if (!values.empty() && std::ranges::none_of(values, other)) values.resize(1);
  return Json(values).dump();
}

bool prepares_images(const std::string& key) { return key == "data.mean" || key == "data.std"; }

std::string difference(const WeightSettings& saved, const WeightSettings& own, bool of_images) {
  std::vector<std::string> before, now;
  for (const auto& [key, value] : saved) {
    const auto found = own.find(key);
    if (prepares_images(key) != of_images || found == own.end() || found->second == value) continue;
    before.push_back(key + "=" + value);
    now.push_back(found->second);
  }
  if (before.empty()) return "";
  return "was trained with " + join(before, ", ") + ", this job has " + join(now, ", ");
}

}  // namespace

WeightSettings weight_settings(const Job& job) {
  WeightSettings settings;
  const auto language = language_source(job.model_name, job.model);
  for (const std::string key : kOfNetworks) {
    if (language) {
      if (const Json* value = language->config.find(key)) settings[kModel + key] = value->dump();
    } else if (job.model.has(key)) {
      settings[kModel + key] = Json::parse(job.model.json(key)).dump();
    }
  }
  // Given or not, the same number is the same network.
  if (const auto epsilon = settings.find(std::string(kModel) + kBatchNormEpsilon);
      epsilon != settings.end() && job.model.number(kBatchNormEpsilon) == 0) {
    epsilon->second = Json(own_epsilon(job)).dump();
  }
  // Features are reduced to rows of tables by it.
  if (job.data.has("ids")) settings["data.ids"] = Json(job.data.integer("ids")).dump();
  const ModelDef* model = model_registry().find(job.model_name);  // null for a program's own
  const bool images = model && std::ranges::find(model->inputs, "image") != model->inputs.end();
  for (const std::string key : {"mean", "std"}) {
    if (images && job.data.has(key)) settings[kData + key] = channels_text(job.data.numbers(key));
  }
  return settings;
}

std::string network_difference(const WeightSettings& saved, const WeightSettings& own) {
  return difference(saved, own, false);
}

std::string input_difference(const WeightSettings& saved, const WeightSettings& own) {
  return difference(saved, own, true);
}

}  // namespace fleet
