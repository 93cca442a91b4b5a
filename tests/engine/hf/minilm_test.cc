// The real weights of all-MiniLM-L6-v2, against transformers (scripts/make_golden_minilm.py);
// skipped where they are not fetched.
#include <gtest/gtest.h>

#include <memory>

#include "base/env.h"
#include "exec/executor.h"
#include "models/model.h"
#include "models/text/language_models.h"
#include "tensor/host.h"
#include "tests/engine/models/text/golden_text.h"
#include "train/language_weights.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

// Every 16th feature of real tokens, as the file has them.
std::vector<float> sampled(const std::vector<float>& values,
                           const std::vector<int64_t>& documents) {
  constexpr size_t kStep = 16;
  const size_t rows = documents.size(), features = values.size() / rows;
  std::vector<float> result;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < features; i += kStep) {
      result.push_back(documents[row] < 0 ? 0 : values[row * features + i]);
    }
  }
  return result;
}

TEST(MiniLm, HiddenStates_AreTransformers) {
  const std::string folder = env_or("FLEET_MINILM", "");
  if (folder.empty()) GTEST_SKIP() << "FLEET_MINILM names no folder (scripts/fetch_minilm.py)";
  const golden::TextCase text = golden::load_text("minilm");
  const Settings settings = ConfigTree::from_json(R"({"folder": ")" + folder + R"("})", "test")
                                .validate(model_registry().get(kHuggingFaceModel).schema);
  const LanguageModel model = language_model_of(*language_source(kHuggingFaceModel, settings));
  Program program;
  NamedVars feeds;
  for (const auto& [name, values] : text.inputs) {
    feeds[name] = program.feed(name, DType::kInt64, {text.batch, text.length});
  }
  const SectionId section =
      program.add_section("evaluate", {.training = false, .evaluation = true});
  Network network(program, section, false, kNoVar);
  const std::set<std::string> wanted = {"pooled"};
  network.set_wanted_outputs(wanted);
  const NamedVars outputs = build_language_model(network, feeds, model);
  const VarId hidden = outputs.at("hidden"), pooled = outputs.at("pooled");
  HostDevice device;
  Executor executor(plan_program(std::move(program), {hidden, pooled}), device, nullptr);
  const std::string path = weights_in_folder(folder);
  TensorFile file = read_weights(path);
  fit_language_names(model, path, &file, &wanted);
  ASSERT_EQ(file.tensors.size(), executor.program().parameters().size());
  for (const auto& [name, tensor] : file.tensors) {
    ASSERT_NE(executor.program().find(name), kNoVar) << name;
    const TensorBytes bytes = tensor.values();
    executor.write(
        executor.program().find(name),
        std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)));
  }
  for (const auto& [name, values] : text.inputs) executor.feed(feeds.at(name), values);
  executor.run({.evaluate = true});
  executor.synchronize();
  constexpr double kTolerance = 1e-5;
  EXPECT_LT(golden::relative_error(
                sampled(executor.values<float>(hidden), text.inputs.at("document_ids")),
                text.tensors.at("hidden")),
            kTolerance);
  const std::vector<int64_t> samples(static_cast<size_t>(text.batch), 0);
  EXPECT_LT(golden::relative_error(sampled(executor.values<float>(pooled), samples),
                                   text.tensors.at("pooled")),
            kTolerance);
}

}  // namespace
}  // namespace fleet
