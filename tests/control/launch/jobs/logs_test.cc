// The ranks' output in files and on the console, of whole jobs.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "tests/control/launch/jobs/fleetrun_process.h"
#include "tests/control/launch/jobs/verdict.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t start = 0, end; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(text.substr(start, end - start));
  return lines;
}

struct Logs : ::testing::Test {
  int run(int ranks, std::vector<std::string> options, const std::vector<std::string>& program) {
    options.insert(options.begin(), "--nproc_per_node=" + std::to_string(ranks));
    options.insert(options.end(), program.begin(), program.end());
    Fleetrun fleetrun(job, "run" + std::to_string(++runs), options);
    const int code = fleetrun.wait();
    output = fleetrun.output();
    EXPECT_THAT(job.survivors(30), IsEmpty());
    return code;
  }
  int script(int ranks, std::vector<std::string> options, const std::string& text) {
    return run(ranks, std::move(options), {"sh", "-c", text});
  }
  // The remaining pieces of a log, oldest first.
  std::vector<std::string> pieces(const std::string& log) const {
    std::map<int, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(job.path() + "/log")) {
      const std::string name = entry.path().filename().string();
      long long number = 0;
      if (name.starts_with(log + ".") && parse_int(name.substr(log.size() + 1), &number))
        found[static_cast<int>(number)] = "log/" + name;
    }
    std::vector<std::string> all;
    for (const auto& [number, path] : found) all.push_back(path);
    all.push_back("log/" + log);
    return all;
  }

  JobFolder job;
  std::string output;
  int runs = 0;
};

// Checks the output of `launch_rank_helper write`, line by line.
class Written {
 public:
  // A line that the helper has not written, or not there, fails the test.
  void add(std::string_view line, int of_rank) {
    long long rank = -1, number = -1;
    const size_t first = line.find(' '), second = line.find(' ', first + 1);
    const size_t third = second == line.npos ? line.npos : line.find(' ', second + 1);
    ASSERT_NE(third, line.npos) << line.substr(0, 200);
    ASSERT_TRUE(parse_int(line.substr(0, first), &rank) &&
                parse_int(line.substr(first + 1, second - first - 1), &number))
        << line.substr(0, 200);
    const std::string sum(line.substr(second + 1, third - second - 1));
    ASSERT_EQ(sum, std::to_string(std::hash<std::string_view>{}(line.substr(third + 1))))
        << line.substr(0, 200);
    ASSERT_EQ(rank, of_rank);
    in_order_ = in_order_ && number == static_cast<long long>(numbers_.size());
    ASSERT_TRUE(numbers_.insert(number).second) << "twice: " << number;
    bytes_ += line.size() + 1;
  }
  size_t bytes() const { return bytes_; }
  bool in_order() const { return in_order_; }
  bool complete() const {
    return !numbers_.empty() && *numbers_.rbegin() + 1 == static_cast<long long>(numbers_.size());
  }

 private:
  std::set<long long> numbers_;
  size_t bytes_ = 0;
  bool in_order_ = true;
};

constexpr int kLoggedRanks = 8;
constexpr size_t kBytes = 6'000'000;  // a rank

TEST_F(Logs, MuchOutputOfManyRanks_IsWholeInFilesAndOnTheConsole) {
  ASSERT_EQ(run(kLoggedRanks, {"--ranks=all"}, {kHelper, "write", std::to_string(kBytes), "1"}), 0);
  std::vector<Written> shown(kLoggedRanks);
  for (const std::string& line : lines_of(output)) {
    if (!line.starts_with("[rank ")) continue;
    const size_t end = line.find("] ");
    long long rank = -1;
    ASSERT_TRUE(end != std::string::npos && parse_int(line.substr(6, end - 6), &rank)) << line;
    ASSERT_NO_FATAL_FAILURE(
        shown.at(static_cast<size_t>(rank)).add(line.substr(end + 2), static_cast<int>(rank)));
  }
  for (int rank = 0; rank < kLoggedRanks; ++rank) {
    Written kept;
    for (const std::string& line : lines_of(job.read("log/workerlog." + std::to_string(rank)))) {
      ASSERT_NO_FATAL_FAILURE(kept.add(line, rank));
    }
    for (const Written& all : {kept, shown[static_cast<size_t>(rank)]}) {
      EXPECT_GE(all.bytes(), kBytes) << rank;
      EXPECT_TRUE(all.in_order() && all.complete()) << rank;
    }
  }
}

