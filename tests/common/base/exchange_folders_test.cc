#include "base/exchange_folders.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "tests/errors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

struct ExchangeFoldersTest : ::testing::Test {
  ExchangeFoldersTest() {
    std::string pattern = ::testing::TempDir() + "fleet_exchange.XXXXXX";
    top = ::mkdtemp(pattern.data());
    for (const char* name : {"a", "b"}) {
      fs::create_directory(top + "/" + name);
      write_file_atomically(top + "/" + name + "/text", name);
    }
  }
  ~ExchangeFoldersTest() override { fs::remove_all(top); }
  void expect_exchanged() const {
    EXPECT_EQ(read_file(top + "/a/text"), "b");
    EXPECT_EQ(read_file(top + "/b/text"), "a");
    EXPECT_EQ(std::distance(fs::directory_iterator(top), fs::directory_iterator()), 2);
  }
  std::string top;
};

TEST_F(ExchangeFoldersTest, BothTakeTheOthersPlace) {
  exchange_folders(top + "/a", top + "/b");
  expect_exchanged();
}

// As on NFS.
int refuse(const char*, const char*) {
  errno = EINVAL;
  return -1;
}

TEST_F(ExchangeFoldersTest, FileSystemThatCannotExchange_Renames) {
  fs::create_directory(top + "/b.old.part");
  exchange_folders(top + "/a", top + "/b", refuse);
  expect_exchanged();
}

TEST_F(ExchangeFoldersTest, AnyRefusalOfTheExchange_Renames) {
  static int reason;
  const auto refuse_for_reason = [](const char*, const char*) {
    errno = reason;
    return -1;
  };
  for (const int error : {ENOSYS, EOPNOTSUPP, ENOTTY, EPERM, EACCES}) {
    reason = error;
    exchange_folders(top + "/a", top + "/b", refuse_for_reason);
    expect_exchanged();
    exchange_folders(top + "/a", top + "/b");
  }
  reason = EIO;
  EXPECT_THAT(thrown_by([&] { exchange_folders(top + "/a", top + "/b", refuse_for_reason); }),
              IsError(ErrorCode::kIo, top + "/b"));
}

TEST_F(ExchangeFoldersTest, Failure_ChangesNothing) {
  fs::remove_all(top + "/a");
  for (const auto exchange : {rename_exchange, refuse}) {
    EXPECT_EQ(thrown_by([&] { exchange_folders(top + "/a", top + "/b", exchange); }).code(),
              ErrorCode::kIo);
    EXPECT_EQ(read_file(top + "/b/text"), "b");
  }
}

}  // namespace
}  // namespace fleet
