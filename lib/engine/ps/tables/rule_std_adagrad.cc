// std_adagrad, with one sum for each value: g' = g / shows;
// w -= learning_rate * g' * sqrt(g0 / (g0 + G)); G += g'^2
#include <algorithm>
#include <cmath>

#include "ps/tables/table_rule.h"

namespace fleet::ps {
namespace {

class StdAdagradRule : public TableRule {
 public:
  StdAdagradRule(const Common& common, double initial_sum)
      : TableRule(common), initial_sum_(static_cast<float>(initial_sum)) {}
  int states(int dim) const override { return dim; }
  void begin(float* state, int dim) const override { std::fill_n(state, dim, 0.0f); }
  void update(const RowUpdate& row) const override {
    const float low = this->low(), high = this->high(), initial = initial_sum_;
    for (int i = 0; i < row.dim; ++i) {
      const float gradient = row.gradient[i] / row.shows;
      const float factor = std::sqrt(initial / (initial + row.state[i]));
      row.values[i] = bounded(row.values[i] - row.learning_rate * gradient * factor, low, high);
      row.state[i] += gradient * gradient;
    }
  }

 private:
  const float initial_sum_;
};

}  // namespace

FLEET_TABLE_RULE(std_adagrad) {
  def.help = "Adagrad with a sum of squares for each value (4 bytes a value)";
  def.schema.number("initial_sum", 3, 1e-12, 1e12, "g0, added to the sums of squares");
  def.make = [](const TableRule::Common& common, const Settings& settings) {
    return std::make_unique<StdAdagradRule>(common, settings.number("initial_sum"));
  };
}

}  // namespace fleet::ps
