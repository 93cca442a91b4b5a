// naive: w -= learning_rate * g, with the bits of the optimizer sgd
#include "optim/sgd_rule.h"
#include "ps/tables/table_rule.h"

namespace fleet::ps {
namespace {

FLEET_SIMD void descend(const RowUpdate& row, float low, float high) {
  const SgdConstants constants{.scale = 1, .rate = row.learning_rate, .decay = 0};
  for (int i = 0; i < row.dim; ++i) {
    float value = row.values[i];
    constants.update(value, row.gradient[i]);
    value = value < low ? low : value;  // NaN stays NaN
    row.values[i] = value > high ? high : value;
  }
}

class NaiveRule : public TableRule {
 public:
  using TableRule::TableRule;
  int states(int /*dim*/) const override { return 0; }
  void begin(float* /*state*/, int /*dim*/) const override {}
  void update(const RowUpdate& row) const override { descend(row, low(), high()); }
};

}  // namespace

FLEET_TABLE_RULE(naive) {
  def.help = "stochastic gradient descent";
  def.make = [](const TableRule::Common& common, const Settings&) {
    return std::make_unique<NaiveRule>(common);
  };
}

}  // namespace fleet::ps
