#include "strategy/served_tables.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "ops/embedding.h"

namespace fleet {
namespace {

// The annotation of a lookup whose rows are fed: the column with its ids.
constexpr char kIdsColumn[] = "@ids_column";
constexpr int kIds = 0, kWeight = 1;  // inputs of a lookup

std::string key_of(const std::string& table) { return "tables." + table; }

class TableRewriter {
 public:
  explicit TableRewriter(Program& program) : program_(program) {
    for (const Op& op : program.ops()) {
      for (const VarId id : op.outputs) {
        if (id != kNoVar) writers_[id] = &op;
      }
      for (const VarId id : op.inputs) {
        if (id != kNoVar) ++readers_[id];
      }
    }
  }

  void serve(const TableRequest& table) {
    std::vector<Op*> lookups;
    for (Op& op : program_.ops()) {
      if (op.attributes.has(kTable) && op.attributes.text(kTable) == table.name) {
        lookups.push_back(&op);
      }
    }
    if (lookups.empty()) refuse_unknown(table.name);
    const VarId weight = lookups[0]->inputs[kWeight];
    check(table, weight, lookups);
    const VarId ids = lookups[0]->inputs[kIds];
    const Shape shape = program_.var(ids).shape;
    const std::string column = column_of(table.name, ids);
    const VarId places = program_.feed(table.name + ".places", DType::kInt64, shape);
    for (Op* op : lookups) {
      if (program_.var(op->inputs[kIds]).shape != shape ||
          column_of(table.name, op->inputs[kIds]) != column) {
        refuse(table.name, "training and evaluation look it up by other ids");
      }
      op->inputs[kIds] = places;
      op->attributes.set("sparse", false);
      op->attributes.set(kIdsColumn, column);
    }
    Var& rows = program_.var(weight);
    rows.kind = VarKind::kFeed;
    rows.shape = {shape.elements(), rows.shape[1]};
    rows.init = {};
  }

 private:
  [[noreturn]] static void refuse(const std::string& table, const std::string& what) {
    throw Error(ErrorCode::kUnsupported, "parameter servers cannot hold this table: " + what,
                key_of(table), "remove it from the section tables");
  }

  [[noreturn]] void refuse_unknown(const std::string& table) const {
    std::vector<std::string> names;
    for (const Op& op : program_.ops()) {
      if (!op.attributes.has(kTable)) continue;
      const std::string& name = op.attributes.text(kTable);
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    if (names.empty()) {
      throw Error(ErrorCode::kUsage, "the model looks up no tables", key_of(table),
                  "remove the section tables");
    }
    throw Error(ErrorCode::kUsage, "the model has no such table; its tables: " + join(names, ", "),
                key_of(table), suggestion(table, names));
  }

  void check(const TableRequest& table, VarId weight, const std::vector<Op*>& lookups) const {
    const Var& var = program_.var(weight);
    const auto same = [&](const Op* op) { return op->inputs[kWeight] == weight; };
    if (!std::ranges::all_of(lookups, same) || readers_.at(weight) != std::ssize(lookups) ||
        var.kind != VarKind::kParameter) {
      refuse(table.name, "'" + var.name + "' is read by other operations, too");
    }
    if (table.dim > 0 && table.dim != var.shape[1]) {
      throw Error(ErrorCode::kUsage,
                  std::to_string(table.dim) + " values in a row, the model's table has " +
                      std::to_string(var.shape[1]),
                  key_of(table.name) + ".dim", "remove it, or change the model");
    }
  }

  // The feed whose values these ids are, in order.
  std::string column_of(const std::string& table, VarId ids) const {
    for (auto writer = writers_.find(ids);
         writer != writers_.end() && writer->second->type() == "reshape";
         writer = writers_.find(ids)) {
      ids = writer->second->inputs[0];
    }
    const Var& var = program_.var(ids);
    if (var.kind != VarKind::kFeed || var.dtype != DType::kInt64) {
      refuse(table, "its ids are not a column of the data with integers of 64 bits");
    }
    return var.name;
  }

  Program& program_;
  std::map<VarId, const Op*> writers_;
  std::map<VarId, int> readers_;
};

}  // namespace

void serve_tables(Program& program, const std::vector<TableRequest>& tables) {
  TableRewriter rewriter(program);
  for (const TableRequest& table : tables) rewriter.serve(table);
  if (!tables.empty()) verify(program);
}

std::vector<ServedTable> served_tables(const Program& program) {
  std::map<std::string, ServedTable> by_name;
  for (const Op& op : program.ops()) {
    if (op.type() != "embedding" || !op.attributes.has(kIdsColumn)) continue;
    const std::string& name = op.attributes.text(kTable);
    // Mixed precision may look up a copy in another type.
    const VarId rows = program.find(name + ".weight"), places = program.find(name + ".places");
    const Shape& shape = program.var(rows).shape;
    by_name[name] = {.name = name,
                     .dim = shape[1],
                     .most = shape[0],
                     .column = op.attributes.text(kIdsColumn),
                     .places = places,
                     .rows = rows,
                     .gradient = program.gradient(rows)};
  }
  std::vector<ServedTable> tables;
  for (auto& [name, table] : by_name) tables.push_back(std::move(table));
  return tables;
}

}  // namespace fleet
