// fleetrun trace on real jobs.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "base/small_file.h"
#include "node/reserved_ports.h"
#include "tests/control/viewing/trace/decoded_trace.h"
#include "tests/test_paths.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

using testing::HasSubstr;

struct TraceCommand : ::testing::Test {
  // Trains until it is stopped. Evaluations between epochs would belong to no step.
  std::unique_ptr<Fleetrun> start(const std::string& name, std::vector<std::string> options) {
    options.push_back("--job_id=traced");
    return job.start(
        name, std::move(options),
        {"train.epochs=1000000", "train.evaluate_every=0", "data.threads=1", "train.output=out"});
  }
  // Waits until some rank has come to its first steps.
  void wait_for_steps(const Fleetrun& fleetrun) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(3);
    while (std::chrono::steady_clock::now() < end &&
           !job.folder().read("out/metrics.jsonl").size()) {
      ::poll(nullptr, 0, 50);
    }
    ASSERT_FALSE(job.folder().read("out/metrics.jsonl").empty()) << fleetrun.output();
  }
  // Waits until all ranks of a trace that was asked for have its memory, and begin to record.
  void wait_for_recording(size_t ranks) {
    const auto records = [](pid_t pid) {
      return small_file("/proc/" + std::to_string(pid) + "/maps").find("fleet-trace") !=
             std::string::npos;
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    size_t recording = 0;
    while (recording < ranks && std::chrono::steady_clock::now() < end) {
      ::poll(nullptr, 0, 10);
      const std::vector<pid_t> workers = job.folder().processes("fleet-worker");
      recording = static_cast<size_t>(std::ranges::count_if(workers, records));
    }
    ASSERT_EQ(recording, ranks);
  }
  int trace(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"trace", "traced", "--output=it"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Fleetrun command(job.folder(), "command" + std::to_string(++commands), arguments);
    const int code = command.wait();
    said = command.output();
    return code;
  }
  DecodedTrace decoded() { return TraceDecoder::decode(job.folder().read("it")); }

  TrainingJob job;
  int commands = 0;
  std::string said;
};

void expect_steps(const DecodedTrace& trace, const std::string& rank, size_t steps) {
  const auto found = trace.of(rank, "step");
  ASSERT_EQ(found.size(), steps) << rank;
  EXPECT_EQ(found[0].track, "training");
  const auto operations = trace.of(rank, "conv2d");
  ASSERT_GE(operations.size(), 2 * steps);
  for (const DecodedSlice& one : operations) {
    EXPECT_THAT(one.track, HasSubstr("stream 0"));
    EXPECT_GE(one.begin_ns, found.front().begin_ns);
    EXPECT_LE(one.end_ns, found.back().end_ns);
  }
}

int64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

bool overlap(const DecodedSlice& a, const DecodedSlice& b);

// Each collective of rank 0 within the trace has its counterpart, joined by a flow, and they
// overlap: no rank leaves an all_reduce before the other has entered it.
void expect_matched_collectives(const DecodedTrace& trace) {
  std::map<uint64_t, DecodedSlice> others;
  for (const DecodedSlice& call : trace.of("rank 1", "all_reduce")) {
    if (call.category != "collective") continue;
    ASSERT_EQ(call.flows.size(), 1u);
    EXPECT_TRUE(others.try_emplace(call.flows[0], call).second) << "a flow twice on one rank";
  }
  int matched = 0, buckets = 0;
  for (const DecodedSlice& call : trace.of("rank 0", "all_reduce")) {
    if (call.category != "collective" || !others.contains(call.flows.at(0))) continue;
    const DecodedSlice& other = others.at(call.flows[0]);
    ++matched;
    if (call.annotations.at("for").starts_with("bucket")) ++buckets;
    EXPECT_EQ(call.annotations.at("sequence"), other.annotations.at("sequence"));
    EXPECT_EQ(call.annotations.at("for"), other.annotations.at("for"));
    EXPECT_TRUE(overlap(call, other)) << call.annotations.at("sequence");
  }
  EXPECT_GE(matched, 5);
  EXPECT_GT(buckets, 0);
}

bool overlap(const DecodedSlice& a, const DecodedSlice& b) {
  return a.begin_ns < b.end_ns && b.begin_ns < a.end_ns;
}

