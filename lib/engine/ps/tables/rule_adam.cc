// adam: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
// w -= learning_rate * sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + epsilon)
// State: m [dim], v [dim], b1^t, b2^t, where t counts the updates of the row, including the next.
#include <algorithm>
#include <cmath>

#include "optim/optimizer.h"
#include "ps/tables/table_rule.h"

namespace fleet::ps {
namespace {

class AdamRule : public TableRule {
 public:
  AdamRule(const Common& common, double beta1, double beta2, double epsilon)
      : TableRule(common),
        beta1_(static_cast<float>(beta1)),
        beta2_(static_cast<float>(beta2)),
        epsilon_(static_cast<float>(epsilon)) {}
  int states(int dim) const override { return 2 * dim + 2; }
  void begin(float* state, int dim) const override {
    std::fill_n(state, 2 * dim, 0.0f);
    state[2 * dim] = beta1_;
    state[2 * dim + 1] = beta2_;
  }
  void update(const RowUpdate& row) const override {
    const int dim = row.dim;
    float *first = row.state, *second = row.state + dim, *powers = row.state + 2 * dim;
    const float low = this->low(), high = this->high();
    const float beta1 = beta1_, beta2 = beta2_, epsilon = epsilon_;
    const float rate = row.learning_rate * std::sqrt(1 - powers[1]) / (1 - powers[0]);
    for (int i = 0; i < dim; ++i) {
      const float gradient = row.gradient[i];
      first[i] = beta1 * first[i] + (1 - beta1) * gradient;
      second[i] = beta2 * second[i] + (1 - beta2) * gradient * gradient;
      row.values[i] =
          bounded(row.values[i] - rate * (first[i] / (std::sqrt(second[i]) + epsilon)), low, high);
    }
    powers[0] *= beta1;
    powers[1] *= beta2;
  }

 private:
  const float beta1_, beta2_, epsilon_;
};

}  // namespace

FLEET_TABLE_RULE(adam) {
  def.help = "Adam; only rows with a gradient change (8 bytes a value and 8 a row)";
  def.learning_rate = 0.001;
  def.schema.number("beta1", 0.9, 0, kMaxDecay, "decay of the mean of gradients")
      .number("beta2", 0.999, 0, kMaxDecay, "decay of the mean of squared gradients")
      .number("epsilon", 1e-8, 1e-30, 1, "added to the root of the mean of squares");
  def.make = [](const TableRule::Common& common, const Settings& settings) {
    return std::make_unique<AdamRule>(common, settings.number("beta1"), settings.number("beta2"),
                                      settings.number("epsilon"));
  };
}

}  // namespace fleet::ps
