#include "ps/table_client.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/counted.h"
#include "ps/saved_tables.h"
#include "ps/tables/snapshot.h"
#include "ps/tables/virtual_shards.h"

namespace fleet::ps {
namespace {

// Trainer 0 writes the manifest, so it must see what the servers wrote.
void check_visible(const std::string& folder, const std::vector<Json>& parts) {
  for (const Json& part : parts) {
    for (const Json& file : part.at("files").elements()) {
      const std::string path = folder + "/" + file.at("file").get<std::string>();
      std::error_code error;
      const auto bytes = std::filesystem::file_size(path, error);
      if (!error && bytes == file.at("bytes").get<uint64_t>()) continue;
      throw Error(ErrorCode::kIo, "a server wrote it, trainer 0 does not see it", path,
                  "set train.output to a folder that all nodes share");
    }
  }
}

}  // namespace

TableClient::TableClient(std::vector<ServedTable> tables,
                         const std::vector<TableSettings>& settings, TableClientOptions options)
    : TrainerTables(std::move(tables), settings),
      tables_(batches().size()),
      options_(std::move(options)),
      deltas_(options_.deltas) {
  for (Table& table : tables_) table.parts.resize(static_cast<size_t>(options_.servers));
}

void TableClient::divide(size_t table) {
  std::vector<Part>& parts = tables_[table].parts;
  for (Part& part : parts) {
    part.numbers.clear();
    part.ids.clear();
  }
  const std::vector<uint64_t>& ids = batches()[table].ids();
  for (size_t number = 0; number < ids.size(); ++number) {
    Part& part = parts[static_cast<size_t>(server_of(ids[number], options_.servers))];
    part.numbers.push_back(static_cast<uint32_t>(number));
    part.ids.push_back(ids[number]);
  }
}

void TableClient::send_pulls(size_t table, int64_t step, bool evaluation) {
  for (int s = 0; s < options_.servers; ++s) {
    const Part& part = tables_[table].parts[static_cast<size_t>(s)];
    Message pull{
        .header = {.type = MessageType::kPull,
                   .table = static_cast<uint16_t>(table + 1),
                   .count = static_cast<uint32_t>(part.ids.size()),
                   .version = step},
        .parts = {bytes_of_head(RowsPullHead{.cuts = cuts_, .lookup = evaluation ? 1u : 0u}),
                  bytes_of_values(part.ids)}};
    if (!evaluation) {
      std::vector<uint32_t> occurrences;
      occurrences.reserve(part.numbers.size());
      for (const uint32_t n : part.numbers) {
        occurrences.push_back(batches()[table].occurrences()[n]);
      }
      pull.parts.push_back(bytes_of_values(std::move(occurrences)));
    }
    options_.send(s, std::move(pull));
  }
}

void TableClient::take_rows(size_t number, bool evaluation) {
  Table& table = tables_[number];
  BatchRows& batch = batches()[number];
  const size_t dim = batch.dim();
  for (int s = 0; s < options_.servers; ++s) {
    const Part& part = table.parts[static_cast<size_t>(s)];
    const Message message = options_.wait(s, MessageType::kValues);
    const auto head = head_of<RowsHead>(message);
    const std::span<const float> rows =
        values_at<float>(message.payload(), sizeof head, part.ids.size() * dim);
    for (size_t i = 0; i < part.numbers.size(); ++i) {
      std::memcpy(batch.row(part.numbers[i]), &rows[i * dim], dim * sizeof(float));
    }
    if (!evaluation) continue;
    table.missing += {.initial = static_cast<int64_t>(head.initial),
                      .not_admitted = static_cast<int64_t>(head.not_admitted)};
  }
  if (evaluation) table.looked_up += std::ssize(batch.ids());
}

void TableClient::feed_rows(Executor& executor, const ParameterExchange::Columns& columns,
                            int64_t step, bool evaluation) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    batches()[t].set(executor, columns, evaluation);
    divide(t);
    send_pulls(t, step, evaluation);
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    take_rows(t, evaluation);
    batches()[t].feed(executor);
  }
}

RowPart TableClient::rows_of(size_t table, const Part& part) const {
  const size_t dim = batches()[table].dim();
  const RowsView all = batches()[table].collected();
  RowPart rows{.ids = part.ids};
  rows.values.resize(part.ids.size() * dim);
  rows.shows.reserve(part.ids.size());
  rows.clicks.reserve(part.ids.size());
  for (size_t i = 0; i < part.numbers.size(); ++i) {
    const uint32_t number = part.numbers[i];
    rows.shows.push_back(all.shows[number]);
    rows.clicks.push_back(all.clicks[number]);
    std::memcpy(&rows.values[i * dim], &all.values[number * dim], dim * sizeof(float));
  }
  return rows;
}

