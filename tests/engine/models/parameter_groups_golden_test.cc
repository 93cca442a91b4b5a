// Layers and decaying parameters of image networks against timm's (param_groups_layer_decay and
// param_groups_weight_decay), which scripts/make_golden_parameter_groups.py wrote.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/model.h"
#include "models/training.h"
#include "models/weight_layout.h"
#include "optim/layer_decay.h"
#include "optim/optimizer.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

const nlohmann::json& timm_groups() {
  static const nlohmann::json all = [] {
    std::ifstream file(source_folder() + "/tests/golden/parameter_groups.json");
    return nlohmann::json::parse(file).at("networks");
  }();
  return all;
}

// The layer of a parameter of timm: that of the longest start that fits its name.
int layer_in_timm_of(const nlohmann::json& network, const std::string& name) {
  size_t longest = 0;
  int layer = -1;
  const nlohmann::json& layers = network.at("layers");
  for (size_t l = 0; l < layers.size(); ++l) {
    for (const std::string start : layers[l]) {
      if (start.size() <= longest || !name.starts_with(start)) continue;
      longest = start.size();
      layer = static_cast<int>(l);
    }
  }
  return layer;
}

Training with_layer_rates(Program& program, const std::string& model, const Settings& optimizer) {
  const ModelDef& def = model_registry().get(model);
  Training training = build_training(program, {.model = model,
                                               .model_settings = ConfigTree().validate(def.schema),
                                               .batch = 2,
                                               .columns = image_columns(def.image)});
  set_layer_rates(program, training.forward, training.blocks, optimizer);
  return training;
}

TensorShapes saved_shapes(const Program& program) {
  TensorShapes shapes;
  for (VarId id = 0; id < program.var_count(); ++id) {
    if (is_saved(program.var(id))) shapes[program.var(id).name] = program.var(id).shape;
  }
  return shapes;
}

std::vector<std::string> timms_networks() {
  std::vector<std::string> names;
  for (const auto& [name, network] : timm_groups().items()) names.push_back(name);
  return names;
}

class GroupsOfTimm : public ::testing::TestWithParam<std::string> {};

TEST_P(GroupsOfTimm, RatesAndDecays_AreTimms) {
  constexpr double kDecay = 0.05;
  const Settings optimizer =
      ConfigTree::from_json(R"({"name": "adamw", "weight_decay": 0.05, "layer_decay": 0.5,
                                "weight_decay_exclude_1d": true})",
                            "test")
          .validate(optimizer_schema("adamw"));
  const nlohmann::json& network = timm_groups().at(GetParam());
  const std::set<std::string> no_decay = network.at("no_decay");
  const auto last = static_cast<int>(network.at("layers").size()) - 1;
  const std::string model = network_named(GetParam());
  ASSERT_NE(model, "");
  Program program;
  with_layer_rates(program, model, optimizer);
  const LayoutNames names = timm_tensors(*find_weight_layout(model), saved_shapes(program));
  std::set<std::string> compared;
  for (const VarId id : program.parameters()) {
    const Var& var = program.var(id);
    for (const LayoutTensor& part : names.at(var.name)) {
      if (part.name.empty()) continue;
      const int layer = layer_in_timm_of(network, part.name);
      ASSERT_GE(layer, 0) << part.name;
      EXPECT_EQ(var.rate, std::pow(0.5, last - layer)) << var.name << " is " << part.name;
      const bool decays = part.shape.rank() > 1 && !no_decay.contains(part.name);
      EXPECT_EQ(weight_decay_of(optimizer, var), decays ? kDecay : 0)
          << var.name << " is " << part.name;
      compared.insert(part.name);
    }
  }
  EXPECT_EQ(compared.size(), network.at("parameters").get<size_t>());
}

INSTANTIATE_TEST_SUITE_P(Golden, GroupsOfTimm, ::testing::ValuesIn(timms_networks()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace fleet
