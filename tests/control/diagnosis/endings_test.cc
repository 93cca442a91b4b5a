// The outputs in endings/: what real programs print at their end, each with the right answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"
#include "diagnosis/cause/failure_cause.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

constexpr size_t kLeast = 60;

struct ProgramEnding {
  std::string name;
  std::map<std::string, std::string> header;  // expected, end, origin
  std::string log;
  std::string expected() const { return header.at("expected"); }
  int signal() const { return signal_of(header.at("end")); }

 private:
  static int signal_of(const std::string& end) {
    if (end.starts_with("exit ")) return 0;
    for (int signal = 1; signal < SIGRTMIN; ++signal) {
      const char* name = ::sigabbrev_np(signal);
      if (name && end == std::string("SIG") + name) return signal;
    }
    ADD_FAILURE() << "unknown end: " << end;
    return 0;
  }
};

// "KEY: VALUE" lines, a line "---", the output.
ProgramEnding read_ending(const std::filesystem::path& path) {
  ProgramEnding ending;
  ending.name = path.filename();
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line) && line != "---") {
    const size_t colon = line.find(':');
    ending.header[line.substr(0, colon)] = trim(std::string_view(line).substr(colon + 1));
  }
  std::ostringstream rest;
  rest << file.rdbuf();
  ending.log = resolve_output(rest.str());
  return ending;
}

std::vector<ProgramEnding> all_endings() {
  std::vector<ProgramEnding> all;
  const std::string folder = source_folder() + "/tests/control/diagnosis/endings";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") all.push_back(read_ending(entry.path()));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

TEST(Endings, EachHasItsRightAnswerAndItsOrigin) {
  const std::vector<ProgramEnding> all = all_endings();
  EXPECT_GE(all.size(), kLeast);
  for (const ProgramEnding& ending : all) {
    SCOPED_TRACE(ending.name);
    ASSERT_THAT(ending.header, ::testing::SizeIs(3));
    EXPECT_FALSE(ending.header.at("origin").empty());
    EXPECT_EQ(failure_cause(ending.log, ending.signal()), ending.expected());
  }
}

// Trackers upload when the interpreter exits, and multiprocessing warns.
TEST(Endings, SummaryOfATrackerAndAWarningAfterIt_ChangeNothing) {
  std::string after =
      "\n/usr/lib/python3.11/multiprocessing/resource_tracker.py:224: UserWarning: "
      "resource_tracker: "
      "There appear to be 4 leaked semaphore objects to clean up at shutdown\n"
      "  warnings.warn('resource_tracker: There appear to be %d '\n";
  for (int i = 0; i < 50; ++i) after += "wandb:    val/loss_" + std::to_string(i) + " 0.25\n";
  after += "wandb: Find logs at: wandb/offline-run-1/logs";
  for (const ProgramEnding& ending : all_endings()) {
    SCOPED_TRACE(ending.name);
    EXPECT_EQ(failure_cause(ending.log + after, ending.signal()), ending.expected());
  }
}

TEST(Endings, ExceptionThatWasHandledLongBefore_ChangesNothing) {
  std::string before =
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in save\n"
      "OSError: handled\n";
  for (int i = 0; i < 40; ++i) before += "step " + std::to_string(i) + "\n";
  for (const ProgramEnding& ending : all_endings()) {
    SCOPED_TRACE(ending.name);
    EXPECT_EQ(failure_cause(before + ending.log, ending.signal()), ending.expected());
  }
}

// Also the beginnings of outputs, as a log that is cut off has them.
TEST(Endings, AnyPartOfOne_IsReadWithoutHarm) {
  for (const ProgramEnding& ending : all_endings()) {
    for (size_t cut = 0; cut < ending.log.size(); cut += 37) {
      EXPECT_LE(failure_cause(ending.log.substr(cut), ending.signal()).size(), 1200u);
      EXPECT_LE(failure_cause(ending.log.substr(0, cut), ending.signal()).size(), 1200u);
    }
  }
}

}  // namespace
}  // namespace fleet
