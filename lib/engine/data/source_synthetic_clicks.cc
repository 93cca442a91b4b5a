// Generated clicks for tests and benchmarks of click models: the best AUC that is possible on them
// is known.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "data/click_truth.h"
#include "data/source.h"

namespace fleet::data {
namespace {

constexpr int64_t kMostIds = 100'000'000, kMostRated = 1'000'000;

ClickTruthOptions options_of(const Settings& data) {
  return {.slots = data.integer("slot_count"),
          .slot_ids = data.integer("slot_ids"),
          .longest = data.integer("slot_length"),
          .dense = data.integer("dense"),
          .exponent = data.number("zipf"),
          .deviation = data.number("deviation"),
          .rate = data.number("click_rate"),
          .interaction = data.boolean("interaction"),
          .seed = static_cast<uint64_t>(data.integer("seed")),
          .ids = data.integer("ids")};
}

ClickShape shape_of(const Settings& data) {
  return {.dense = data.integer("dense"),
          .slots = data.integer("slot_count"),
          .longest = data.integer("slot_length")};
}

class SyntheticClicks : public Source {
 public:
  SyntheticClicks(const ClickTruthOptions& options, int64_t samples, bool train)
      : truth_(options), samples_(samples), train_(train) {}
  int64_t size() const override { return samples_; }
  std::vector<Column> columns() const override { return click_columns(truth_.shape(), true); }
  void fill(int64_t index, uint64_t /*key*/, std::span<void* const> to) const override {
    truth_.fill(train_ ? 1 : 0, index, click_row(truth_.shape(), true, to));
  }
  std::string name(int64_t index) const override {
    return "synthetic_clicks[" + std::to_string(index) + "]";
  }

  void log_best() const {
    std::vector<double> probabilities(static_cast<size_t>(std::min(samples_, kMostRated)));
    for (size_t i = 0; i < probabilities.size(); ++i) {
      probabilities[i] = truth_.fill(train_ ? 1 : 0, static_cast<int64_t>(i), {});
    }
    spdlog::info(
        "synthetic_clicks: the best possible AUC of the {} rows is {:.4f} (log loss {:.4f})",
        train_ ? "training" : "test", best_possible_auc(probabilities),
        best_possible_log_loss(probabilities));
  }

 private:
  const ClickTruth truth_;
  const int64_t samples_;
  const bool train_;
};

void check_keys(const Settings& /*split*/, SourceContext* context) {
  const Settings& data = *context->data;
  const int64_t needed = data.integer("slot_count") * data.integer("slot_ids"),
                ids = data.integer("ids");
  if (needed > kMostIds) {
    throw Error(ErrorCode::kUsage,
                "is " + std::to_string(data.integer("slot_ids")) +
                    ", and with data.slot_count there are " + std::to_string(needed) + " ids",
                "data.slot_ids", "use at most 100 million ids in all slots together");
  }
  if (ids > 0 && ids < needed) {
    throw Error(ErrorCode::kUsage,
                "is " + std::to_string(ids) + ", and the slots have " + std::to_string(needed) +
                    " different ids",
                "data.ids", "use at least data.slot_count * data.slot_ids, or 0");
  }
}

std::unique_ptr<Source> open_clicks(const Settings& split, const SourceContext& given) {
  SourceContext context = given;
  check_keys(split, &context);
  auto source = std::make_unique<SyntheticClicks>(options_of(*given.data), split.integer("samples"),
                                                  given.train);
  if (given.verbose && !given.train) source->log_best();
  return source;
}

}  // namespace

FLEET_SOURCE(synthetic_clicks) {
  def.schema = [](bool train) {
    return Schema().integer("samples", train ? 1'000'000 : 100'000, 1, 1e12, "Number of rows");
  };
  def.shared = [] {
    return id_space_keys()
        .integer("slot_count", 8, 1, 10'000, "Number of slots")
        .integer("slot_ids", 1000, 1, 1e8,
                 "Different ids of a slot; data.slot_count times this number is at most data.ids")
        .integer("slot_length", 1, 1, 1000,
                 "Most ids of a row in a slot: a row has 1 to this number, the rest is padding")
        .integer("dense", 0, 0, 10'000, "Numbers of a row (column \"dense\"), from N(0, 1)")
        .number("zipf", 1, 0, 10, "Exponent of Zipf's law, which the ids of a slot follow")
        .number("deviation", 1, 0, 20,
                "Standard deviation of the log odds of a click; larger: easier to predict")
        .number("click_rate", 0.25, 1e-6, 1 - 1e-6, "Fraction of rows with a click")
        .boolean("interaction", false,
                 "Half of the variance of the log odds comes from pairs of slots")
        .integer("seed", 1, 0, 9e15, "Seed of the rows and of their truth");
  };
  def.describe = check_keys;
  def.columns = [](const Settings&, const SourceContext& context) {
    return click_columns(shape_of(*context.data), true);
  };
  def.open = open_clicks;
}

}  // namespace fleet::data
