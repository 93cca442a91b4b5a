// plateau: base, multiplied by factor whenever a metric of the evaluation has not improved for more
// than `patience` evaluations (PyTorch's ReduceLROnPlateau; mode min for loss, max for an
// accuracy). An evaluation is an improvement if it beats the best one by more than the threshold: a
// fraction of the best (rel) or an absolute amount (abs). After a reduction the next `cooldown`
// evaluations do not count. A NaN is never an improvement.
#include <algorithm>
#include <cmath>

#include "base/number_text.h"
#include "optim/schedule.h"

namespace fleet {
namespace {

class Plateau : public RateAdjuster {
 public:
  explicit Plateau(const Settings& settings)
      : metric_(settings.text("metric")),
        relative_(settings.text("threshold_mode") == "rel"),
        factor_(settings.number("factor")),
        threshold_(settings.number("threshold")),
        min_rate_(settings.number("min_rate")),
        patience_(settings.integer("patience")),
        cooldown_(settings.integer("cooldown")) {}

  std::string observe(const EvaluationResult& evaluated) override {
    const double value = metric_ == "loss" ? evaluated.loss : evaluated.headline;
    if (improves(value)) {
      best_ = value;
      has_best_ = true;
      bad_ = 0;
    } else {
      ++bad_;
    }
    if (resting_ > 0) {
      --resting_;
      bad_ = 0;
    }
    if (bad_ <= patience_) return "";
    const std::string line = "the learning rate falls by " + number_text(factor_) + ": test " +
                             metric_ + " has not improved on " + number_text(best_) + " for " +
                             std::to_string(bad_) + " evaluations";
    share_ *= factor_;
    resting_ = cooldown_;
    bad_ = 0;
    return line;
  }

  double adjust(double rate) const override {
    return std::max(rate * share_, std::min(rate, min_rate_));
  }

  std::vector<double> state() const override {
    return {share_, has_best_ ? 1.0 : 0.0, best_, static_cast<double>(bad_),
            static_cast<double>(resting_)};
  }

  bool restore(std::span<const double> state) override {
    if (state.size() != 5) return false;
    share_ = state[0];
    has_best_ = state[1] != 0;
    best_ = state[2];
    bad_ = static_cast<int64_t>(state[3]);
    resting_ = static_cast<int64_t>(state[4]);
    return true;
  }

 private:
  bool improves(double value) const {
    if (!has_best_) return std::isfinite(value);
    if (metric_ == "loss") {
      return value < (relative_ ? best_ * (1 - threshold_) : best_ - threshold_);
    }
    return value > (relative_ ? best_ * (1 + threshold_) : best_ + threshold_);
  }

  const std::string metric_;
  const bool relative_;
  const double factor_, threshold_, min_rate_;
  const int64_t patience_, cooldown_;
  double share_ = 1;  // factor for the schedule's rate
  bool has_best_ = false;
  double best_ = 0;
  int64_t bad_ = 0, resting_ = 0;  // evaluations
};

}  // namespace

FLEET_SCHEDULE(plateau) {
  def.help = "the learning rate falls when the evaluation stops improving";
  def.schema.number("base", 0.1, 0, 1e6, "learning rate at the start")
      .text("metric", "loss",
            "metric of the test data that must improve: loss, or the task's main accuracy (acc1)")
      .number("factor", 0.1, 0, 1, "factor by which the rate falls")
      .integer("patience", 10, 0, 1e9, "evaluations without improvement before the rate falls")
      .number("threshold", 1e-4, 0, 1e6, "smallest improvement that counts")
      .choice("threshold_mode", "rel", {"rel", "abs"},
              "whether threshold is relative to the best value, or absolute")
      .integer("cooldown", 0, 0, 1e9, "evaluations to ignore after a fall")
      .number("min_rate", 0, 0, 1e6, "lower bound of the rate");
  def.make = [](const Settings& settings, const ScheduleSpan&) -> RateFunction {
    return [base = settings.number("base")](int64_t) { return base; };
  };
  def.make_adjuster = [](const Settings& settings) { return std::make_unique<Plateau>(settings); };
}

}  // namespace fleet
