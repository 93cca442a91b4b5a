#include "models/evaluated_network.h"

namespace fleet {
namespace {

// Moves convolutions that have a kernel of our own away from cuDNN.
void leave_cudnn(Program& program) {
  for (Op& op : program.ops()) {
    const bool depthwise = op.type() == "conv2d" && op.attributes.integer("groups") > 1 &&
                           program.var(op.inputs[1]).shape[1] == 1;
    if (depthwise || op.type() == "conv2d_transpose") op.attributes.set("use_cudnn", false);
  }
}

void leave_winograd(Program& program) {
  for (Op& op : program.ops()) {
    if (op.attributes.has("winograd")) op.attributes.set("winograd", false);
  }
}

}  // namespace

EvaluatedNetwork evaluated_network(const std::string& model, const Settings& settings,
                                   const Shape& image, const std::set<std::string>& wanted) {
  EvaluatedNetwork built;
  built.section = built.program.add_section("evaluate", {.training = false, .evaluation = true});
  built.image = built.program.feed("image", DType::kFloat32, image);
  Network network(built.program, built.section, false, kNoVar);
  network.set_wanted_outputs(wanted);
  set_norms(network, settings);
  built.outputs = model_registry().get(model).build(
      network, {{"image", built.image}, {"sample_key", kNoVar}}, settings);
  choose_kernels(built.program, settings);
  return built;
}

void set_norms(Network& network, const Settings& model_settings) {
  if (!model_settings.has(kBatchNormEpsilon)) return;
  network.set_batch_norm_epsilon(model_settings.number(kBatchNormEpsilon));
}

void choose_kernels(Program& program, const Settings& model_settings) {
  const auto is_off = [&](const char* key) {
    return model_settings.has(key) && !model_settings.boolean(key);
  };
  if (is_off("use_cudnn")) leave_cudnn(program);
  if (is_off("winograd")) leave_winograd(program);
}

}  // namespace fleet
