#include "node/error_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace fleet {
namespace {

struct ErrorFile : ::testing::Test {
  ErrorFile() : path(::testing::TempDir() + "error_file." + std::to_string(::getpid())) {}
  ~ErrorFile() override { ::unlink(path.c_str()); }
  RecordedError read(const std::string& text) const {
    std::ofstream(path) << text;
    return read_error_file(path);
  }
  std::string path;
};

TEST_F(ErrorFile, WhatRecordWrites_IsReadWhole) {
  const RecordedError error =
      read(R"({"message": {"message": "KeyError: 'missing_key'", "extraInfo": {
               "py_callstack": "Traceback:\n  main()\n", "timestamp": "1763800000"}}})");
  EXPECT_EQ(error.message(), "KeyError: 'missing_key'");
  EXPECT_EQ(error.callstack(), "Traceback:\n  main()\n");
  EXPECT_EQ(error.unix_time(), 1763800000);
}

TEST_F(ErrorFile, PlainMessage_IsReadToo) {
  const RecordedError error = read(R"({"message": "out of luck", "timestamp": 12})");
  EXPECT_EQ(error.message(), "out of luck");
  EXPECT_EQ(error.callstack(), "");
  EXPECT_EQ(error.unix_time(), 12);
}

TEST_F(ErrorFile, AnythingElse_IsNoError) {
  for (const char* text : {"", "{", "[]", "7", R"({"message": 7})", R"({"text": "x"})",
                           R"({"message": {"message": 7, "extraInfo": []}})"}) {
    EXPECT_EQ(read(text).message(), "") << text;
  }
  EXPECT_EQ(read(R"({"message": ")" + std::string(2 << 20, 'x') + "\"}").message(), "");
}

TEST_F(ErrorFile, NoFile_Link_OrFifo_IsNoErrorAndDoesNotBlock) {
  EXPECT_EQ(read_error_file("").message(), "");
  EXPECT_EQ(read_error_file(path).message(), "");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(read_error_file(path).message(), "");
  ::unlink(path.c_str());
  const std::string target = path + ".target";
  std::ofstream(target) << R"({"message": "somebody else's"})";
  ASSERT_EQ(::symlink(target.c_str(), path.c_str()), 0);
  EXPECT_EQ(read_error_file(path).message(), "");
  ::unlink(target.c_str());
}

}  // namespace
}  // namespace fleet
