// A trace of some steps of a real training job in this process.
#include "train/step_trace.h"

#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include "observe/trace_memory.h"
#include "tests/engine/train/trainer_job.h"
#include "train/step_trace.h"

namespace fleet {
namespace {

struct StepTraceTest : TrainerTest {
  void SetUp() override {
    TrainerTest::SetUp();
    ::setenv(kEnvProgressFile, launcher.path().c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv(kEnvProgressFile);
    TrainerTest::TearDown();
  }
  void train(const Job& job) {
    HostDevice device;
    Trainer(job, device, {}).run();
  }
  // Asks when the first step is done, and ends the training when so many steps are recorded: on a
  // busy machine some epochs may be over before anybody has asked.
  void train_until(const TraceReader& trace, int64_t steps, const Job& job) {
    std::atomic<int> stop{0};
    const std::jthread asker([&] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      const auto await = [&end](const auto& condition) {
        while (!condition() && std::chrono::steady_clock::now() < end) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      };
      await([&] { return launcher.read().has_value(); });
      launcher.request_trace(trace.file());
      await([&] { return trace.status().steps_done >= steps; });
      stop = SIGTERM;
    });
    HostDevice device;
    Trainer(job, device, {.stop = &stop}).run();
  }
  // Asks as soon as the first step is done.
  std::jthread ask(const TraceReader& trace) {
    return std::jthread([this, &trace](const std::stop_token& stop) {
      while (!stop.stop_requested() && !launcher.read()) std::this_thread::yield();
      launcher.request_trace(trace.file());
    });
  }

  ProgressReader launcher;
};

std::map<uint32_t, std::vector<TraceRecord>> by_track(const TraceReader& trace) {
  std::map<uint32_t, std::vector<TraceRecord>> tracks;
  for (const TraceRecord& record : trace.read({}, TraceMemory::kBytes).records) {
    tracks[record.track].push_back(record);
  }
  for (auto& [track, records] : tracks) {
    std::ranges::sort(records, {}, &TraceRecord::begin_ns);
  }
  return tracks;
}

// The number of the first name with this text in a line.
int64_t number_of_line(const std::string& text, const std::string& part) {
  const size_t at = text.find(part);
  if (at == std::string::npos) return -1;
  const size_t begin = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at) + 1;
  return std::stoll(text.substr(text.find('\t', begin) + 1));
}

TEST_F(StepTraceTest, AskedDuringTraining_RecordsSoManyStepsWithTheirOperationsAndInput) {
  const TraceReader trace(3);
  // Evaluations between epochs would belong to no step.
  train_until(trace, 3, job({"train.epochs=1000000", "data.threads=1", "train.evaluate_every=0"}));
  const TraceStatus status = trace.status();
  ASSERT_EQ(status.state, TraceMemory::kDone);
  EXPECT_EQ(status.steps_done, 3);
  EXPECT_FALSE(TraceRecorder::in_use());
  const std::string text = trace.read({}, TraceMemory::kBytes).text;
  const auto tracks = by_track(trace);
  const auto step_of = [](const TraceRecord& record) {
    return record.name == number_of(TraceName::kStep);
  };
  std::vector<TraceRecord> steps;
  std::map<uint32_t, int> count;
  for (const auto& [track, records] : tracks) {
    for (const TraceRecord& record : records) {
      ++count[record.name];
      if (step_of(record)) steps.push_back(record);
    }
  }
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].value, steps[0].value + 1);
  EXPECT_EQ(steps[1].begin_ns >= steps[0].end_ns, true);
  for (const TraceName name : {TraceName::kRead, TraceName::kAugment, TraceName::kInputWait}) {
    EXPECT_GT(count[number_of(name)], 0) << kTraceNames[number_of(name)].name;
  }
  const int64_t fc = number_of_line(text, "\toperation\tfc\t");
  ASSERT_GE(fc, 0) << text;
  EXPECT_GE(count[static_cast<uint32_t>(fc)], 3);
  // On the stream, one operation follows the other, within the steps.
  const int64_t stream = number_of_line(text, "\tstream 0");
  ASSERT_GE(stream, 0) << text;
  const std::vector<TraceRecord>& operations = tracks.at(static_cast<uint32_t>(stream));
  for (size_t i = 0; i < operations.size(); ++i) {
    EXPECT_LE(operations[i].begin_ns, operations[i].end_ns);
    if (i > 0) {
      EXPECT_GE(operations[i].begin_ns, operations[i - 1].end_ns);
    }
    EXPECT_GE(operations[i].begin_ns, steps.front().begin_ns);
    EXPECT_LE(operations[i].end_ns, steps.back().end_ns);
  }
}

TEST_F(StepTraceTest, NotAsked_RecordsNothing) {
  const TraceReader trace(3);
  train(job({"train.epochs=1"}));
  EXPECT_EQ(trace.status().pid, 0);
  EXPECT_EQ(trace.status().end, TracePosition());
}

TEST_F(StepTraceTest, TrainingEndsBefore_KeepsTheStepsSoFar) {
  const TraceReader trace(1'000'000);
  train_until(trace, 1, job({"train.epochs=1000000"}));
  EXPECT_EQ(trace.status().state, TraceMemory::kDone);
  EXPECT_GT(trace.status().steps_done, 0);
  EXPECT_LT(trace.status().steps_done, 1'000'000);
}

TEST_F(StepTraceTest, OperationsThatRunTogether_HaveTheirOwnStreams) {
  const TraceReader trace(2);
  train_until(
      trace, 2,
      job({"train.epochs=1000000"}, R"({"name": "mlp", "num_classes": 4, "hidden": [32]})"));
  EXPECT_EQ(trace.status().steps_done, 2);
  EXPECT_EQ(trace.status().dropped, 0u);
}

TEST(CollectiveKey, TellsGroupsAndMessagesApart) {
  const CollectiveGroup a{.name = "data parallel", .ranks = {0, 1}};
  CollectiveGroup second = a, other = a;
  second.ordinal = 1;
  other.ranks = {2, 3};
  EXPECT_NE(collective_key(a, -1, -1), collective_key(second, -1, -1));
  EXPECT_NE(collective_key(a, -1, -1), collective_key(other, -1, -1));
  EXPECT_NE(collective_key(a, 0, 1), collective_key(a, 1, 0));
  CollectiveGroup large = a;
  for (int rank = 2; rank < 1'000; ++rank) large.ranks.push_back(rank);
  EXPECT_LT(collective_key(large, -1, -1).size(), 100u);  // the file keeps 200 bytes
}

// What a trace records changes no bit of what is trained.
TEST_F(StepTraceTest, TracedTraining_GivesTheSameWeights) {
  const auto weights = [&] { return run(job({"train.epochs=20"}), 1).weights[0]; };
  const Weights before = weights();
  std::filesystem::remove_all(output_);
  const TraceReader trace(10);
  const auto asker = ask(trace);
  EXPECT_EQ(weights(), before);
}

}  // namespace
}  // namespace fleet
