// Checkpoints of jobs that are killed or stopped, and resuming from them.
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/small_file.h"
#include "tests/test_paths.h"
#include "tests/training/training_job.h"
#include "text/token_file.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> kLong = {"train.epochs=30", "checkpoint.every_steps=10",
                                        "train.evaluate_every=0"};

std::vector<std::string> long_job(const std::string& output, const std::string& more = "") {
  std::vector<std::string> overrides = kLong;
  overrides.push_back("train.output=" + output);
  if (!more.empty()) overrides.push_back(more);
  return overrides;
}

// Whether the process has a handler of its own for the signal.
bool handles(pid_t pid, int signal) {
  const std::string status = small_file("/proc/" + std::to_string(pid) + "/status");
  const size_t caught = status.find("SigCgt:");
  return caught != std::string::npos &&
         (std::stoull(status.substr(caught + 7), nullptr, 16) >> (signal - 1) & 1);
}

// Waits for the first checkpoint.
void wait_for_checkpoint(const TrainingJob& job, const std::string& output) {
  job.folder().wait_for(output + "/checkpoints/step_00000010/state.json");
}

TEST(KillAndResume, RankKilled_IsNamedAndResumedRunIsBitIdentical) {
  TrainingJob job;
  auto whole = job.start("whole", {"--nproc_per_node=2"}, long_job("whole", "train.max_steps=200"));
  ASSERT_EQ(whole->wait(), 0) << whole->output();

  auto cut = job.start("cut", {"--nproc_per_node=2"}, long_job("cut"));
  wait_for_checkpoint(job, "cut");
  const auto workers = job.folder().processes("fleet-worker");
  ASSERT_EQ(workers.size(), 2u);
  kill(workers[1], SIGKILL);
  EXPECT_EQ(cut->wait(), 128 + SIGKILL) << cut->output();
  EXPECT_THAT(job.folder().survivors(5), IsEmpty());

  auto resumed =
      job.start("resumed", {"--nproc_per_node=2"},
                {"train.epochs=30", "checkpoint.every_steps=10", "train.evaluate_every=0",
                 "train.output=cut", "checkpoint.resume=auto", "train.max_steps=200"});
  ASSERT_EQ(resumed->wait(), 0) << resumed->output();
  EXPECT_THAT(resumed->output(), HasSubstr("resumed from cut/checkpoints/step_"));
  EXPECT_EQ(distance(job.weights("whole"), job.weights("cut")), 0);
}

TEST(KillAndResume, RankKilled_RestartedJobIsBitIdentical) {
  TrainingJob job;
  auto whole = job.start("whole", {"--nproc_per_node=2"}, long_job("whole", "train.max_steps=200"));
  ASSERT_EQ(whole->wait(), 0) << whole->output();
  // The checkpoints in the folder are of another run, so training does not resume from them.
  auto before = job.start("before", {"--nproc_per_node=2"}, long_job("cut", "train.max_steps=30"));
  ASSERT_EQ(before->wait(), 0) << before->output();

  auto cut = job.start("cut", {"--nproc_per_node=2", "--max_restart=1"},
                       long_job("cut", "train.max_steps=200"));
  job.folder().wait_for("cut/checkpoints.1");
  wait_for_checkpoint(job, "cut");
  const auto workers = job.folder().processes("fleet-worker");
  ASSERT_EQ(workers.size(), 2u);
  kill(workers[1], SIGKILL);
  EXPECT_EQ(cut->wait(), 0) << cut->output();
  EXPECT_THAT(cut->output(), HasSubstr("resumed from cut/checkpoints/step_"));
  EXPECT_EQ(distance(job.weights("whole"), job.weights("cut")), 0);
  EXPECT_THAT(job.folder().survivors(5), IsEmpty());
}

