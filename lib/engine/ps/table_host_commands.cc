// Commands of trainer 0 to a server's tables: snapshots and shrinks.
#include <algorithm>
#include <future>

#include "base/counted.h"
#include "base/log.h"
#include "ps/table_host.h"

namespace fleet::ps {

void TableHost::shrink(Served& served) {
  for (const Shrink& due : std::exchange(served.shrinks_due, {})) {
    const ShrinkResult result = served.table->shrink(due.age);
    const int64_t removed = result.by_age + result.by_score + result.by_ttl;
    spdlog::info("step {}: table {}: {} removed ({} by age, {} by score, {} by ttl), {} left",
                 due.step, served.table->settings().name, counted(removed, "row"), result.by_age,
                 result.by_score, result.by_ttl, served.table->counts().rows);
  }
}

// After the end of a cut.
void TableHost::shrink_if_due(RowAnswers* answers) {
  for (const auto& served : tables_) {
    if (served->shrinks_due.empty()) continue;
    shrink(*served);
    answer_pulls(*served, answers);
  }
}

// The shrink that a program asks for.
void TableHost::command_shrink(const Json& command, RowAnswers* answers) {
  FLEET_CHECK(!cutting(), "a shrink during a cut");
  cuts_ = command.at("cuts").get<uint64_t>();
  for (const auto& served : tables_) {
    served->shrinks_due.push_back(
        {.step = command.at("step").get<int64_t>(), .age = command.at("age").get<int64_t>()});
  }
  shrink_if_due(answers);
}

RowAnswers TableHost::command(int trainer, const Message& message) {
  if (result_ && result_->trainer == WriteResult::kNobody) {
    commands_.push_back(message);
    return {};
  }
  const Json command = json_of(message);
  const auto name = command.at("command").get<std::string>();
  RowAnswers answers;
  Json result = Json::object();
  try {
    if (name == "load") {
      load(command.at("folder").get<std::string>());
    } else if (name == "cut") {
      FLEET_CHECK(!cutting(), "a cut during another one");
      auto cut = std::make_shared<Cut>();
      for (const auto& served : tables_) {
        cut->tables.push_back(std::make_unique<TableCut>(*served->table));
      }
      cut_ = std::move(cut);
      cuts_ = command.at("cuts").get<uint64_t>();
      result["version"] = empty() ? 0 : tables_[0]->table->version();  // cuts are of all tables
    } else if (name == "drop") {
      cut_.reset();
      if (!cutting()) shrink_if_due(&answers);
    } else if (name == "shrink") {
      command_shrink(command, &answers);
    } else if (name == "write") {
      begin_write(trainer, command);
      return poll();
    } else {
      FLEET_CHECK(false, "an unknown command '" + name + "'");
    }
    answers.push_back({trainer, json_message(MessageType::kResult, result)});
  } catch (const Error& error) {
    answers.push_back({trainer, json_message(MessageType::kResult, json_of(error))});
    if (!cutting()) shrink_if_due(&answers);
  }
  for (const auto& served : tables_) answer_pulls(*served, &answers);
  return answers;
}

void TableHost::load(const std::string& folder) {
  const Snapshot snapshot(folder);
  for (const auto& served : tables_) {
    load_table(snapshot, *served->table);
    spdlog::info("table {}: {} from {}", served->table->settings().name,
                 counted(served->table->counts().rows, "row"), folder);
  }
}

void TableHost::begin_write(int trainer, const Json& command) {
  FLEET_CHECK(cut_ && !result_, "a write without a cut");
  const auto folder = command.at("folder").get<std::string>();
  std::vector<int64_t> since;
  for (const auto& served : tables_) {
    const Json* versions = command.find("since");
    since.push_back(versions ? versions->at(served->table->settings().name).get<int64_t>() : 0);
  }
  auto pending = std::make_shared<WriteResult>();
  pending->trainer = trainer;
  // The cut ends with the thread, or if the system refuses it.
  writer_ = Thread("table-save", [cut = std::exchange(cut_, nullptr), result = pending, folder,
                                  since = std::move(since)]() mutable {
    Json parts = Json::array();
    try {
      for (size_t t = 0; t < since.size(); ++t) {
        parts.push_back(cut->tables[t]->write(folder, since[t]));
      }
      cut.reset();
      result->promise.set_value({{"parts", std::move(parts)}});
    } catch (const Error& error) {
      cut.reset();
      result->promise.set_value(json_of(error));
    } catch (const std::exception& error) {
      cut.reset();
      result->promise.set_value(json_of(Error(ErrorCode::kIo, error.what(), folder)));
    }
  });
  result_ = std::move(pending);
}

RowAnswers TableHost::poll() {
  if (!result_ || result_->json.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return {};
  }
  writer_.join();
  writer_ = Thread();
  const std::shared_ptr<WriteResult> ended = std::exchange(result_, nullptr);
  RowAnswers answers;
  if (ended->trainer != WriteResult::kNobody) {
    answers.push_back({ended->trainer, json_message(MessageType::kResult, ended->json.get())});
  }
  shrink_if_due(&answers);
  for (const Message& message : std::exchange(commands_, {})) {
    std::ranges::move(command(0, message), std::back_inserter(answers));
  }
  return answers;
}

}  // namespace fleet::ps
