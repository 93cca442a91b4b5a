#include "daemon/job_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace fleet {
namespace {

struct JobStoreTest : ::testing::Test {
  JobStoreTest() {
    std::string pattern = ::testing::TempDir() + "fleet_memory.XXXXXX";
    top = ::mkdtemp(pattern.data());
    folder = top + "/state/jobs";
  }
  ~JobStoreTest() override { std::filesystem::remove_all(top); }
  static JobInfo job(const std::string& name, double started) {
    JobInfo info;
    info.mutable_record()->set_job_id(name);
    info.mutable_record()->set_started(started);
    info.set_phase(JobInfo::ENDED);
    info.set_code(5);
    return info;
  }
  std::string top, folder;
};

std::string shown(const ConsoleLog& log) {
  std::string all;
  uint64_t at = 0;
  for (auto piece = log.next(&at, 100); !piece.text.empty(); piece = log.next(&at, 100)) {
    all += (piece.error ? "!" : "") + piece.text;
  }
  return all;
}

TEST_F(JobStoreTest, WhatIsKept_ComesBackOldestFirst) {
  {
    JobStore store(folder);
    ConsoleLog console;
    console.add(false, "out");
    console.add(true, std::string("\xff\0err", 5));
    store.save(job("later/../../x", 7), {});
    store.save(job("gone", 1), {});
    store.save(job("first", 3), {});
    store.save(job("first", 3), console);  // in the place of that
    store.remove("gone");
    struct stat found;
    ASSERT_EQ(::stat(folder.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0700u);
  }
  const auto kept = JobStore(folder).load();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].job.record().job_id(), "first");
  EXPECT_EQ(kept[0].job.code(), 5);
  EXPECT_EQ(shown(kept[0].console), "out!" + std::string("\xff\0err", 5));
  EXPECT_EQ(kept[1].job.record().job_id(), "later/../../x");
}

TEST_F(JobStoreTest, NamesThatLookAlike_AreTwoJobs) {
  JobStore store(folder);
  store.save(job("a b", 1), {});
  store.save(job("a_b", 2), {});
  EXPECT_EQ(store.load().size(), 2u);
}

TEST_F(JobStoreTest, WhatMakesNoSense_IsRemoved) {
  JobStore store(folder);
  store.save(job("good", 1), {});
  const std::string bad = folder + "/bad.0123456789abcdef.job";
  const std::string unfinished = folder + "/unfinished.0123456789abcdef.job.part.7";
  write_file_atomically(bad, "\xff\xff");
  write_file_atomically(unfinished, "half");
  EXPECT_EQ(store.load().size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(bad));
  EXPECT_FALSE(std::filesystem::exists(unfinished));
}

// --state_dir may name a folder with other files, such as the home folder.
TEST_F(JobStoreTest, ForeignFiles_AreKept) {
  JobStore store(folder);
  store.save(job("good", 1), {});
  const std::vector<std::string> names = {"notes.txt",
                                          ".bashrc",
                                          "train.job",
                                          ".job",
                                          "0123456789abcdef.job",
                                          "x.0123456789ABCDEF.job"};
  for (const std::string& name : names) write_file_atomically(folder + "/" + name, "mine");
  EXPECT_EQ(store.load().size(), 1u);
  for (const std::string& name : names) EXPECT_EQ(read_file(folder + "/" + name), "mine");
}

// A fleetd with kFleetdProtocol 3 kept JSON in the field `info`, number 1.
TEST_F(JobStoreTest, RecordOfAnOlderFleetd_IsSkipped) {
  JobStore store(folder);
  store.save(job("good", 1), {});
  const std::string old = folder + "/old.0123456789abcdef.job";
  write_file_atomically(old, "\x0a\x02{}");
  EXPECT_EQ(store.load().size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(old));
}

TEST_F(JobStoreTest, Folder_IsOneFleetdsAlone) {
  const JobStore store(folder);
  EXPECT_THROW(JobStore{folder}, Error);
  const std::string open = top + "/open";
  std::filesystem::create_directory(open);
  ::chmod(open.c_str(), 0755);
  EXPECT_THROW(JobStore{open}, Error);
}

TEST_F(JobStoreTest, WithoutAFolder_NothingIsKept) {
  JobStore store;
  store.save(job("a", 1), {});
  store.remove("a");
  EXPECT_TRUE(store.load().empty());
}

}  // namespace
}  // namespace fleet