// Frozen until step 60: killed before that, and in the steps after it.
TEST(KillAndResume, KilledAroundUnfreezing_EndsWithTheSameBits) {
  TrainingJob job;
  const auto keys = [](const std::string& output) {
    return std::vector<std::string>{"train.epochs=30",
                                    "train.max_steps=120",
                                    "checkpoint.every_steps=10",
                                    "train.evaluate_every=0",
                                    "optimizer.frozen=['conv1.*', 'fc1.*']",
                                    "train.unfreeze_at=60 steps",
                                    "train.output=" + output};
  };
  const std::vector<std::string> two = {"--nproc_per_node=2"};
  auto whole = job.start("whole", two, keys("whole"));
  ASSERT_EQ(whole->wait(), 0) << whole->output();
  std::vector<std::string> resumed = keys("cut");
  resumed.push_back("checkpoint.resume=auto");
  for (const char* checkpoint : {"step_00000010", "step_00000060"}) {
    auto cut = job.start("cut", two, resumed);
    job.folder().wait_for(std::string("cut/checkpoints/") + checkpoint + "/state.json");
    for (const pid_t worker : job.folder().processes("fleet-worker")) kill(worker, SIGKILL);
    EXPECT_EQ(cut->wait(), 128 + SIGKILL) << cut->output();
  }
  auto last = job.start("last", two, resumed);
  ASSERT_EQ(last->wait(), 0) << last->output();
  EXPECT_THAT(last->output(), HasSubstr("resumed from cut/checkpoints/step_"));
  EXPECT_EQ(distance(job.weights("whole"), job.weights("cut")), 0);
}

// A small llama on packed documents, with dropout and a schedule that spans the run.
void write_language_job(const TrainingJob& job) {
  text::TokenWriter writer(job.path("train.bin"), text::TokenFormat::kNanoGpt,
                           text::TokenWidth::kUint16);
  for (uint32_t i = 0; i < 400; ++i) {
    std::vector<uint32_t> document;
    for (uint32_t t = 0; t < 20 + i * 7 % 60; ++t)
      document.push_back(1 + (i + t * (1 + i % 3)) % 63);
    document.push_back(0);
    writer.add(document);
  }
  writer.finish();
  write_file_atomically(job.path("text.json"), R"({
    "task": "causal_lm",
    "model": {"name": "llama", "vocab_size": 64, "hidden_size": 64, "intermediate_size": 96,
              "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
              "max_position_embeddings": 128, "attention_dropout": 0.1,
              "tie_word_embeddings": true},
    "data": {"source": "tokens", "train": {"file": "train.bin"}, "end_of_text": "0",
             "sequence_length": 128, "batch_size": 4},
    "optimizer": {"name": "adamw", "weight_decay": 0.1},
    "learning_rate": {"name": "cosine", "base": 0.003, "warmup_steps": 5},
    "train": {"epochs": 100, "max_steps": 100, "fetch_every": 1, "evaluate_every": 0},
    "checkpoint": {"every_steps": 40}
  })");
}

// Whether a run has recorded this step.
bool has_step(const TrainingJob& job, const std::string& output, int step) {
  const std::string lines = job.folder().read(output + "/metrics.jsonl");
  return lines.find("\"step\":" + std::to_string(step) + ",") != std::string::npos;
}

std::string bytes_of(const TensorFile& file) {
  std::string all;
  for (const auto& [name, tensor] : file.tensors) {
    const TensorBytes values = tensor.values();
    all += name + "\n" + std::string(values.data(), values.size());
  }
  return all;
}

TEST(KillAndResume, LanguageJobKilledBetweenCheckpoints_EndsWithTheSameBits) {
  TrainingJob job;
  write_language_job(job);
  const std::vector<std::string> two = {"--nproc_per_node=2"};
  auto whole = job.start("whole", two, {"train.output=whole"}, "text.json");
  ASSERT_EQ(whole->wait(), 0) << whole->output();

  auto cut = job.start("cut", two, {"train.output=cut"}, "text.json");
  for (int i = 0; i < 60'000 && !has_step(job, "cut", 50); ++i) ::usleep(1'000);
  for (const pid_t worker : job.folder().processes("fleet-worker")) kill(worker, SIGKILL);
  EXPECT_EQ(cut->wait(), 128 + SIGKILL) << cut->output();
  ASSERT_TRUE(has_step(job, "cut", 50));
  ASSERT_FALSE(has_step(job, "cut", 99)) << "it ended before it was killed";

  auto resumed =
      job.start("resumed", two, {"train.output=cut", "checkpoint.resume=auto"}, "text.json");
  ASSERT_EQ(resumed->wait(), 0) << resumed->output();
  EXPECT_THAT(resumed->output(), HasSubstr("resumed from cut/checkpoints/step_"));
  EXPECT_TRUE(bytes_of(job.weights("whole")) == bytes_of(job.weights("cut")));
}

