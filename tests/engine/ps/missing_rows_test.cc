// What evaluations and predictions say of ids without a row.
#include "ps/tables/missing_rows.h"

#include <gmock/gmock.h>

#include "ps/saved_tables.h"
#include "tests/engine/ps/click_trainers.h"
#include "tests/engine/ps/tables/some_table.h"

namespace fleet::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Job admitting_job(const std::string& entry) {
  return click_job(R"({"name": "sgd"})",
                   R"({"embedding": {"rule": {"name": "naive"}, "entry": )" + entry + "}}");
}

TEST(MissingRows, Text_TellsThoseThatAreNotAdmittedApart) {
  using testing::AllOf;
  using testing::HasSubstr;
  using testing::Not;
  EXPECT_THAT(text_of({.initial = 2, .not_admitted = 1}, "users", "40 ids"),
              AllOf(HasSubstr("table users: 3 of 40 ids have"), HasSubstr("2 take the initial one"),
                    HasSubstr("1 takes zeros (not admitted by tables.users.entry)")));
  EXPECT_THAT(text_of({.initial = 1}, "users", "1 id"),
              AllOf(HasSubstr("1 of 1 id has"), HasSubstr("1 takes the initial one"),
                    Not(HasSubstr("zeros"))));
  EXPECT_THAT(
      text_of({.not_admitted = 2}, "users", "9 ids"),
      AllOf(HasSubstr("2 of 9 ids have"), HasSubstr("2 take zeros"), Not(HasSubstr("initial"))));
}

// A lookup of a trainer, and the line that it logs after the evaluation.
std::vector<std::string> lines_of_an_evaluation(const Job& job) {
  ClickTrainer trainer(job, 0, 1, 1);
  const std::vector<TableSettings> settings = tables_of(job, trainer.program());
  TableHost host(settings, 0, 1, 1);
  RowAnswers answers;
  TableClient client(served_tables(trainer.program()), settings,
                     {.send =
                          [&](int, const Message& message) {
                            std::ranges::move(host.pull(0, delivered(message)),
                                              std::back_inserter(answers));
                          },
                      .wait =
                          [&](int, MessageType) {
                            const Message first = answers.at(0).message;
                            answers.erase(answers.begin());
                            return delivered(first);
                          }});
  const ClickBatch batch(0, 0);
  client.feed_rows(
      trainer.executor(), [&](const std::string& name) { return batch.column(name); }, 0,
      /*evaluation=*/true);
  std::vector<std::string> lines = client.missing_lines();
  EXPECT_THAT(client.missing_lines(), IsEmpty()) << "said twice";
  return lines;
}

TEST(MissingRows, OfAnEvaluation_AreThoseOfTheTable) {
  using testing::HasSubstr;
  using testing::Not;
  EXPECT_THAT(lines_of_an_evaluation(admitting_job(R"({"kind": "none"})")),
              ElementsAre(testing::AllOf(HasSubstr("the initial one"), Not(HasSubstr("zeros")))));
  EXPECT_THAT(lines_of_an_evaluation(admitting_job(R"({"kind": "count", "count": 3})")),
              ElementsAre(testing::AllOf(HasSubstr("zeros"), Not(HasSubstr("the initial one")))));
  EXPECT_THAT(
      lines_of_an_evaluation(admitting_job(R"({"kind": "probability", "probability": 0.5})")),
      ElementsAre(testing::AllOf(HasSubstr("zeros"), HasSubstr("the initial one"))));
}

TEST(MissingRows, OfACheckpoint_AreThoseThatTrainingDidNotAdmit) {
  const TestFolder folder;
  const Job job = admitting_job(R"({"kind": "count", "count": 2})");
  ClickRun run(job, 1, 2);
  run.begin();
  run.train(0, 1);
  run.save(folder / "step");
  const auto rows = static_cast<size_t>(run.rows(0));
  ASSERT_GT(rows, 0u);
  const auto saved = open_saved_tables(job, run.trainer(0).program(), folder / "step");
  std::vector<uint64_t> ids(kClickIds);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  saved->want(0, ids);
  saved->load();
  EXPECT_THAT(saved->missing_lines(),
              ElementsAre(text_of({.not_admitted = static_cast<int64_t>(ids.size() - rows)},
                                  "embedding", "40 ids")));
}

}  // namespace
}  // namespace fleet::ps