TEST_F(Logs, BothStreamsRotated_NoLineIsTornOrLost) {
  ASSERT_EQ(run(kLoggedRanks, {"--log_max_size=300K", "--log_split", "--timestamps=files"},
                {kHelper, "write", std::to_string(kBytes / 4), "3"}),
            0);
  for (int rank = 0; rank < kLoggedRanks; ++rank) {
    Written all;
    for (const std::string stream : {"", ".err"}) {
      const auto files = pieces("workerlog." + std::to_string(rank) + stream);
      EXPECT_GT(files.size(), 1u);
      for (const std::string& file : files) {
        EXPECT_LE(std::filesystem::file_size(job.path() + "/" + file), (300u << 10) + (64u << 10));
        for (const std::string& line : lines_of(job.read(file))) {
          constexpr size_t kStamp = 30;  // "2026-11-20T15:04:05.123+01:00 "
          ASSERT_GT(line.size(), kStamp);
          ASSERT_EQ(line[10], 'T');
          ASSERT_NO_FATAL_FAILURE(all.add(line.substr(kStamp), rank));
        }
      }
    }
    EXPECT_TRUE(all.complete()) << rank;
    EXPECT_GE(all.bytes(), kBytes / 4);
  }
}

TEST_F(Logs, StreamsIntoOneFile_LinesStayWhole) {
  // Told apart because only one of them is shown.
  ASSERT_EQ(run(2, {"--redirects=1"}, {kHelper, "write", std::to_string(kBytes), "3"}), 0);
  for (int rank = 0; rank < 2; ++rank) {
    Written kept;
    for (const std::string& line : lines_of(job.read("log/workerlog." + std::to_string(rank)))) {
      ASSERT_NO_FATAL_FAILURE(kept.add(line, rank));
    }
    EXPECT_TRUE(kept.complete());
  }
}

TEST_F(Logs, TotalSize_IsNotExceededAndTheNewestStay) {
  ASSERT_EQ(run(2, {"--log_max_size=200K", "--log_total_size=1M"},
                {kHelper, "write", std::to_string(kBytes), "1"}),
            0);
  uintmax_t total = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const auto files = pieces("workerlog." + std::to_string(rank));
    for (const std::string& file : files) {
      total += std::filesystem::file_size(job.path() + "/" + file);
    }
    EXPECT_GT(files.back().size(), 0u);
  }
  EXPECT_LE(total, 1u << 20);
  EXPECT_GT(total, 500u << 10);
  EXPECT_THAT(output, HasSubstr("their oldest pieces are removed"));
}

TEST_F(Logs, TotalSizeTooSmall_IsRefused) {
  EXPECT_EQ(script(8, {"--log_total_size=900K"}, "true"), 2);
  EXPECT_THAT(output, StartsWith("fleetrun: --log_total_size"));
  EXPECT_EQ(script(8, {"--log_max_size=10"}, "true"), 2);
  EXPECT_THAT(output, StartsWith("fleetrun: --log_max_size"));
}

TEST_F(Logs, SecondRun_IsAppendedUnlessOverwritten) {
  script(1, {}, "echo first");
  script(1, {}, "echo second");
  EXPECT_EQ(job.read("log/workerlog.0"), "first\nsecond\n");
  script(1, {"--log_overwrite"}, "echo third");
  EXPECT_EQ(job.read("log/workerlog.0"), "third\n");
}

TEST_F(Logs, Split_StandardErrorHasAFileOfItsOwn) {
  EXPECT_EQ(script(2, {"--log_split"}, "echo out$RANK; echo err$RANK >&2; exit $RANK"), 1);
  EXPECT_EQ(job.read("log/workerlog.1"), "out1\n");
  EXPECT_EQ(job.read("log/workerlog.1.err"), "err1\n");
  EXPECT_EQ(verdict_in(job)["rank"]["last_lines"], nlohmann::json({"out1", "err1"}));
}