TEST(KillAndResume, Sigterm_SavesTheSameStepOnAllRanksAndEndsWith143) {
  TrainingJob job;
  auto fleetrun = job.start("stop", {"--nproc_per_node=2"}, long_job("stop"));
  wait_for_checkpoint(job, "stop");
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM) << fleetrun->output();
  EXPECT_THAT(job.folder().survivors(5), IsEmpty());
  const auto latest = latest_checkpoint(job.path("stop/checkpoints"));
  ASSERT_TRUE(latest.has_value());
  EXPECT_TRUE(std::filesystem::exists(*latest + "/state.json"));
}

// Slurm sends one before a job's time is over: sbatch --signal=USR1@120.
TEST(KillAndResume, Sigusr1_SavesAndGoesOn) {
  TrainingJob job;
  auto fleetrun = job.start("saves", {"--nproc_per_node=2"},
                            {"train.epochs=100", "train.evaluate_every=0", "train.output=saves"});
  job.folder().wait_for("saves/metrics.jsonl");
  const auto checkpoint = [&] { return latest_checkpoint(job.path("saves/checkpoints")); };
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    const auto before = checkpoint();
    fleetrun->signal(signal);
    for (int i = 0; i < 6000 && checkpoint() == before; ++i) ::usleep(10'000);
    ASSERT_NE(checkpoint(), before) << fleetrun->output();
  }
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM) << fleetrun->output();
}

// Alone, a rank says itself that it did not come to its end.
TEST(KillAndResume, SigtermToAWorkerAlone_EndsWith143) {
  TrainingJob job;
  std::string error;
  std::thread killer([&] {
    wait_for_checkpoint(job, "alone");
    for (const pid_t worker : job.folder().processes("fleet-worker")) kill(worker, SIGTERM);
  });
  std::vector<std::string> arguments = {"job.json"};
  for (const std::string& text : long_job("alone")) {
    arguments.insert(arguments.end(), {"--set", text});
  }
  EXPECT_EQ(job.run_worker(arguments, &error), 128 + SIGTERM) << error;
  killer.join();
  EXPECT_THAT(job.folder().read("worker.out"), HasSubstr("stopped as asked after"));
}

// As when an elastic job has lost a node.
TEST(KillAndResume, GlobalBatch_GoesOnWithFewerRanks) {
  TrainingJob job;
  const auto arguments = [](const std::string& output, int steps) {
    return std::vector<std::string>{"data.global_batch_size=64", "train.output=" + output,
                                    "train.max_steps=" + std::to_string(steps),
                                    "checkpoint.resume=auto"};
  };
  for (const char* output : {"whole", "fewer"}) {
    auto two = job.start(output, {"--nproc_per_node=2"}, arguments(output, 6));
    ASSERT_EQ(two->wait(), 0) << two->output();
  }
  auto whole = job.start("whole2", {"--nproc_per_node=2"}, arguments("whole", 12));
  ASSERT_EQ(whole->wait(), 0) << whole->output();
  auto fewer = job.start("fewer2", {"--nproc_per_node=1"}, arguments("fewer", 12));
  ASSERT_EQ(fewer->wait(), 0) << fewer->output();
  EXPECT_THAT(fewer->output(), HasSubstr("resumed from fewer/checkpoints/step_00000006"));
  EXPECT_LT(distance(job.weights("whole"), job.weights("fewer")), 1e-4);
}

// Rank 0 waits for a rank that never comes: as reading from a mount that does not answer.
TEST(KillAndResume, SigtermWhileStarting_EndsWith143) {
  TrainingJob job;
  const std::string worker = program_folder() + "/fleet-worker";
  Fleetrun fleetrun(
      job.folder(), "starting",
      {"--nproc_per_node=2", "sh", "-c",
       "test $PADDLE_TRAINER_ID = 1 && exec sleep 600; exec " + worker + " job.json"});
  pid_t starting = 0;
  for (int i = 0; i < 3000 && starting == 0; ++i) {
    for (const pid_t pid : job.folder().processes("fleet-worker")) {
      if (handles(pid, SIGTERM)) starting = pid;
    }
    ::usleep(10'000);
  }
  ASSERT_NE(starting, 0) << fleetrun.output();
  kill(starting, SIGTERM);
  EXPECT_EQ(fleetrun.wait(), 128 + SIGTERM);
  EXPECT_THAT(fleetrun.output(), HasSubstr("stopped as asked before training began"));
}

}  // namespace
}  // namespace fleet
