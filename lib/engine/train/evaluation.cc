#include "train/evaluation.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/float16.h"

namespace fleet {
namespace {

class ControlExchange : public RankExchange {
 public:
  explicit ControlExchange(RankCoordinator& control) : control_(control) {}

  void sum(std::span<double> values) override { control_.sum(values); }

  std::vector<std::vector<double>> gather(const std::vector<double>& own) override {
    const auto count = static_cast<double>(own.size());
    const auto counts = control_.by_rank({&count, 1});
    size_t most = 0;
    for (const auto& rank : counts) most = std::max(most, static_cast<size_t>(rank[0]));
    std::vector<double> padded = own;
    padded.resize(most);
    auto all = control_.by_rank(padded);
    for (size_t r = 0; r < all.size(); ++r) all[r].resize(static_cast<size_t>(counts[r][0]));
    return all;
  }

 private:
  RankCoordinator& control_;
};

template <typename Narrow>
std::vector<float> widened(const std::vector<Narrow>& values) {
  return {values.begin(), values.end()};
}

// With amp, an output may have 16 bits.
std::vector<float> floats_of(Executor& executor, VarId var) {
  const DType type = executor.program().var(var).dtype;
  if (type == DType::kBFloat16) return widened(executor.values<BFloat16>(var));
  if (type == DType::kFloat16) return widened(executor.values<Float16>(var));
  return executor.values<float>(var);
}

// Adds the rows of a batch to the collector, unless another rank of a pipeline has them.
void collect(StepRunner& runner, const data::Batch& batch, const data::Source* source,
             EvaluationCollector* collector) {
  const Training& training = runner.session().training();
  std::map<std::string, std::vector<float>> outputs;
  for (const std::string& name : collector->outputs()) {
    const VarId var = training.evaluate_output(name);
    if (runner.executor().program().var(var).remote) return;
    outputs[name] = floats_of(runner.executor(), var);
  }
  collector->add(
      {.size = batch.size,
       .output = [&](const std::string& name) { return std::span<const float>(outputs.at(name)); },
       .column = [&](const std::string& name) { return batch.column(name); },
       .width = batch.image.width,
       .class_names = runner.position().card.classes,
       .samples = batch.samples,
       .texts =
           [&](int64_t row, const std::string& what) {
             if (source) return source->texts(batch.samples[row], what);
             throw Error(ErrorCode::kUnsupported, "the metrics of this task compare texts",
                         "an evaluation of batches that a program makes",
                         "evaluate with a job file, or clear train.metrics");
           }});
}

}  // namespace

std::unique_ptr<RankExchange> make_rank_exchange(RankCoordinator& control) {
  return std::make_unique<ControlExchange>(control);
}

MetricSums sum_over_ranks(const MetricSums& sums, RankCoordinator& control) {
  MetricSums all = sums;
  control.sum(all.sums());
  return all;
}

std::optional<Evaluation> evaluate(StepRunner& runner, const EvaluationOptions& options) {
  runner.sync_ranks(StepRunner::SyncFor::kEvaluation);
  const Training& training = runner.session().training();
  Evaluation result{.sums = MetricSums(training.metrics), .collected = training.make_collector()};
  for (;;) {
    const data::Batch* batch = options.next_batch();
    if (!options.agree_on_step(batch != nullptr)) return std::nullopt;
    if (!batch) break;
    result.sums.add(runner.evaluate(*batch));
    if (result.collected) collect(runner, *batch, options.source, result.collected.get());
    options.batch_done();
  }
  result.sums = sum_over_ranks(result.sums, runner.control());
  if (!result.collected) return result;
  result.collected->finish(*make_rank_exchange(runner.control()));
  for (const auto& [name, value] : result.collected->metrics()) {
    result.sums.set_collected(name, value);
  }
  return result;
}

}  // namespace fleet
