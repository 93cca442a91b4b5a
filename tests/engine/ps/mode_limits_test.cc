#include "ps/mode_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/ps/inline_server.h"
#include "tests/engine/ps/tables/some_table.h"
#include "tests/engine/ps/update_job.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

ServedModel model_of(const std::string& optimizer) {
  return served_model(program_of({.optimizer = optimizer}, /*served=*/true));
}

TEST(ModeLimits, TablesThatATrainerCannotHold_AreRefusedInGeo) {
  const ServedModel model = model_of(R"({"name": "sgd"})");
  TableSettings cold = some_settings("'dim': 4");
  cold.storage = "rocksdb";
  const struct {
    TableSettings table;
    std::string key;  // "": works
  } cases[] = {
      {some_settings("'dim': 4"), ""},
      {cold, "tables.ids.storage.kind"},
      {some_settings("'dim': 4, 'entry': {'kind': 'count', 'count': 2}"), "tables.ids.entry.kind"},
      {some_settings("'dim': 4, 'entry': {'kind': 'probability', 'probability': 0.5}"),
       "tables.ids.entry.kind"}};
  for (const auto& [table, key] : cases) {
    const std::vector<TableSettings> tables = {table};
    for (const ServerMode mode : {ServerMode::kSync, ServerMode::kAsync}) {
      EXPECT_NO_THROW(check_mode(mode, model, place(model, 2), tables));
    }
    const auto check = [&] { check_mode(ServerMode::kGeo, model, place(model, 2), tables); };
    if (key.empty()) {
      EXPECT_NO_THROW(check());
    } else {
      EXPECT_THAT(thrown_by(check), IsError(ErrorCode::kUnsupported, key));
    }
  }
}

TEST(ModeLimits, GlobalNormOfSeveralServers_IsRefusedInAsyncOnly) {
  const ServedModel model = model_of(R"({"name": "sgd", "clip": "global_norm"})");
  EXPECT_NO_THROW(check_mode(ServerMode::kAsync, model, place(model, 1), {}));
  for (const ServerMode mode : {ServerMode::kSync, ServerMode::kGeo}) {
    EXPECT_NO_THROW(check_mode(mode, model, place(model, 2), {}));
  }
  EXPECT_THAT(thrown_by([&] { check_mode(ServerMode::kAsync, model, place(model, 2), {}); }),
              IsError(ErrorCode::kUnsupported, "optimizer.clip"));
}

TEST(ModeLimits, Trainer_IsRefusedBeforeItConnects) {
  const Program program =
      program_of({.optimizer = R"({"name": "sgd", "clip": "global_norm"})"}, /*served=*/true);
  InlineServers servers(program, 2, 1);
  servers.settings.mode = ServerMode::kAsync;
  EXPECT_THAT(thrown_by([&] { servers.client(program, 0); }),
              IsError(ErrorCode::kUnsupported, "optimizer.clip"));
  EXPECT_FALSE(servers.all[0]->logic().error());
}

}  // namespace
}  // namespace fleet::ps
