#include "ps/table_host.h"

#include <algorithm>
#include <cstring>

#include "base/counted.h"
#include "base/hash.h"
#include "base/number_text.h"
#include "base/text.h"
#include "ps/row_sum.h"
#include "ps/tables/table_rule.h"
#include "train/unique_ids.h"

namespace fleet::ps {

namespace {

struct Pull {
  RowsPullHead head;
  std::span<const uint64_t> ids;
  std::span<const uint32_t> occurrences;  // empty for a lookup
};

Pull pull_of(const Message& message) {
  const size_t count = message.header.count;
  Pull pull{.head = head_of<RowsPullHead>(message)};
  const std::span<const std::byte> payload = message.payload();
  pull.ids = values_at<uint64_t>(payload, sizeof pull.head, count);
  if (pull.head.lookup == 0) {
    pull.occurrences =
        values_at<uint32_t>(payload, sizeof pull.head + count * sizeof(uint64_t), count);
  }
  return pull;
}

RowsView pushed_rows(const Message& message, size_t dim) {
  const size_t count = message.header.count;
  const std::span<const std::byte> payload = message.payload();
  const size_t shows = count * sizeof(uint64_t), clicks = shows + count * sizeof(float);
  return {values_at<uint64_t>(payload, 0, count), values_at<float>(payload, shows, count),
          values_at<float>(payload, clicks, count),
          values_at<float>(payload, clicks + count * sizeof(float), count * dim)};
}

Message rows_message(const Message& pull, const RowsHead& head, std::vector<float> rows) {
  return {.header = {.type = MessageType::kValues,
                     .table = pull.header.table,
                     .count = pull.header.count,
                     .version = pull.header.version},
          .parts = {bytes_of_head(head), bytes_of_values(std::move(rows))}};
}

}  // namespace

TableHost::TableHost(std::vector<TableSettings> tables, int server, int servers, int trainers,
                     ServerMode mode)
    : server_(server), trainers_(trainers), mode_(mode) {
  for (TableSettings& settings : tables) {
    auto served = std::make_unique<Served>();
    served->shrink_every = settings.shrink_every;
    served->table =
        std::make_unique<SparseTable>(std::move(settings), shards_of_server(server, servers));
    served->pushes.resize(static_cast<size_t>(trainers));
    if (mode == ServerMode::kGeo) served->recorder.emplace(trainers);
    tables_.push_back(std::move(served));
  }
}

TableHost::~TableHost() = default;

TableHost::Served& TableHost::served(const Message& message) {
  const size_t number = message.header.table;
  FLEET_CHECK(number >= 1 && number <= tables_.size(), "a message about an unknown table");
  return *tables_[number - 1];
}

// A trainer may be ahead of trainer 0, which has not asked for the cut of their last step yet. A
// shrink belongs to the previous step.
bool TableHost::must_wait(const Served& served, const Message& message) const {
  if (apart()) return false;
  const auto head = head_of<RowsPullHead>(message);
  return head.cuts > cuts_ || (head.lookup == 0 && !served.shrinks_due.empty());
}

RowAnswers TableHost::pull(int trainer, Message message) {
  Served& table = served(message);
  if (head_of<RowsPullHead>(message).changes) return {{trainer, changes(table, trainer, message)}};
  table.pulls.push_back({trainer, std::move(message)});
  RowAnswers answers;
  answer_pulls(table, &answers);
  return answers;
}

void TableHost::answer_pulls(Served& served, RowAnswers* answers) {
  const bool by_count = !apart() && served.table->settings().entry == TableSettings::Entry::kCount;
  if (by_count && std::ssize(served.pulls) == trainers_) {
    const auto ready = [&](const Waiting& one) { return !must_wait(served, one.message); };
    const auto trains = [](const Waiting& one) {
      return head_of<RowsPullHead>(one.message).lookup == 0;
    };
    if (std::ranges::all_of(served.pulls, trains) && std::ranges::all_of(served.pulls, ready)) {
      return answer_together(served, answers);
    }
  }
  std::erase_if(served.pulls, [&](const Waiting& one) {
    const bool together = by_count && head_of<RowsPullHead>(one.message).lookup == 0;
    if (together || must_wait(served, one.message)) return false;
    answers->push_back({one.trainer, answer(served, one.message)});
    return true;
  });
}

// All trainers see a row from the step on in which their occurrences together admit it.
void TableHost::answer_together(Served& served, RowAnswers* answers) {
  std::ranges::sort(served.pulls, {}, &Waiting::trainer);
  size_t count = 0;
  for (const Waiting& one : served.pulls) count += one.message.header.count;
  UniqueIds unique;
  unique.clear(count);
  std::vector<uint32_t> occurrences, places;
  for (const Waiting& one : served.pulls) {
    const Pull pull = pull_of(one.message);
    for (size_t i = 0; i < pull.ids.size(); ++i) {
      const uint32_t place = unique.add(pull.ids[i]);
      if (place == occurrences.size()) occurrences.push_back(0);
      occurrences[place] += pull.occurrences[i];
      places.push_back(place);
    }
  }
  const auto dim = static_cast<size_t>(served.table->layout().dim);
  std::vector<float> rows(unique.ids().size() * dim);
  served.table->pull(unique.ids(), rows, occurrences);
  size_t at = 0;
  for (const Waiting& one : served.pulls) {
    std::vector<float> own(one.message.header.count * dim);
    for (size_t i = 0; i < one.message.header.count; ++i) {
      std::copy_n(&rows[places[at++] * dim], dim, &own[i * dim]);
    }
    answers->push_back({one.trainer, rows_message(one.message, {}, std::move(own))});
  }
  served.pulls.clear();
}

Message TableHost::answer(const Served& served, const Message& message) {
  const Pull pull = pull_of(message);
  std::vector<float> rows(pull.ids.size() * static_cast<size_t>(served.table->layout().dim));
  if (pull.head.lookup == 0) {
    served.table->pull(pull.ids, rows, pull.occurrences);
    return rows_message(message, {}, std::move(rows));
  }
  const MissingRows missing = served.table->lookup(pull.ids, rows);
  return rows_message(message,
                      {.initial = static_cast<uint64_t>(missing.initial),
                       .not_admitted = static_cast<uint64_t>(missing.not_admitted)},
                      std::move(rows));
}

Message TableHost::changes(Served& served, int trainer, const Message& pull) {
  FLEET_CHECK(served.recorder, "a pull of changes in another mode than geo");
  std::vector<uint64_t> ids = served.recorder->take(trainer);
  std::vector<float> rows(ids.size() * static_cast<size_t>(served.table->layout().dim));
  served.table->lookup(ids, rows);
  return {.header = {.type = MessageType::kValues,
                     .table = pull.header.table,
                     .count = static_cast<uint32_t>(ids.size()),
                     .version = pull.header.version},
          .parts = {bytes_of_head(RowsHead()), bytes_of_values(std::move(ids)),
                    bytes_of_values(std::move(rows))}};
}

void TableHost::push(int trainer, Message message) {
  Served& table = served(message);
  table.pushes[static_cast<size_t>(trainer)] = std::move(message);
}

// An update may end several steps (gradient_merge).
void TableHost::update(const TableUpdate& update) {
  for (const auto& served : tables_) {
    if (!update.left_out) apply(*served, update.learning_rate);
    for (std::optional<Message>& push : served->pushes) push.reset();
    const int64_t every = served->shrink_every;
    if (every == 0 || update.to / every == update.from / every) continue;
    served->shrinks_due.push_back({.step = update.to});
    if (!cutting()) shrink(*served);
  }
}

void TableHost::apply_push(int trainer, bool left_out, float learning_rate) {
  for (const auto& served : tables_) {
    const auto message = std::exchange(served->pushes[static_cast<size_t>(trainer)], std::nullopt);
    FLEET_CHECK(message, "a push without the rows of its tables");
    if (left_out) continue;
    const RowsView push = pushed_rows(*message, static_cast<size_t>(served->table->layout().dim));
    served->table->push(push.ids, push.values,
                        {.shows = push.shows,
                         .clicks = push.clicks,
                         .learning_rate = served->table->settings().rate_at(learning_rate),
                         .means = true,
                         .differences = mode_ == ServerMode::kGeo});
    if (served->recorder) served->recorder->pushed(push.ids);
  }
}

void TableHost::advance(int64_t before, int64_t after) {
  for (const auto& served : tables_) {
    const int64_t every = served->shrink_every;
    if (every == 0) continue;
    for (int64_t step = (before / every + 1) * every; step <= after; step += every) {
      served->shrinks_due.push_back({.step = step});
    }
    if (!cutting()) shrink(*served);
  }
}

void TableHost::leave(int trainer) {
  for (const auto& served : tables_) {
    if (served->recorder) served->recorder->leave(trainer);
  }
}

void TableHost::replace(int trainer) {
  for (const auto& served : tables_) {
    served->pushes[static_cast<size_t>(trainer)].reset();
    std::erase_if(served->pulls, [&](const Waiting& one) { return one.trainer == trainer; });
    if (served->recorder) served->recorder->begin(trainer);
  }
  if (trainer != 0) return;
  commands_.clear();
  cut_.reset();
  if (result_) result_->trainer = WriteResult::kNobody;
  RowAnswers none;  // no trainer waits in async and geo
  if (!cutting()) shrink_if_due(&none);
}

void TableHost::apply(Served& served, float learning_rate) {
  const auto dim = static_cast<size_t>(served.table->layout().dim);
  size_t count = 0;
  for (const std::optional<Message>& push : served.pushes) {
    FLEET_CHECK(push, "a step without the rows of a trainer");
    count += push->header.count;
  }
  RowSum sum(dim);
  sum.expect(count);
  for (const std::optional<Message>& push : served.pushes) sum.add(pushed_rows(*push, dim));
  sum.add_zeros(trainers_);
  const RowPart& rows = sum.rows();
  served.table->push(rows.ids, rows.values,
                     {.shows = rows.shows,
                      .clicks = rows.clicks,
                      .learning_rate = served.table->settings().rate_at(learning_rate),
                      .means = true});
}

std::vector<int> TableHost::waiting() const {
  std::vector<int> trainers;
  for (const auto& served : tables_) {
    for (const Waiting& one : served->pulls) trainers.push_back(one.trainer);
  }
  return trainers;
}

std::vector<std::string> TableHost::lines() const {
  std::vector<std::string> lines;
  for (const auto& served : tables_) {
    const TableCounts counts = served->table->counts();
    std::string line = "table " + served->table->settings().name + ": " +
                       counted(counts.rows, "row") + ", " +
                       mebibytes(static_cast<size_t>(counts.bytes));
    if (counts.waiting > 0) {
      line += ", " + counted(counts.waiting, "id") + " without a row yet";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

uint64_t hash_of(const std::vector<TableSettings>& tables) {
  uint64_t hash = 0;  // no tables
  for (const TableSettings& table : tables) {
    std::string text = table.name + " " + std::to_string(table.dim) + " " +
                       std::to_string(table.seed) + " " + std::to_string(table.shrink_every) + " " +
                       std::to_string(static_cast<int>(table.initializer.kind)) + " " +
                       std::to_string(static_cast<int>(table.entry)) + " " +
                       std::to_string(table.entry_count) + " " + std::to_string(table.max_age) +
                       " " + std::to_string(table.scores) + " " + std::to_string(table.ttl) +
                       format_printf(" %a", table.base_rate);
    for (const double number :
         {table.initializer.low, table.initializer.high, table.initializer.mean,
          table.initializer.deviation, table.initializer.value, table.entry_probability,
          table.min_score, table.decay, table.click_weight, table.show_weight}) {
      text += format_printf(" %a", number);
    }
    const Schema rule = table_rule_schema(table.rule.text("name"));
    for (const ConfigKey& key : rule.keys()) {
      text += " " + key.path + "=" + table.rule.json(key.path);
    }
    hash = hash_text(text, hash);
  }
  return hash;
}

}  // namespace fleet::ps
