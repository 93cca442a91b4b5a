#include "node/wire.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace fleet {
namespace {

RankCommand sample_rank() {
  RankCommand rank;
  rank.local_rank = 3;
  rank.argv = {"/bin/sh", "-c", "echo \"a b\"", ""};
  rank.environment = {{"A", "1"}, {"EMPTY", ""}};
  rank.removed = {"http_proxy"};
  rank.cores = {2, 3};
  rank.log_path = "log/workerlog.3";
  rank.rank = 11;
  rank.error_log_path = "log/workerlog.3.err";
  rank.shown_streams = kStandardError;
  rank.shows_apart = true;
  rank.draws_bar = true;
  rank.hang_timeout_ms = 5000;
  rank.service_socket = true;
  rank.error_file = "/log/workerlog.3.error.json";
  rank.splits_streams = true;
  rank.label = "[default3]:";
  rank.labelled_streams = kStandardOutput;
  return rank;
}

TEST(Wire, EveryMessage_ComesBackEqual) {
  const std::vector<WireMessage> messages = {
      SpawnRanks{{sample_rank(), RankCommand{}},
                 {true,
                  false,
                  true,
                  true,
                  "10.0.0.2",
                  {true, 200},
                  {false, 5},
                  true,
                  1LL << 40,
                  5LL << 40,
                  {"log/filtered_stdout.log", {"apple", "pear"}},
                  {}}},
      ServiceBytes{2, "cmd=init"},
      StopRanks{15, 2500},
      KillRanks{},
      RankStarted{1, 4711, "cannot execute"},
      RankEnded{2,
                7,
                0,
                std::string("binary \0\xff\n tail", 15),
                "KeyError",
                "out of memory",
                true,
                99,
                true,
                {"KeyError: 1", "Traceback", 1763800000}},
      SignalRanks{10},
      CollectStacks{4000},
      RanksProgress{{{1, 2, 1'000'000'000'000, 5, 6}, {}}},
      RankStalled{1, 30000, 12},
      StacksCollected{{{1, "T", "futex_wait", {"wait", "main"}, "denied"}}},
      AllGone{"pid 7 (x)"},
  };
  std::string bytes;
  for (const WireMessage& message : messages) bytes += encode(message);
  for (const WireMessage& message : messages) {
    WireMessage decoded;
    ASSERT_TRUE(decode(bytes, &decoded));
    EXPECT_EQ(decoded, message);
  }
  EXPECT_TRUE(bytes.empty());
}

TEST(Wire, PartOfAMessage_IsNotTaken) {
  const std::string whole = encode(StopRanks{15, 1});
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string part = whole.substr(0, size);
    WireMessage message;
    EXPECT_FALSE(decode(part, &message)) << size;
    EXPECT_EQ(part.size(), size);
  }
}

TEST(Wire, UnknownKind_IsAnInternalError) {
  std::string bytes = encode(KillRanks{});
  bytes[4] = 99;
  WireMessage message;
  EXPECT_THROW(decode(bytes, &message), Error);
}

TEST(Wire, LengthBeyondTheMessage_IsAnInternalError) {
  std::string bytes = encode(AllGone{"abc"});
  bytes[8] = 100;  // the text's own length
  WireMessage message;
  EXPECT_THROW(decode(bytes, &message), Error);
}

}  // namespace
}  // namespace fleet
