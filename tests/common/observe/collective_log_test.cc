#include "observe/collective_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "observe/collective_log_layout.h"
#include "observe/collective_log_reader.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CollectiveRecord call(int64_t sequence, CollectiveKind kind = CollectiveKind::kAllReduce,
                      const char* purpose = "bucket 4") {
  CollectiveRecord made;
  made.sequence = sequence;
  made.bytes = 1000 + sequence;
  made.kind = kind;
  made.purpose = CollectivePurpose(purpose);
  return made;
}

struct CollectiveLogs : ::testing::Test {
  CollectiveLogReader reader;
  CollectiveLog log{reader.path()};
};

TEST_F(CollectiveLogs, NobodyOpenedIt_SaysNothing) {
  const CollectiveLogReader unused;
  EXPECT_EQ(unused.read().pid, 0);
  EXPECT_THAT(unused.read().groups, IsEmpty());
}

TEST_F(CollectiveLogs, Calls_AreSeenInEachState) {
  const int group = log.add_group("data parallel", {0, 2, 4}, false);
  const CollectiveTicket first = log.issue(group, call(1)), second = log.issue(group, call(2));
  log.start(first);
  log.finish(first);
  log.start(second);
  log.issue(group, call(3, CollectiveKind::kBroadcast, "conv1.weight"));
  const CollectiveSnapshot seen = reader.read();
  EXPECT_EQ(seen.pid, ::getpid());
  EXPECT_TRUE(seen.same_pid_names);
  ASSERT_EQ(seen.groups.size(), 1u);
  EXPECT_EQ(seen.groups[0].name, "data parallel");
  EXPECT_THAT(seen.groups[0].ranks, ElementsAre(0, 2, 4));
  EXPECT_EQ(seen.groups[0].issued, 3);
  EXPECT_EQ(seen.groups[0].started, 2);
  EXPECT_EQ(seen.groups[0].done, 1);
  ASSERT_EQ(seen.calls.size(), 3u);
  EXPECT_EQ(seen.calls[0].state, CollectiveState::kDone);
  EXPECT_GE(seen.calls[0].done_ns, seen.calls[0].started_ns);
  EXPECT_GE(seen.calls[0].started_ns, seen.calls[0].issued_ns);
  EXPECT_EQ(seen.calls[1].state, CollectiveState::kStarted);
  EXPECT_EQ(seen.calls[1].done_ns, 0);
  EXPECT_EQ(seen.calls[2].state, CollectiveState::kIssued);
  EXPECT_EQ(seen.calls[2].kind, CollectiveKind::kBroadcast);
  EXPECT_EQ(seen.calls[2].bytes, 1003);
  EXPECT_EQ(seen.calls[2].purpose.view(), "conv1.weight");
  EXPECT_EQ(seen.calls[2].group, seen.groups[0].id);
}

TEST_F(CollectiveLogs, MoreCallsThanFit_TheLastAreKept) {
  const int group = log.add_group("g", {0, 1}, false);
  std::vector<CollectiveTicket> tickets;
  for (int i = 1; i <= 2000; ++i) tickets.push_back(log.issue(group, call(i)));
  log.start(tickets[7]);  // its slot has been taken
  log.finish(tickets[7]);
  const CollectiveSnapshot seen = reader.read();
  ASSERT_EQ(seen.calls.size(), 512u);
  EXPECT_EQ(seen.calls.front().sequence, 2000 - 511);
  EXPECT_EQ(seen.calls.back().sequence, 2000);
  for (const CollectiveRecord& each : seen.calls) EXPECT_EQ(each.state, CollectiveState::kIssued);
  EXPECT_EQ(seen.groups[0].done, 8);
}

TEST_F(CollectiveLogs, Messages_DoNotMoveTheGroup) {
  const int group = log.add_group("g", {3, 5}, false);
  log.issue(group, call(1));
  const CollectiveTicket sent = log.issue(group, call(9, CollectiveKind::kSend));
  log.start(sent);
  log.finish(sent);
  EXPECT_EQ(reader.read().groups[0].issued, 1);
  EXPECT_EQ(reader.read().groups[0].done, 0);
  EXPECT_EQ(reader.read().calls[1].state, CollectiveState::kDone);
}