void TableClient::add_merged(size_t table, RowPush* push) const {
  const auto dim = static_cast<ptrdiff_t>(batches()[table].dim());
  const RowsView merged = batches()[table].collected();
  for (size_t i = 0; i < merged.ids.size(); ++i) {
    const auto server = static_cast<size_t>(server_of(merged.ids[i], options_.servers));
    RowPart& part = (*push)[server][table];
    part.ids.push_back(merged.ids[i]);
    part.shows.push_back(merged.shows[i]);
    part.clicks.push_back(merged.clicks[i]);
    const auto first = merged.values.begin() + static_cast<ptrdiff_t>(i) * dim;
    part.values.insert(part.values.end(), first, first + dim);
  }
}

RowPush TableClient::gradients(Executor& executor) {
  collect(executor);
  RowPush push(static_cast<size_t>(options_.servers), std::vector<RowPart>(tables_.size()));
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!batches()[t].sums().empty()) {
      add_merged(t, &push);
      continue;
    }
    for (size_t s = 0; s < push.size(); ++s) push[s][t] = rows_of(t, tables_[t].parts[s]);
  }
  end_update();
  return push;
}

void TableClient::send(RowPush push, uint64_t sequence, int64_t step) const {
  for (size_t t = 0; t < tables_.size(); ++t) {
    for (int s = 0; s < options_.servers; ++s) {
      RowPart& part = push[static_cast<size_t>(s)][t];
      options_.send(s, push_message(std::move(part), static_cast<uint16_t>(t + 1), sequence, step));
    }
  }
}

void TableClient::restore_merged_rows(std::vector<MergedRows> rows) {
  for (MergedRows& one : rows) batches()[find(one.table)].restore(std::move(one));
}

// The results by server; throws the first error of one, after all have answered.
std::vector<Json> TableClient::command(const Json& command) {
  for (int s = 0; s < options_.servers; ++s) {
    options_.send(s, json_message(MessageType::kCommand, command));
  }
  std::vector<Json> results;
  for (int s = 0; s < options_.servers; ++s) {
    results.push_back(json_of(options_.wait(s, MessageType::kResult)));
  }
  for (const Json& result : results) throw_if_failed(result);
  return results;
}

void TableClient::load(const std::string& folder) {
  if (options_.trainer == 0)
    command({{"command", "load"}, {"folder", tables_of_checkpoint(folder)}});
}

// A trainer 0 that was lost while it cut may have reached some servers only. The cuts of the others
// are made up for: a snapshot has the same version on all servers.
void TableClient::cut() {
  cuts_ += 1;
  if (options_.trainer != 0) return;
  const Json cut = {{"command", "cut"}, {"cuts", cuts_}};
  std::vector<int64_t> versions;
  for (const Json& result : command(cut)) versions.push_back(result.at("version").get<int64_t>());
  const int64_t most = *std::ranges::max_element(versions);
  for (int s = 0; s < options_.servers; ++s) {
    for (int64_t& version = versions[static_cast<size_t>(s)]; version < most; ++version) {
      command_to(s, {{"command", "drop"}});
      command_to(s, cut);
    }
  }
}

void TableClient::command_to(int server, const Json& command) const {
  options_.send(server, json_message(MessageType::kCommand, command));
  throw_if_failed(json_of(options_.wait(server, MessageType::kResult)));
}

std::string TableClient::save(const std::string& folder) {
  if (folder.empty()) {
    command({{"command", "drop"}});
    return "";
  }
  const std::string tables = tables_of_checkpoint(folder);
  Json write = {{"command", "write"}, {"folder", tables}};
  const std::optional<DeltaBase> base = deltas_.base_for(folder);
  if (base) write["since"] = base->versions;
  std::vector<Json> parts;
  for (const Json& result : command(write)) {
    for (const Json& part : result.at("parts").elements()) parts.push_back(part);
  }
  check_visible(tables, parts);
  const std::string of_base = base ? tables_of_checkpoint(base->checkpoint) : "";
  finish_snapshot(tables, parts, {.base = of_base});
  deltas_.written(folder, parts);
  return base ? base->checkpoint : "";
}

void TableClient::shrink(int64_t step, int64_t age) {
  cuts_ += 1;
  if (options_.trainer != 0) return;
  command({{"command", "shrink"}, {"cuts", cuts_}, {"step", step}, {"age", age}});
}

std::vector<std::string> TableClient::missing_lines() {
  std::vector<std::string> lines;
  for (size_t t = 0; t < tables_.size(); ++t) {
    Table& table = tables_[t];
    if (table.missing.all() > 0) {
      lines.push_back(text_of(table.missing, batches()[t].served().name,
                              counted(table.looked_up, "lookup") + " of the evaluation"));
    }
    table.missing = {};
    table.looked_up = 0;
  }
  return lines;
}

}  // namespace fleet::ps
