// adagrad, with one sum for each row: g' = g / shows; w -= learning_rate * g' * sqrt(g0 / (g0 +
// G)); G += mean(g'^2)
#include <cmath>

#include "ps/tables/table_rule.h"

namespace fleet::ps {
namespace {

class AdagradRule : public TableRule {
 public:
  AdagradRule(const Common& common, double initial_sum)
      : TableRule(common), initial_sum_(static_cast<float>(initial_sum)) {}
  int states(int /*dim*/) const override { return 1; }
  void begin(float* state, int /*dim*/) const override { state[0] = 0; }
  void update(const RowUpdate& row) const override {
    const float low = this->low(), high = this->high();
    const float factor = std::sqrt(initial_sum_ / (initial_sum_ + row.state[0]));
    float sum = 0;
    for (int i = 0; i < row.dim; ++i) {
      const float gradient = row.gradient[i] / row.shows;
      row.values[i] = bounded(row.values[i] - row.learning_rate * gradient * factor, low, high);
      sum += gradient * gradient;
    }
    row.state[0] += sum / static_cast<float>(row.dim);
  }

 private:
  const float initial_sum_;
};

}  // namespace

FLEET_TABLE_RULE(adagrad) {
  def.help = "Adagrad with one sum of squares for each row (4 bytes)";
  def.schema.number("initial_sum", 3, 1e-12, 1e12, "g0, added to the sum of squares");
  def.make = [](const TableRule::Common& common, const Settings& settings) {
    return std::make_unique<AdagradRule>(common, settings.number("initial_sum"));
  };
}

}  // namespace fleet::ps