TEST_F(TraceCommand, JobOfTwoRanks_OneFileWithTheStepsOfBoth) {
  const auto fleetrun = start("two", {"--nproc_per_node=2"});
  wait_for_steps(*fleetrun);
  ASSERT_EQ(trace({"--steps=5"}), 0) << said << fleetrun->output();
  const DecodedTrace it = decoded();
  expect_steps(it, "rank 0", 5);
  expect_steps(it, "rank 1", 5);
  expect_matched_collectives(it);
  EXPECT_FALSE(it.of("rank 1", "augment").empty());
  EXPECT_EQ(it.of("rank 0", "about").at(0).annotations.at("steps"), "5");
  EXPECT_TRUE(it.labels.contains("launcher, node 0"));
  EXPECT_THAT(said, HasSubstr("it: 2 ranks"));
  // Nothing is left beside the file, and the job goes on: it can be traced again.
  for (const auto& file : std::filesystem::directory_iterator(job.folder().path())) {
    EXPECT_NE(file.path().extension(), ".part");
  }
  ASSERT_EQ(trace({"--steps=2"}), 0) << said;
  expect_steps(decoded(), "rank 0", 2);
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(fleetrun->wait(), 128 + SIGTERM) << fleetrun->output();
}

// Rank 1 began nothing while it was stopped. Rank 0 waits for it, within a step or between two: it
// is one step behind at most when that begins.
void expect_gap(const DecodedTrace& trace, const DecodedSlice& stall) {
  const auto within = [&stall](const DecodedSlice& slice) {
    return slice.begin_ns > stall.begin_ns + 20'000'000 && slice.begin_ns < stall.end_ns;
  };
  for (const DecodedSlice& slice : trace.slices) {
    if (slice.process != "rank 1") continue;
    EXPECT_FALSE(within(slice)) << slice.name;
  }
  for (const std::string rank : {"rank 0", "rank 1"}) {
    const auto steps = trace.of(rank, "step");
    ASSERT_FALSE(steps.empty()) << rank;
    EXPECT_LE(std::ranges::count_if(steps, within), 2) << rank;
    EXPECT_LT(steps.front().begin_ns, stall.begin_ns) << rank;
    EXPECT_GT(steps.back().begin_ns, stall.end_ns) << rank;
  }
}

TEST_F(TraceCommand, RankStopsForAMoment_TheGapIsWhereItStopped) {
  const auto fleetrun = start("stall", {"--nproc_per_node=2"});
  wait_for_steps(*fleetrun);
  ASSERT_EQ(trace({"--steps=1"}), 0) << said;
  const pid_t rank = std::stoi(decoded().of("rank 1", "about").at(0).annotations.at("pid"));
  Fleetrun command(job.folder(), "stall_command",
                   {"trace", "traced", "--output=it", "--steps=100000", "--timeout=5"});
  wait_for_recording(2);
  ::poll(nullptr, 0, 500);  // some steps
  DecodedSlice stall;
  ::kill(rank, SIGSTOP);
  stall.begin_ns = monotonic_ns();
  ::poll(nullptr, 0, 300);
  stall.end_ns = monotonic_ns();
  ::kill(rank, SIGCONT);
  EXPECT_EQ(command.wait(), 1) << command.output();
  EXPECT_THAT(command.output(), HasSubstr("of 100000 steps recorded"));
  const DecodedTrace it = decoded();
  const auto stops = it.of("rank 1", "stopped by SIGSTOP"), goes = it.of("rank 1", "continues");
  ASSERT_EQ(stops.size(), 1u) << command.output();
  ASSERT_EQ(goes.size(), 1u);
  EXPECT_LT(stops[0].begin_ns, goes[0].begin_ns);
  expect_gap(it, stall);
  fleetrun->signal(SIGTERM);
  fleetrun->wait();
}

TEST_F(TraceCommand, ForeignRanks_ShowStartOutputAndGoOn) {
  const Fleetrun fleetrun(job.folder(), "foreign",
                          {"--nproc_per_node=2", "--job_id=traced", "--log_dir=log.foreign", "sh",
                           "-c", "echo hello; touch ready.$PADDLE_TRAINER_ID; sleep 600"});
  job.folder().wait_for("ready.0");
  job.folder().wait_for("ready.1");
  ASSERT_EQ(trace({}), 0) << said << fleetrun.output();
  const DecodedTrace it = decoded();
  for (const std::string rank : {"rank 0", "rank 1"}) {
    const std::string pid = it.of(rank, "about").at(0).annotations.at("pid");
    const auto started = it.of(rank, "started as process " + pid);
    ASSERT_EQ(started.size(), 1u);
    const auto output = it.of(rank, "first output");
    ASSERT_EQ(output.size(), 1u);
    EXPECT_GT(output[0].begin_ns, started[0].begin_ns);
  }
  EXPECT_EQ(it.of("launcher, node 0", "generation 1 begins").size(), 1u);
  fleetrun.signal(SIGTERM);
}

