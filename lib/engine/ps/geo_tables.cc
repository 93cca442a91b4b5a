#include "ps/geo_tables.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "ps/tables/virtual_shards.h"

namespace fleet::ps {
namespace {

constexpr size_t kIndexBytes = 48;  // about, for an id in an unordered_map
constexpr uint32_t kUntouched = UINT32_MAX;

// Values, old values and states of a row.
RowLayout layout_of(const TableSettings& settings, const TableRule& rule) {
  return {.dim = settings.dim, .states = settings.dim + rule.states(settings.dim)};
}

}  // namespace

struct GeoTables::Table {
  explicit Table(const TableSettings& all)
      : settings(all),
        dim(static_cast<size_t>(settings.dim)),
        rule(make_table_rule(settings.rule)),
        arena(layout_of(settings, *rule).chunk_bytes(), /*huge_pages=*/false),
        rows(layout_of(settings, *rule), arena) {}

  float* values_of(uint32_t row) const { return rows.row(row); }
  float* old_of(uint32_t row) const { return rows.row(row) + dim; }
  float* state_of(uint32_t row) const { return rows.row(row) + 2 * dim; }
  size_t bytes() const { return arena.touched() + numbers.size() * kIndexBytes; }

  void add(uint64_t id, const float* from) {
    const uint32_t row = rows.add();
    numbers.emplace(id, row);
    std::copy_n(from, dim, values_of(row));
    std::copy_n(from, dim, old_of(row));
    rule->begin(state_of(row), static_cast<int>(dim));
    touched_at.push_back(kUntouched);
  }
  void touch(uint64_t id, uint32_t row, float shows, float clicks) {
    uint32_t& at = touched_at[row];
    if (at == kUntouched) {
      at = static_cast<uint32_t>(touched.size());
      touched.push_back({id, row, 0, 0});
    }
    touched[at].shows += shows;
    touched[at].clicks += clicks;
  }

  const TableSettings settings;
  const size_t dim;
  const std::unique_ptr<TableRule> rule;
  BlockArena arena;
  RowChunks rows;
  std::unordered_map<uint64_t, uint32_t> numbers;  // row numbers by id
  std::vector<uint32_t> touched_at;                // by row: its position in `touched`
  std::vector<Touched> touched;                    // rows that were updated since the last exchange
  size_t checked = 0;                              // bytes at the last look at the memory
  std::vector<uint32_t> batch_rows;                // the last batch's, by number of the id
  std::vector<std::vector<uint64_t>> requested;    // by server
};

GeoTables::GeoTables(std::vector<ServedTable> tables, const std::vector<TableSettings>& settings,
                     TableClientOptions options, int trainers, MemoryLeft memory)
    : TrainerTables(std::move(tables), settings),
      options_(std::move(options)),
      trainers_(static_cast<float>(trainers)),
      memory_(std::move(memory)) {
  for (const TableSettings& one : settings) {
    tables_.push_back(std::make_unique<Table>(one));
    tables_.back()->requested.resize(static_cast<size_t>(options_.servers));
  }
}

GeoTables::~GeoTables() = default;

void GeoTables::clear() {
  for (const auto& table : tables_) {
    table->rows.resize(0);
    table->numbers.clear();
    table->touched_at.clear();
    table->touched.clear();
  }
  end_update();
}

void GeoTables::request_new(size_t number, std::span<const uint64_t> ids,
                            std::span<const uint32_t> occurrences) {
  Table& table = *tables_[number];
  for (auto& of_server : table.requested) of_server.clear();
  std::vector<std::vector<uint32_t>> counts(table.requested.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (table.numbers.contains(ids[i])) continue;
    const auto s = static_cast<size_t>(server_of(ids[i], options_.servers));
    table.requested[s].push_back(ids[i]);
    counts[s].push_back(occurrences[i]);
  }
  for (size_t s = 0; s < table.requested.size(); ++s) {
    if (table.requested[s].empty()) continue;
    options_.send(static_cast<int>(s),
                  {.header = {.type = MessageType::kPull,
                              .table = static_cast<uint16_t>(number + 1),
                              .count = static_cast<uint32_t>(table.requested[s].size())},
                   .parts = {bytes_of_head(RowsPullHead()), bytes_of_values(table.requested[s]),
                             bytes_of_values(std::move(counts[s]))}});
  }
}

void GeoTables::receive_new(size_t number) {
  Table& table = *tables_[number];
  for (size_t s = 0; s < table.requested.size(); ++s) {
    const std::vector<uint64_t>& ids = table.requested[s];
    if (ids.empty()) continue;
    const Message message = options_.wait(static_cast<int>(s), MessageType::kValues);
    FLEET_CHECK(message.header.table == number + 1, "rows of another table");
    const std::span<const float> rows =
        values_at<float>(message.payload(), sizeof(RowsHead), ids.size() * table.dim);
    for (size_t i = 0; i < ids.size(); ++i) table.add(ids[i], rows.data() + i * table.dim);
  }
  if (table.bytes() >= table.checked + memory_.step) check_memory(table);
}

// The kernel ends a process that takes more memory than there is, without a word.
void GeoTables::check_memory(Table& table) const {
  table.checked = table.bytes();
  const size_t left = memory_.available();
  if (left == 0 || left >= memory_.step) return;
  throw Error(ErrorCode::kNoMemory,
              "this trainer has used " + std::to_string(table.numbers.size()) +
                  " rows, which take " + mebibytes(table.bytes()) + ", and has " + mebibytes(left) +
                  " of memory left",
              "tables." + table.settings.name,
              "in mode geo, a trainer holds all rows that it has used: use the mode async or sync");
}

void GeoTables::feed_rows(Executor& executor, const ParameterExchange::Columns& columns) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    BatchRows& batch = batches()[t];
    batch.set(executor, columns, /*evaluation=*/false);
    request_new(t, batch.ids(), batch.occurrences());
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    receive_new(t);
    Table& table = *tables_[t];
    BatchRows& batch = batches()[t];
    table.batch_rows.clear();
    for (const uint64_t id : batch.ids()) {
      const uint32_t row = table.numbers.at(id);
      std::copy_n(table.values_of(row), table.dim, batch.row(table.batch_rows.size()));
      table.batch_rows.push_back(row);
    }
    batch.feed(executor);
  }
}

