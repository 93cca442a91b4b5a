#include "train/id_range.h"

#include <gmock/gmock.h>

#include "tests/errors.h"
#include "train/job_task.h"
#include "train/session.h"

namespace fleet {
namespace {

// Builds the Program of a job with this many ids and rows.
void build_clicks(int64_t data_ids, int64_t model_ids) {
  const std::string text = R"({"task": "click",
      "model": {"name": "wide_deep", "dense": false, "ids": )" +
                           std::to_string(model_ids) + R"(},
      "data": {"source": "synthetic_clicks", "batch_size": 4, "slot_count": 2, "slot_ids": 10,
               "ids": )" + std::to_string(data_ids) +
                           "}}";
  const Job job = make_job(ConfigTree::from_json(text, "job.json"));
  build_program(job, {.columns = expected_columns(job)});
}

TEST(IdRange, TableWithFewerRowsThanIds_IsRefused) {
  EXPECT_NO_THROW(build_clicks(100, 100));
  EXPECT_NO_THROW(build_clicks(100, 101));
  const Error error = thrown_by([] { build_clicks(100, 99); });
  EXPECT_THAT(error, IsUsageError("data.ids"));
  EXPECT_EQ(exit_code_for(error.code()), 2);
}

TEST(IdRange, HashesOf63Bits_NeedServers) {
  EXPECT_THAT(thrown_by([] { build_clicks(0, 1000); }), IsUsageError("data.ids"));
}

}  // namespace
}  // namespace fleet