TEST_F(CollectiveLogs, EqualGroups_HaveOrdinals) {
  const int a = log.add_group("g", {0, 1}, false), b = log.add_group("g", {0, 1}, false);
  const int other = log.add_group("g", {0, 2}, false), renamed = log.add_group("h", {0, 1}, true);
  log.rename_group(renamed, "g");
  EXPECT_EQ(log.group(a).ordinal, 0);
  EXPECT_EQ(log.group(b).ordinal, 1);
  EXPECT_EQ(log.group(other).ordinal, 0);
  EXPECT_EQ(log.group(renamed).ordinal, 2);
  EXPECT_TRUE(log.group(renamed).device);
  EXPECT_EQ(log.group_with_id(log.group(b).id).ordinal, 1);
  EXPECT_EQ(log.group_with_id(12345).id, 0u);
}

TEST_F(CollectiveLogs, ClosedGroup_IsReadUntilItsSlotIsNeeded) {
  const int first = log.add_group("first", {0, 1}, false);
  log.issue(first, call(1));
  log.close_group(first);
  ASSERT_EQ(reader.read().groups.size(), 1u);
  EXPECT_TRUE(reader.read().groups[0].closed);
  for (int i = 0; i < 64; ++i) {
    EXPECT_GE(log.add_group("g" + std::to_string(i), {0, 1}, false), 0) << i;
  }
  EXPECT_EQ(reader.read().groups.size(), 64u);
  EXPECT_EQ(log.add_group("one too many", {0, 1}, false), -1);
  log.finish(log.issue(-1, call(1)));  // recorded, without a group
  EXPECT_EQ(reader.read().calls.back().group, 0u);
}

TEST_F(CollectiveLogs, IrregularRanks_ComeBack) {
  const std::vector<int> ranks = {0, 1, 2, 3, 10, 20, 30, 7};
  EXPECT_EQ(log.group(log.add_group("g", ranks, false)).ranks, ranks);
}

// The memory of the log, as a writer that dies at any point leaves it.
collective_log::Memory* map(const CollectiveLogReader& reader) {
  const UniqueFd file(::open(reader.path().c_str(), O_RDWR | O_CLOEXEC));
  void* memory = ::mmap(nullptr, sizeof(collective_log::Memory), PROT_READ | PROT_WRITE, MAP_SHARED,
                        file.get(), 0);
  return static_cast<collective_log::Memory*>(memory);
}

TEST_F(CollectiveLogs, TornRecords_AreLeftOut) {
  const int group = log.add_group("g", {0, 1}, false), torn = log.add_group("torn", {0, 1}, false);
  log.issue(group, call(1));
  const CollectiveTicket half = log.issue(group, call(2));
  log.issue(group, call(3));
  collective_log::Memory* memory = map(reader);
  // Stopped while it stored a record and a group: the data is half old, half new.
  memory->calls[half.number % collective_log::kCalls].status = half.number * 4;
  memory->calls[half.number % collective_log::kCalls].data.words[1] = 99;
  memory->groups[torn].turn.fetch_add(1);
  const CollectiveSnapshot seen = reader.read();
  ASSERT_EQ(seen.calls.size(), 2u);
  EXPECT_EQ(seen.calls[0].sequence, 1);
  EXPECT_EQ(seen.calls[1].sequence, 3);
  ASSERT_EQ(seen.groups.size(), 1u);
  EXPECT_EQ(seen.groups[0].name, "g");
  ::munmap(memory, sizeof *memory);
}

