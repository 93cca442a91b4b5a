#include "train/language_runner.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/log.h"
#include "models/model.h"
#include "train/trained_weights.h"

namespace fleet {
namespace {

constexpr int64_t kShortestRow = 64;

}  // namespace

LanguageRunner::LanguageRunner(const Job& job, Device& device, int64_t longest)
    : job_(job), device_(device), longest_(longest) {}

void LanguageRunner::build(int64_t length) {
  const ModelDef& model = model_registry().get(job_.model_name);
  Program program;
  const SectionId section =
      program.add_section("evaluate", {.training = false, .evaluation = true});
  NamedVars inputs = {{"sample_key", kNoVar}};
  for (const std::string& name : model.inputs) {
    inputs[name] = program.feed(name, DType::kInt64, {1, length});
  }
  last_ = program.feed("last", DType::kInt64, {1});
  Network network(program, section, false, kNoVar);
  const NamedVars outputs = model.build(network, inputs, job_.model);
  // Only the last token's row of the hidden states reaches the head.
  const VarId hidden = find_var(outputs, "hidden"), head = find_var(outputs, "head");
  const VarId rows = network.reshape(hidden, {length, -1});
  const VarId row = network.apply("embedding", {last_, rows});
  result_ = network.apply("fc", {row, head}, {{"axis", int64_t{1}}});
  input_ids_ = find_var(inputs, "input_ids");
  position_ids_ = find_var(inputs, "position_ids");
  document_ids_ = find_var(inputs, "document_ids");
  executor_.reset();  // its memory, before the longer one is allocated
  Plan plan = plan_program(std::move(program), {result_},
                           {.backend = device_.backend(), .device = &device_});
  executor_ = std::make_unique<Executor>(std::move(plan), device_, nullptr);
  executor_->set_recording(job_.train.boolean("cuda_graph"));
  executor_->initialize(1);
  TrainedWeights weights = trained_weights(job_, "checkpoint.weights");
  const std::string what = weights.what, warning = weights.warning;
  if (weights.position) tokenizer_ = weights.position->tokenizer;
  const std::vector<std::string> lines = load_trained_weights(job_, &weights, *executor_);
  if (!said_) {
    for (const std::string& line : lines) spdlog::info("{}", line);
    spdlog::info("generating with {}", what);
    if (!warning.empty()) spdlog::warn("{}", warning);
    said_ = true;
  }
  length_ = length;
  row_.assign(length, 0);
  positions_.resize(length);
  std::iota(positions_.begin(), positions_.end(), int64_t{0});
  documents_.assign(length, 0);
}

std::span<const float> LanguageRunner::logits(std::span<const uint32_t> tokens) {
  if (std::ssize(tokens) > longest_) tokens = tokens.last(longest_);
  const auto count = std::max<int64_t>(1, std::ssize(tokens));
  if (count > length_) {
    int64_t length = std::min(kShortestRow, longest_);
    while (length < count) length = std::min(2 * length, longest_);
    build(length);
  }
  // The rest of the row may have any value: attention is causal.
  std::copy(tokens.begin(), tokens.end(), row_.begin());
  const int64_t last = count - 1;
  executor_->feed(input_ids_, row_);
  if (position_ids_ != kNoVar) executor_->feed(position_ids_, positions_);
  if (document_ids_ != kNoVar) executor_->feed(document_ids_, documents_);
  executor_->feed(last_, std::span(&last, 1));
  executor_->run({.evaluate = true, .fetch = true});
  logits_ = executor_->values<float>(result_);
  return logits_;
}

}  // namespace fleet
