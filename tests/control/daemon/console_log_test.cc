#include <gtest/gtest.h>

#include "daemon/job_store.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

std::string rest(const ConsoleLog& log, uint64_t* at, size_t most = 100) {
  std::string all;
  for (;;) {
    const ConsoleLog::Chunk piece = log.next(at, most);
    if (piece.text.empty()) return all;
    all += (piece.error ? "!" : "") + piece.text;
  }
}

TEST(ConsoleLog, Reader_GetsEverythingOnceInOrder) {
  ConsoleLog log;
  uint64_t at = 0;
  log.add(false, "one ");
  EXPECT_EQ(rest(log, &at), "one ");
  log.add(true, "two ");
  log.add(false, "three");
  EXPECT_EQ(rest(log, &at), "!two three");
  EXPECT_EQ(rest(log, &at), "");
  EXPECT_EQ(at, log.end());
}

TEST(ConsoleLog, Pieces_AreBounded) {
  ConsoleLog log;
  log.add(false, "0123456789");
  uint64_t at = 0;
  EXPECT_EQ(log.next(&at, 4).text, "0123");
  EXPECT_EQ(log.next(&at, 4).text, "4567");
  EXPECT_EQ(log.next(&at, 4).text, "89");
}

TEST(ConsoleLog, WhatIsTooOld_IsForgotten) {
  ConsoleLog log(10'000);
  for (int i = 0; i < 100; ++i) log.add(false, std::string(1000, static_cast<char>('a' + i % 26)));
  EXPECT_LE(log.end() - log.begin(), 10'000u);
  uint64_t at = 0;
  const std::string all = rest(log, &at, 1 << 20);
  EXPECT_EQ(all.size(), log.end() - log.begin());
  EXPECT_EQ(all.back(), 'a' + 99 % 26);
}

}  // namespace
}  // namespace fleet
