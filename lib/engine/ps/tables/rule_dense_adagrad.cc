// dense_adagrad: the optimizer adagrad on each value of a row, with its bits: G += g^2;
// w -= learning_rate * g / (sqrt(G) + epsilon)
#include <algorithm>

#include "optim/adagrad_rule.h"
#include "ps/tables/table_rule.h"

namespace fleet::ps {
namespace {

FLEET_SIMD void descend(const RowUpdate& row, float epsilon, float low, float high) {
  const AdagradConstants constants{
      .scale = 1, .rate = row.learning_rate, .decay = 0, .epsilon = epsilon};
  for (int i = 0; i < row.dim; ++i) {
    float value = row.values[i];
    constants.update(value, row.gradient[i], row.state[i]);
    value = value < low ? low : value;  // NaN stays NaN
    row.values[i] = value > high ? high : value;
  }
}

class DenseAdagradRule : public TableRule {
 public:
  DenseAdagradRule(const Common& common, double epsilon)
      : TableRule(common), epsilon_(static_cast<float>(epsilon)) {}
  int states(int dim) const override { return dim; }
  void begin(float* state, int dim) const override { std::fill_n(state, dim, 0.0f); }
  void update(const RowUpdate& row) const override { descend(row, epsilon_, low(), high()); }

 private:
  const float epsilon_;
};

}  // namespace

FLEET_TABLE_RULE(dense_adagrad) {
  def.help = "the optimizer adagrad, with a sum of squares for each value (4 bytes a value)";
  def.learning_rate = 0.01;
  def.schema.number("epsilon", 1e-10, 0, 1, "added to the root of the sum");
  def.make = [](const TableRule::Common& common, const Settings& settings) {
    return std::make_unique<DenseAdagradRule>(common, settings.number("epsilon"));
  };
}

}  // namespace fleet::ps
