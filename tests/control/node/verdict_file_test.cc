#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "node/job_record.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using OrderedJson = nlohmann::ordered_json;

Verdict sample() {
  Verdict verdict;
  verdict.set_kind(Verdict::RANK_FAILED);
  verdict.set_generation(1);
  verdict.set_node_rank(1);
  verdict.set_node("10.0.0.2");
  verdict.set_hostname("gpu07");
  verdict.set_message("rank 3 was killed");
  verdict.mutable_exit()->set_rank(3);
  verdict.mutable_exit()->set_local_rank(1);
  verdict.mutable_exit()->set_node_rank(1);
  verdict.mutable_exit()->set_signal(SIGKILL);
  verdict.mutable_exit()->set_oom(true);
  verdict.mutable_exit()->set_ran_for_ms(12'345);
  verdict.mutable_exit()->set_log_path("log/workerlog.1");
  verdict.mutable_exit()->set_cause("ValueError: no");
  verdict.mutable_exit()->set_tail("step 6\r\033]0;title\007step 7\n  loss \xff");
  return verdict;
}

OrderedJson json_of(const Verdict& verdict) {
  JobRecord record;
  record.set_job_id("night");
  record.set_started(0.5);
  return OrderedJson::parse(verdict_json(job_verdict(verdict, nullptr, 0), record).dump_lossy());
}

TEST(VerdictJson, FailedRank_HasEverything) {
  World world;
  for (int i = 0; i < 2; ++i) world.add_nodes();
  world.set_world_size(4);
  JobRecord record;
  record.set_job_id("night");
  record.set_started(0.5);
  record.set_run("0a1b");
  *record.mutable_verdict() = job_verdict(sample(), &world, 1.5);
  const OrderedJson json = OrderedJson::parse(verdict_file_text(record));
  EXPECT_EQ(json["verdict"], "rank failed");
  EXPECT_EQ(json["exit_code"], 137);
  EXPECT_EQ(json["job_id"], "night");
  EXPECT_EQ(json["run"], "0a1b");
  EXPECT_EQ(json["world_size"], 4);
  EXPECT_EQ(json["started"], 0.5);
  EXPECT_EQ(json["time"], 1.5);
  EXPECT_EQ(json["node"]["hostname"], "gpu07");
  EXPECT_EQ(json["rank"]["rank"], 3);
  EXPECT_EQ(json["rank"]["signal"], "SIGKILL");
  EXPECT_TRUE(json["rank"]["code"].is_null());
  EXPECT_EQ(json["rank"]["out_of_memory"], true);
  EXPECT_EQ(json["rank"]["ran_for"], 12.345);
  EXPECT_EQ(json["rank"]["log"], "log/workerlog.1");
  EXPECT_EQ(json["rank"]["cause"], "ValueError: no");
  EXPECT_EQ(json["rank"]["last_lines"][0], "step 7");
  EXPECT_EQ(json["rank"]["last_lines"][1], "  loss \uFFFD");
}

TEST(VerdictJson, RecordedError_IsTheRanksError) {
  Verdict verdict = sample();
  EXPECT_TRUE(json_of(verdict)["rank"]["error"].is_null());
  RecordedError& recorded = *verdict.mutable_exit()->mutable_error();
  recorded.set_message("KeyError: 'a'");
  recorded.set_callstack("Traceback:\n");
  recorded.set_unix_time(1763800000);
  const OrderedJson error = json_of(verdict)["rank"]["error"];
  EXPECT_EQ(error["message"], "KeyError: 'a'");
  EXPECT_EQ(error["extraInfo"]["py_callstack"], "Traceback:\n");
  EXPECT_EQ(error["timestamp"], 1763800000);
}

TEST(VerdictJson, Success_HasNoRank) {
  Verdict verdict;
  verdict.set_message("all 4 ranks have succeeded");
  const OrderedJson json = json_of(verdict);
  EXPECT_EQ(json["verdict"], "success");
  EXPECT_EQ(json["exit_code"], 0);
  EXPECT_FALSE(json.contains("rank"));
  EXPECT_FALSE(json.contains("node"));
}

TEST(VerdictJson, ReplacedTrainers_HaveWhatIsKnownOfThem) {
  Verdict verdict;
  wire::Replacement& one = *verdict.add_replacements();
  *one.mutable_exit() = sample().exit();
  one.set_generation(1);
  one.set_ordinal(2);
  one.set_message("rank 3 was killed");
  one.set_before_ms(1'500);
  one.set_repeated_samples(64);
  one.set_lost_samples(0);
  *verdict.add_replacements()->mutable_exit() = RankExit();
  JobRecord record;
  record.set_job_id("night");
  const OrderedJson all =
      OrderedJson::parse(verdict_json(job_verdict(verdict, nullptr, 10), record).dump_lossy());
  const OrderedJson& first = all["replacements"][0];
  EXPECT_EQ(first["rank"], 3);
  EXPECT_EQ(first["node_rank"], 1);
  EXPECT_EQ(first["generation"], 1);
  EXPECT_EQ(first["replacement"], 2);
  EXPECT_EQ(first["time"], 8.5);
  EXPECT_EQ(first["signal"], "SIGKILL");
  EXPECT_TRUE(first["code"].is_null());
  EXPECT_EQ(first["cause"], "ValueError: no");
  EXPECT_EQ(first["message"], "rank 3 was killed");
  EXPECT_EQ(first["repeated_samples"], 64);
  EXPECT_EQ(first["lost_samples"], 0);
  EXPECT_TRUE(all["replacements"][1]["repeated_samples"].is_null());
  EXPECT_TRUE(json_of(sample())["replacements"].empty());
}

TEST(VerdictJson, Stopped_NamesTheSignal) {
  Verdict verdict = sample();
  verdict.set_kind(Verdict::STOPPED);
  verdict.set_signal(SIGINT);
  const OrderedJson json = json_of(verdict);
  EXPECT_EQ(json["signal"], "SIGINT");
  EXPECT_EQ(json["exit_code"], 130);
}

// A file server that does not answer would hold the launcher.
TEST(VerdictFile, FolderThatHangs_IsLeftOut) {
  std::string folder = ::testing::TempDir() + "fleet_verdict.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  JobRecord record;
  record.set_job_id("verdict-file-test");
  record.set_pid(::getpid());
  record.set_log_dir(folder);
  *record.mutable_verdict() = job_verdict(sample(), nullptr, 1.5);
  bool hangs = true;
  const std::string elsewhere = write_verdict_file(record, false, &hangs);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_TRUE(std::filesystem::remove(elsewhere)) << elsewhere;
  hangs = false;
  EXPECT_EQ(write_verdict_file(record, false, &hangs), folder + "/verdict.json");
  EXPECT_FALSE(hangs);
  std::filesystem::remove_all(folder);
}

TEST(NodeLabel, NamesTheHostWhereItHelps) {
  EXPECT_EQ(node_label("10.0.0.2", "gpu07"), "10.0.0.2, host gpu07");
  EXPECT_EQ(node_label("gpu07", "gpu07"), "gpu07");
  EXPECT_EQ(node_label("gpu07.cluster", "gpu07"), "gpu07.cluster");
  EXPECT_EQ(node_label("127.0.0.1", "gpu07"), "127.0.0.1");
  EXPECT_EQ(node_label("10.0.0.2", ""), "10.0.0.2");
}

}  // namespace
}  // namespace fleet
