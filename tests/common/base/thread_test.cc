#include "base/thread.h"

#include <gmock/gmock.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/refused_threads.h"

namespace fleet {
namespace {

TEST(Thread, EndsByAnException_JoinRethrowsIt) {
  Thread thread("worker", [] { throw std::runtime_error("lost"); });
  try {
    thread.join();
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "lost");
  }
  EXPECT_FALSE(thread.joinable());
}

TEST(Thread, Destroyed_WaitsForItsBody) {
  std::atomic<bool> done{false};
  {
    Thread thread("worker", [&] { done = true; });
  }
  EXPECT_TRUE(done);
}

TEST(Thread, LongName_IsCutAndShown) {
  std::string name(64, '\0');
  Thread thread("a_name_that_is_too_long",
                [&] { pthread_getname_np(pthread_self(), name.data(), name.size()); });
  thread.join();
  EXPECT_STREQ(name.c_str(), "a_name_that_is_");
}

TEST(Thread, Refused_ThrowsAndNamesTheLimit) {
  if (!kThreadsCanBeRefused) GTEST_SKIP() << "a sanitizer's threads cannot be refused";
  const auto refused = [] {
    try {
      Thread("worker", [] {}).join();
      return 1;
    } catch (const Error& error) {
      const bool names = error.next().find("pids.max") != std::string::npos;
      return error.code() == ErrorCode::kIo && names ? 0 : 2;
    }
  };
  EXPECT_EQ(with_room_for_threads(0, refused), 0);
}

TEST(StartThreads, RefusedAfterTheFirst_GoOnWithThose) {
  if (!kThreadsCanBeRefused) GTEST_SKIP() << "a sanitizer's threads cannot be refused";
  const auto share = [] {
    std::atomic<int> ran{0};
    std::vector<Thread> threads = start_threads(64, "worker", [&] { ++ran; });
    const size_t started = threads.size();
    threads.clear();
    return started > 0 && started < 64 && ran == static_cast<int>(started) ? 0 : 1;
  };
  EXPECT_EQ(with_room_for_threads(2, share), 0);
}

TEST(StartThreads, Allowed_StartAll) {
  std::atomic<int> ran{0};
  EXPECT_EQ(start_threads(3, "worker", [&] { ++ran; }).size(), 3u);  // destroyed: they have ended
  EXPECT_EQ(ran, 3);
}

TEST(OpenmpThreads, FirstNumberOfAList_OrNothing) {
  const std::pair<const char*, std::optional<int>> kCases[] = {{"4", 4},
                                                               {"4,2", 4},
                                                               {" 4 ", 4},
                                                               {" 4 , 2", 4},
                                                               {"", std::nullopt},
                                                               {" ", std::nullopt},
                                                               {"1.0", std::nullopt},
                                                               {"abc", std::nullopt},
                                                               {"0", std::nullopt},
                                                               {"-2", std::nullopt},
                                                               {"4,abc", std::nullopt},
                                                               {"4,", std::nullopt},
                                                               {"99999999999", std::nullopt}};
  for (const auto& [text, number] : kCases) {
    ::setenv("OMP_NUM_THREADS", text, 1);
    EXPECT_EQ(openmp_threads(), number) << "'" << text << "'";
  }
  ::unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(openmp_threads(), std::nullopt);
}

TEST(PinToCores, OneCore_IsWhatIsAvailableThen) {
  const std::vector<int> all = available_cores();
  ASSERT_FALSE(all.empty());
  std::vector<int> then;
  Thread thread("pinned", [&] {
    pin_to_cores({all.back()});
    then = available_cores();
  });
  thread.join();
  EXPECT_THAT(then, ::testing::ElementsAre(all.back()));
  EXPECT_EQ(available_cores(), all);
}

}  // namespace
}  // namespace fleet