void GeoTables::update(float learning_rate) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    Table& table = *tables_[t];
    const BatchRows& batch = batches()[t];
    const auto rate = static_cast<float>(table.settings.rate_at(learning_rate));
    const bool merged = !batch.sums().empty();
    const RowsView rows = batch.collected();
    for (size_t i = 0; i < rows.ids.size(); ++i) {
      const uint32_t row = merged ? table.numbers.at(rows.ids[i]) : table.batch_rows[i];
      table.rule->update({.values = table.values_of(row),
                          .state = table.state_of(row),
                          .gradient = &rows.values[i * table.dim],
                          .dim = static_cast<int>(table.dim),
                          .shows = 1,  // gradients of a mean over samples
                          .learning_rate = rate});
      table.touch(rows.ids[i], row, rows.shows[i], rows.clicks[i]);
    }
  }
  end_update();
}

void GeoTables::leave_out() { end_update(); }

void GeoTables::restore_merged_rows(std::vector<MergedRows> rows) {
  for (MergedRows& one : rows) {
    const size_t table = find(one.table);
    const std::vector<uint32_t> occurrences(one.shows.begin(), one.shows.end());
    request_new(table, one.ids, occurrences);
    receive_new(table);
    batches()[table].restore(std::move(one));
  }
}

RowPush GeoTables::take_differences() {
  RowPush push(static_cast<size_t>(options_.servers), std::vector<RowPart>(tables_.size()));
  for (size_t t = 0; t < tables_.size(); ++t) {
    Table& table = *tables_[t];
    for (const auto& [id, row, shows, clicks] : table.touched) {
      RowPart& part = push[static_cast<size_t>(server_of(id, options_.servers))][t];
      part.ids.push_back(id);
      part.shows.push_back(shows);
      part.clicks.push_back(clicks);
      const float* const values = table.values_of(row);
      float* const old = table.old_of(row);
      for (size_t j = 0; j < table.dim; ++j) {
        const float difference = (values[j] - old[j]) / trainers_;
        old[j] += difference;
        part.values.push_back(difference);
      }
      table.touched_at[row] = kUntouched;
    }
    table.touched.clear();
  }
  return push;
}

void GeoTables::request_changes(int server) const {
  for (size_t t = 0; t < tables_.size(); ++t) {
    options_.send(server,
                  {.header = {.type = MessageType::kPull, .table = static_cast<uint16_t>(t + 1)},
                   .parts = {bytes_of_head(RowsPullHead{.changes = 1})}});
  }
}

// Rows that only others use are left out: the first batch with such an id pulls it.
void GeoTables::receive_changes() {
  for (int s = 0; s < options_.servers; ++s) {
    for (size_t t = 0; t < tables_.size(); ++t) {
      Table& table = *tables_[t];
      const Message message = options_.wait(s, MessageType::kValues);
      FLEET_CHECK(message.header.table == t + 1, "rows of another table");
      const size_t count = message.header.count;
      const auto ids = values_at<uint64_t>(message.payload(), sizeof(RowsHead), count);
      const auto rows = values_at<float>(
          message.payload(), sizeof(RowsHead) + count * sizeof(uint64_t), count * table.dim);
      for (size_t i = 0; i < count; ++i) {
        const auto found = table.numbers.find(ids[i]);
        if (found == table.numbers.end()) continue;
        float* const values = table.values_of(found->second);
        float* const old = table.old_of(found->second);
        const float* const fresh = rows.data() + i * table.dim;
        for (size_t j = 0; j < table.dim; ++j) {
          values[j] += fresh[j] - old[j];
          old[j] = fresh[j];
        }
      }
    }
  }
}

std::vector<float> GeoTables::row(int table, uint64_t id) const {
  const Table& of = *tables_[static_cast<size_t>(table)];
  const auto found = of.numbers.find(id);
  if (found == of.numbers.end()) return {};
  const float* const values = of.values_of(found->second);
  return {values, values + of.dim};
}

std::vector<float> GeoTables::old(int table, uint64_t id) const {
  const Table& of = *tables_[static_cast<size_t>(table)];
  const auto found = of.numbers.find(id);
  if (found == of.numbers.end()) return {};
  const float* const values = of.old_of(found->second);
  return {values, values + of.dim};
}

}  // namespace fleet::ps
