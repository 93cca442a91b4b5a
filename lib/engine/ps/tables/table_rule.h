// Update rules of sparse tables. Each registers itself in one file, without an edit elsewhere:
//   FLEET_TABLE_RULE(naive) { def.help = ...; def.schema...; def.make = ...; }
// They are the rules of Paddle's accessors (paddle/fluid/distributed/ps/table/sparse_sgd_rule.cc).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/config.h"
#include "base/registry.h"

namespace fleet::ps {

// One row and its gradient, which is the sum over the occurrences of its id in a push. shows: 1 for
// gradients of a mean over samples (TablePush::means).
struct RowUpdate {
  float* values;          // [dim]
  float* state;           // [states(dim)]
  const float* gradient;  // [dim]
  int dim;
  float shows;          // occurrences in the push; > 0
  float learning_rate;  // this push's
};

// Any thread, as long as rows differ.
class TableRule {
 public:
  // low, high: updated values stay within them.
  struct Common {
    double learning_rate, low, high;
  };
  explicit TableRule(const Common& common) : common_(common) {}
  virtual ~TableRule() = default;
  virtual int states(int dim) const = 0;  // number of float32
  virtual void begin(float* state, int dim) const = 0;
  virtual void update(const RowUpdate& row) const = 0;
  double learning_rate() const { return common_.learning_rate; }

 protected:
  float low() const { return static_cast<float>(common_.low); }
  float high() const { return static_cast<float>(common_.high); }
  static float bounded(float value, float low, float high) {
    value = value < low ? low : value;  // NaN stays NaN: no bound hides it
    return value > high ? high : value;
  }

 private:
  const Common common_;
};

struct TableRuleDef {
  std::string help;             // one line
  double learning_rate = 0.05;  // default
  Schema schema;                // its keys, without those that all rules have
  // settings: validated by table_rule_schema().
  std::function<std::unique_ptr<TableRule>(const TableRule::Common&, const Settings&)> make;
};

Registry<TableRuleDef>& table_rules();

// The keys of a table's "rule" section: name, learning_rate, follow_schedule, low, high, and the
// rule's. kUsage for an unknown name.
Schema table_rule_schema(const std::string& name);
std::unique_ptr<TableRule> make_table_rule(const Settings& settings);

#define FLEET_TABLE_RULE(name)                                      \
  FLEET_REGISTER(table_rule_##name, ::fleet::ps::TableRuleDef& def, \
                 ::fleet::ps::table_rules().define, #name)

}  // namespace fleet::ps