TEST_F(CollectiveLogs, SlotOfAnInterruptedThread_IsLeftToIt) {
  const int group = log.add_group("g", {0, 1}, false);
  const CollectiveTicket interrupted = log.issue(group, call(1));
  collective_log::Memory* memory = map(reader);
  std::atomic<uint64_t>& status = memory->calls[interrupted.number % collective_log::kCalls].status;
  status = interrupted.number * 4;
  for (size_t i = 0; i < collective_log::kCalls; ++i) {
    log.finish(log.issue(group, call(static_cast<int64_t>(i) + 2)));
  }
  EXPECT_EQ(status, interrupted.number * 4);
  EXPECT_EQ(reader.read().calls.size(), collective_log::kCalls - 1);
  EXPECT_EQ(reader.read().groups.at(0).issued, static_cast<int64_t>(collective_log::kCalls) + 1);
  ::munmap(memory, sizeof *memory);
  const CollectiveLog next(reader.path());  // of a process after this one
  log.issue(group, call(7));
  for (size_t i = 1; i < collective_log::kCalls; ++i) log.issue(group, call(8));
  EXPECT_EQ(reader.read().calls.size(), collective_log::kCalls);
}

TEST_F(CollectiveLogs, ReadWhileSeveralThreadsWrite_NoRecordIsMixed) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const int group = log.add_group("g", {t, t + 1}, false);
      const std::string purpose(20, static_cast<char>('a' + t));
      for (int64_t i = 1; !stop; ++i) {
        CollectiveRecord made = call(i, CollectiveKind::kReduce, purpose.c_str());
        made.peer = t;
        const CollectiveTicket ticket = log.issue(group, made);
        log.start(ticket);
        log.finish(ticket);
      }
    });
  }
  // The threads may start late.
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  int64_t calls = 0;
  while (calls < 100'000 && std::chrono::steady_clock::now() < end) {
    for (const CollectiveRecord& seen : reader.read().calls) {
      ++calls;
      ASSERT_EQ(seen.bytes, 1000 + seen.sequence);
      ASSERT_EQ(seen.purpose.view(), std::string(20, static_cast<char>('a' + seen.peer)));
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(calls, 100'000);
}

TEST_F(CollectiveLogs, WriterIsKilled_ItsRecordsStay) {
  const pid_t child = ::fork();
  if (child == 0) {
    CollectiveLog own(reader.path());
    own.start(own.issue(own.add_group("g", {0, 1}, false), call(41)));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const CollectiveSnapshot seen = reader.read();
  EXPECT_EQ(seen.pid, child);
  ASSERT_EQ(seen.calls.size(), 1u);
  EXPECT_EQ(seen.calls[0].sequence, 41);
  EXPECT_EQ(seen.calls[0].state, CollectiveState::kStarted);
}

TEST(CollectiveLog, FileOfOthers_IsLeftAlone) {
  const std::string path = ::testing::TempDir() + "collective_log_foreign";
  write_file_atomically(path, std::string(1 << 20, 'x'));
  CollectiveLog log(path);
  log.issue(log.add_group("g", {0, 1}, false), call(1));
  EXPECT_EQ(read_file(path), std::string(1 << 20, 'x'));
  std::filesystem::remove(path);
}

struct Heard : CollectiveListener {
  void issued(const CollectiveRecord& call) override { note("issued", call); }
  void started(const CollectiveRecord& call) override { note("started", call); }
  void done(const CollectiveRecord& call) override { note("done", call); }
  void note(const std::string& what, const CollectiveRecord& call) {
    all.push_back(what + " " + std::string(name_of(call.kind)) + " " +
                  std::to_string(call.sequence) + " " + std::string(call.purpose.view()));
  }
  std::vector<std::string> all;
};

TEST(CollectiveLog, Listener_HearsEachStateUntilItIsRemoved) {
  CollectiveLog log;
  Heard heard;
  const int group = log.add_group("g", {0, 1}, false);
  log.set_listener(&heard);
  const CollectiveTicket ticket = log.issue(group, call(7));
  log.start(ticket);
  log.finish(ticket);
  log.set_listener(nullptr);
  log.issue(group, call(8));
  EXPECT_THAT(heard.all,
              ElementsAre("issued all_reduce 7 bucket 4", "started all_reduce 7 bucket 4",
                          "done all_reduce 7 bucket 4"));
}

}  // namespace
}  // namespace fleet