TEST_F(Logs, TeeAndRedirects_AreTorchruns) {
  const std::string text = "echo out$RANK; echo err$RANK >&2";
  const auto shown = [&](std::vector<std::string> options) {
    EXPECT_EQ(script(2, std::move(options), text), 0);
    std::set<std::string> all;
    for (const std::string& line : lines_of(output)) {
      if (line.starts_with("[rank ")) all.insert(line);
    }
    return all;
  };
  using Set = std::set<std::string>;
  EXPECT_EQ(shown({"-t", "3"}),
            (Set{"[rank 0] out0", "[rank 0] err0", "[rank 1] out1", "[rank 1] err1"}));
  EXPECT_EQ(shown({"--redirects=3", "--tee=0:3"}), (Set{"[rank 0] out0", "[rank 0] err0"}));
  EXPECT_EQ(shown({"-r1"}), (Set{"[rank 0] err0", "[rank 1] err1"}));
  EXPECT_EQ(shown({"-r", "0:1,1:2"}), (Set{"[rank 0] err0", "[rank 1] out1"}));
  EXPECT_EQ(shown({"-t3", "--local_ranks_filter=1"}), (Set{"[rank 1] out1", "[rank 1] err1"}));
}

TEST_F(Logs, EqualLines_AreShownOnce) {
  // The ranks meet first: a line that comes 0.2 s later is shown by itself.
  EXPECT_EQ(script(4, {"--ranks=all", "--collapse=on"},
                   ": >up.$RANK; until test -e up.0 -a -e up.1 -a -e up.2 -a -e up.3; do "
                   "sleep 0.01; done; echo same; echo mine $RANK"),
            0);
  EXPECT_THAT(split(output, '\n'),
              IsSupersetOf({"[ranks 0-3] same", "[rank 0] mine 0", "[rank 3] mine 3"}));
}

TEST_F(Logs, CollapseByDefault_NotIntoAFile) {
  EXPECT_EQ(script(2, {"--ranks=all"}, "echo same"), 0);
  EXPECT_THAT(split(output, '\n'), IsSupersetOf({"[rank 0] same", "[rank 1] same"}));
}

TEST_F(Logs, Timestamps_AreIsoWithMilliseconds) {
  EXPECT_EQ(script(1, {"--timestamps=all"}, "printf 'one\\nlast'"), 0);
  const std::string stamp = "20[0-9-]+T[0-9:]+\\.[0-9][0-9][0-9][+-][0-9][0-9]:[0-9][0-9] ";
  EXPECT_THAT(job.read("log/workerlog.0"), MatchesRegex(stamp + "one\n" + stamp + "last"));
  EXPECT_THAT(output, ::testing::ContainsRegex(stamp + "one\n" + stamp + "last\n"));
}

TEST_F(Logs, LastLineWithoutEnd_AndColours_Survive) {
  EXPECT_EQ(script(1, {}, "printf '\\033[31mred\\033[0m\\n50%%\\r100%%\\rend'"), 0);
  EXPECT_EQ(job.read("log/workerlog.0"), "\033[31mred\033[0m\n50%\r100%\rend");
  EXPECT_THAT(output, HasSubstr("\033[31mred\033[0m\n50%\r100%\rend"));
  EXPECT_EQ(script(1, {"--ranks=0"}, "printf '\\033[31mred\\033[0m\\n50%%\\r100%%\\rend'"), 0);
  EXPECT_THAT(output, HasSubstr("[rank 0] \033[31mred\033[0m\n[rank 0] 50%\r[rank 0] 100%\r"
                                "[rank 0] end\n"));
}

TEST_F(Logs, StoppedTerminal_StallsNobodyAndSaysWhatItMissed) {
  const int controller = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(controller, 0);
  ASSERT_EQ(::grantpt(controller) + ::unlockpt(controller), 0);
  const std::string terminal = ::ptsname(controller);
  // Nobody reads it until the rank has ended.
  Fleetrun fleetrun(job, "run",
                    {"--nproc_per_node=1", "sh", "-c",
                     "yes 'a line of the rank' | head -c 20000000; : >done; sleep 0.01"},
                    {}, terminal);
  job.wait_for("done");
  std::string shown;
  char buffer[65536];
  pollfd readable = {controller, POLLIN, 0};
  while (::poll(&readable, 1, 30'000) == 1) {
    const ssize_t n = ::read(controller, buffer, sizeof buffer);
    if (n <= 0) break;  // the last writer has closed it
    shown.append(buffer, static_cast<size_t>(n));
  }
  EXPECT_EQ(fleetrun.wait(), 0);
  ::close(controller);
  EXPECT_THAT(shown, ::testing::ContainsRegex(
                         "a line of the rank\r\n\\[fleetrun\\] [0-9]+ lines \\([0-9.]+ MiB\\) are "
                         "not shown because the terminal is too slow; see "
                         "log/workerlog.0"));
  EXPECT_EQ(std::filesystem::file_size(job.path() + "/log/workerlog.0"), 20'000'000u);
}

}  // namespace
}  // namespace fleet
