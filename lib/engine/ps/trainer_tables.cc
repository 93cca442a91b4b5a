#include "ps/trainer_tables.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ps/row_push.h"

namespace fleet::ps {

BatchRows::BatchRows(ServedTable served, const TableSettings& settings)
    : served_(std::move(served)),
      scores_(settings.scores),
      values_(static_cast<size_t>(served_.most) * dim()),
      gradients_(values_.size()),
      sums_(dim()) {
  FLEET_CHECK(served_.name == settings.name && served_.dim == settings.dim,
              "settings of another table than '" + served_.name + "'");
}

void BatchRows::set(Executor& executor, const ParameterExchange::Columns& columns,
                    bool evaluation) {
  ids_.set(columns(served_.column), served_.name);
  if (!evaluation) {
    shows_.assign(occurrences().begin(), occurrences().end());
    clicks_ = clicks_of(ids_, scores_ ? columns(kLabelColumn) : std::span<const std::byte>());
  }
  executor.feed(served_.places, ids_.places());
}

RowsView BatchRows::of_batch() const {
  const size_t size = ids().size() * dim();
  return {ids(), shows_, clicks_, std::span(gradients_).first(size)};
}

void BatchRows::merge(Executor& executor) {
  executor.read(served_.gradient, gradients_);
  sums_.add(of_batch());
}

void BatchRows::collect(Executor& executor) {
  if (!sums_.empty()) return merge(executor);
  executor.read(served_.gradient, gradients_);
}

RowsView BatchRows::collected() const {
  return sums_.empty() ? of_batch() : RowsView(sums_.rows());
}

MergedRows BatchRows::merged() const {
  const RowPart& rows = sums_.rows();
  return {.table = served_.name,
          .ids = rows.ids,
          .shows = rows.shows,
          .clicks = rows.clicks,
          .gradients = rows.values};
}

void BatchRows::restore(MergedRows rows) {
  FLEET_CHECK(rows.table == served_.name,
              "merged rows of another table than '" + served_.name + "'");
  sums_.clear();
  sums_.add({rows.ids, rows.shows, rows.clicks, rows.gradients});
}

// --- All tables -------------------------------------------------------------------------------

TrainerTables::TrainerTables(std::vector<ServedTable> tables,
                             const std::vector<TableSettings>& settings) {
  FLEET_CHECK(tables.size() == settings.size(), "tables without settings");
  for (size_t t = 0; t < tables.size(); ++t) {
    batches_.emplace_back(std::move(tables[t]), settings[t]);
  }
}

void TrainerTables::merge(Executor& executor) {
  for (BatchRows& batch : batches_) batch.merge(executor);
}

void TrainerTables::collect(Executor& executor) {
  if (std::exchange(collected_, true)) return;
  for (BatchRows& batch : batches_) batch.collect(executor);
}

void TrainerTables::end_update() {
  collected_ = false;
  for (BatchRows& batch : batches_) batch.clear_sums();
}

bool TrainerTables::merged_is_finite(const Program& program, const std::string& gradient) const {
  return std::ranges::all_of(batches_, [&](const BatchRows& batch) {
    return program.var(batch.served().gradient).name != gradient || batch.sums().finite();
  });
}

std::vector<MergedRows> TrainerTables::merged_rows() const {
  std::vector<MergedRows> all;
  for (const BatchRows& batch : batches_) all.push_back(batch.merged());
  return all;
}

size_t TrainerTables::find(const std::string& name) const {
  const auto found =
      std::ranges::find(batches_, name, [](const BatchRows& of) { return of.served().name; });
  if (found != batches_.end()) return static_cast<size_t>(found - batches_.begin());
  throw Error(ErrorCode::kUsage, "the checkpoint has gradients of the table '" + name + "'",
              "tables", "put that table on the servers, or set checkpoint.resume to \"no\"");
}

}  // namespace fleet::ps