TEST_F(TraceCommand, JobEndsMeanwhile_WhatWasGatheredIsKept) {
  const auto fleetrun = start("ends", {"--nproc_per_node=1"});
  wait_for_steps(*fleetrun);
  Fleetrun command(job.folder(), "ends_command",
                   {"trace", "traced", "--output=it", "--steps=100000"});
  wait_for_recording(1);
  ::poll(nullptr, 0, 1'000);  // some steps
  fleetrun->signal(SIGTERM);
  EXPECT_EQ(command.wait(), 1) << command.output();
  EXPECT_THAT(command.output(), HasSubstr("of 100000 steps recorded"));
  EXPECT_FALSE(decoded().of("rank 0", "step").empty());
  fleetrun->wait();
}

TEST_F(TraceCommand, NoSuchJob_OneLine) {
  EXPECT_NE(trace({}), 0);
  EXPECT_THAT(said, HasSubstr("fleetrun: trace: no job"));
  EXPECT_FALSE(std::filesystem::exists(job.path("it")));
}

// Children of this process live in a time namespace of their own from now on, whose clocks are
// ahead by an hour. False if the kernel or the user does not permit it.
bool enter_other_clocks() {
  if (::unshare(CLONE_NEWTIME) != 0) return false;
  const UniqueFd file(::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC));
  const std::string offsets = "monotonic 3600 0\nboottime 3600 0\n";
  return file && ::write(file.get(), offsets.data(), offsets.size()) ==
                     static_cast<ssize_t>(offsets.size());
}

TEST_F(TraceCommand, NodesWhoseClocksDiffer_OneTimeAxis) {
  const ReservedPort rendezvous = ReservedPort::any("127.0.0.1");
  const std::string port = std::to_string(rendezvous.port());
  const auto node = [&](int number) {
    return start("node" + std::to_string(number),
                 {"--ips=127.0.0.1,127.0.0.2", "--host=127.0.0." + std::to_string(number + 1),
                  "--nproc_per_node=1", "--rdzv_port=" + port,
                  "--start_port=" + std::to_string(20000 + std::stoi(port) % 10000)});
  };
  const UniqueFd own(::open("/proc/self/ns/time", O_RDONLY | O_CLOEXEC));
  const auto first = node(0);
  if (!enter_other_clocks()) GTEST_SKIP() << "needs root and a kernel with time namespaces";
  const auto second = node(1);
  ::setns(own.get(), CLONE_NEWTIME);
  wait_for_steps(*first);
  ASSERT_EQ(trace({"--steps=20"}), 0) << said << first->output();
  const DecodedTrace it = decoded();
  expect_steps(it, "rank 0", 20);
  expect_steps(it, "rank 1", 20);
  const auto about = it.of("rank 1", "about").at(0), host = it.of("rank 0", "about").at(0);
  EXPECT_NEAR(std::stod(about.annotations.at("clock_offset_ns")) / 1e9, -3600, 1);
  EXPECT_NEAR(std::stod(host.annotations.at("clock_offset_ns")) / 1e9, 0, 1);
  EXPECT_GT(std::stoll(about.annotations.at("clock_error_ns")), 0);
  EXPECT_LT(std::stoll(about.annotations.at("clock_error_ns")), 1'000'000'000);
  // They train in lockstep: the same step of both overlaps.
  int together = 0;
  const int64_t error = std::stoll(about.annotations.at("clock_error_ns"));
  for (DecodedSlice a : it.of("rank 0", "step")) {
    a.begin_ns -= error;
    for (const DecodedSlice& b : it.of("rank 1", "step")) {
      if (a.annotations.at("step") != b.annotations.at("step")) continue;
      ++together;
      a.end_ns += error;
      EXPECT_TRUE(overlap(a, b)) << a.annotations.at("step");
    }
  }
  EXPECT_GT(together, 0);
  first->signal(SIGTERM);
  first->wait();
  second->wait();
}

TEST_F(TraceCommand, RankWithOtherClocksThanItsLauncher_IsRefusedByName) {
  const UniqueFd own(::open("/proc/self/ns/time", O_RDONLY | O_CLOEXEC));
  const bool permitted = ::unshare(CLONE_NEWTIME) == 0;
  if (own) ::setns(own.get(), CLONE_NEWTIME);
  if (!permitted) GTEST_SKIP() << "needs root and a kernel with time namespaces";
  const Fleetrun fleetrun(
      job.folder(), "apart",
      {"--nproc_per_node=1", "--job_id=traced", "--log_dir=log.apart", "unshare", "--time",
       "--monotonic=3600", "--fork", "--kill-child", program_folder() + "/fleet-worker", "job.json",
       "--set", "train.epochs=1000000", "--set", "train.output=out"});
  wait_for_steps(fleetrun);
  // Before its first step it counts as another program, of which no steps are expected.
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (trace({"--steps=2"}) == 0 && std::chrono::steady_clock::now() < end) {
    ::poll(nullptr, 0, 50);
  }
  EXPECT_THAT(said, HasSubstr("(node 0) is left out"));
  fleetrun.signal(SIGTERM);
}

}  // namespace
}  // namespace fleet
