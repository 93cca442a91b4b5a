#include "diagnosis/cause/failure_cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace fleet {
namespace {

TEST(FailureCause, PythonException_IsItsLastLine) {
  EXPECT_EQ(failure_cause("epoch 1\n"
                          "Traceback (most recent call last):\n"
                          "  File \"train.py\", line 3, in <module>\n"
                          "    main()\n"
                          "KeyError: 'missing_key'",
                          0),
            "KeyError: 'missing_key'");
}

TEST(FailureCause, ExceptionThatEndsWithAColon_ContinuesInTheNextLine) {
  EXPECT_EQ(failure_cause("Traceback (most recent call last):\n"
                          "  File \"train.py\", line 3, in <module>\n"
                          "RuntimeError: weights of Net:\n"
                          "        missing: a\n"
                          "resource_tracker: There appear to be 1 leaked semaphore objects\n",
                          0),
            "RuntimeError: weights of Net: missing: a");
}

// Its error needs no word that reads like one.
TEST(FailureCause, LastErrorOfFleetWorker_IsTheReason) {
  EXPECT_THAT(
      failure_cause("step 3\n"
                    "fleet-worker: img/train: 3 class folders, and the model has 2 classes\n"
                    "a last word of a library\n",
                    0),
      ::testing::HasSubstr("fleet-worker: img/train: 3 class folders"));
}

TEST(FailureCause, ChainedExceptions_TheLastOneCounts) {
  EXPECT_EQ(failure_cause("Traceback (most recent call last):\n"
                          "  File \"a.py\", line 1, in f\n"
                          "KeyError: 'a'\n\n"
                          "During handling of the above exception, another exception occurred:\n\n"
                          "Traceback (most recent call last):\n"
                          "  File \"a.py\", line 3, in <module>\n"
                          "ValueError: no a",
                          0),
            "ValueError: no a");
}

TEST(FailureCause, TorchsPrefix_IsNoPartOfIt) {
  EXPECT_EQ(failure_cause("[rank0]: Traceback (most recent call last):\n"
                          "[rank0]:   File \"train.py\", line 3, in <module>\n"
                          "[W socket.cpp:1] another line\n"
                          "[rank0]: ValueError: boom\n",
                          0),
            "ValueError: boom");
}

TEST(FailureCause, ExceptionGroup_NamesWhatIsInIt) {
  EXPECT_EQ(failure_cause("  + Exception Group Traceback (most recent call last):\n"
                          "  |   File \"a.py\", line 1, in <module>\n"
                          "  | ExceptionGroup: two (1 sub-exception)\n"
                          "  +-+---------------- 1 ----------------\n"
                          "    | Traceback (most recent call last):\n"
                          "    |   File \"a.py\", line 1, in g\n"
                          "    | ValueError: inner\n"
                          "    +------------------------------------",
                          0),
            "ValueError: inner");
}

TEST(FailureCause, TracebackLongAgo_IsNoCause) {
  std::string log = "Traceback (most recent call last):\n  File \"a.py\"\nValueError: handled\n";
  for (int i = 0; i < 40; ++i) log += "step\n";
  EXPECT_EQ(failure_cause(log, 0), "");
  EXPECT_EQ(failure_cause(log + "error: the disk is gone", 0), "error: the disk is gone");
}

TEST(FailureCause, LastLine_OnlyWhereItReadsLikeAnError) {
  EXPECT_EQ(failure_cause("sh: 1: train: not found", 0), "sh: 1: train: not found");
  EXPECT_EQ(failure_cause("epoch 3 loss 0.4", 0), "");
  EXPECT_EQ(failure_cause("", 0), "");
}

TEST(FailureCause, OtherLanguages_AreRead) {
  EXPECT_EQ(failure_cause("terminate called after throwing an instance of 'std::runtime_error'\n"
                          "  what():  boom",
                          SIGABRT),
            "boom");
  EXPECT_EQ(failure_cause("a: a.c:3: main: Assertion `n > 0' failed.", SIGABRT),
            "a: a.c:3: main: Assertion `n > 0' failed.");
  EXPECT_EQ(failure_cause("Fatal Python error: Segmentation fault\n\nCurrent thread (most recent "
                          "call first):\n  File \"a.py\", line 1 in <module>",
                          SIGSEGV),
            "Fatal Python error: Segmentation fault");
  EXPECT_EQ(failure_cause("----------------------\nError Message Summary:\n----------------------\n"
                          "InvalidArgumentError: The shape is wrong.\n  [Hint: a]",
                          0),
            "InvalidArgumentError: The shape is wrong.");
}

TEST(FailureCause, KilledByOthers_TheLogDoesNotKnow) {
  EXPECT_EQ(failure_cause("an error", SIGKILL), "");
  EXPECT_EQ(failure_cause("an error", SIGTERM), "");
  EXPECT_EQ(failure_cause("an old error message", SIGSEGV), "");
}

TEST(FailureCause, ProgressBarBeforeTheTraceback_IsNoPrefix) {
  EXPECT_EQ(
      failure_cause("  0%|          | 0/10 [00:00<?, ?it/s]Traceback (most recent call last):\n"
                    "  File \"train.py\", line 3, in <module>\n"
                    "ValueError: boom\n"
                    "  0%|          | 0/10 [00:00<?, ?it/s]",
                    0),
      "ValueError: boom");
}

TEST(FailureCause, ExceptionDuringTheExit_LosesAgainstTheOneBefore) {
  EXPECT_EQ(failure_cause("Traceback (most recent call last):\n"
                          "  File \"train.py\", line 3, in <module>\n"
                          "ValueError: boom\n"
                          "Exception ignored in: <function Pool.__del__ at 0x7f>\n"
                          "Traceback (most recent call last):\n"
                          "  File \"pool.py\", line 271, in __del__\n"
                          "OSError: [Errno 9] Bad file descriptor\n",
                          0),
            "ValueError: boom");
}

TEST(FailureCause, AbortOfAnInterpreterThatExits_IsTheException) {
  const std::string log =
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 3, in <module>\n"
      "ValueError: boom\n";
  const std::string abort =
      "terminate called after throwing an instance of 'c10::Error'\n"
      "  what():  driver shutting down\n";
  EXPECT_EQ(failure_cause(log + abort, SIGABRT), "ValueError: boom");
  EXPECT_EQ(failure_cause(log, SIGSEGV), "ValueError: boom");
  std::string later = log;
  for (int i = 0; i < 10; ++i) later += "step\n";
  EXPECT_EQ(failure_cause(later + abort, SIGABRT), "driver shutting down");
  EXPECT_EQ(failure_cause(later, SIGSEGV), "");
}

TEST(FailureCause, ErrorThatIsANumber_IsAMetric) {
  EXPECT_EQ(failure_cause("train error: 0.25\ndone", 0), "");
  EXPECT_EQ(failure_cause("ERROR 3 shards are missing\nbye", 0), "ERROR 3 shards are missing");
}

TEST(LastError, OfARankThatRuns_IsItsTraceback) {
  EXPECT_EQ(last_error("Traceback (most recent call last):\n"
                       "  File \"train.py\", line 3, in <module>\n"
                       "ValueError: label 1000 is out of range\n",
                       true),
            "ValueError: label 1000 is out of range");
  EXPECT_EQ(last_error("error: a line\n", true), "");
  EXPECT_EQ(last_error("error: a line\n", false), "error: a line");
  EXPECT_EQ(last_error("0 failed\n", false), "");
}

TEST(CauseLine, IsOneShortSafeLine) {
  EXPECT_EQ(cause_line("ValueError: a\nb"), "ValueError: a");
  EXPECT_EQ(cause_line("\033]0;title\007bad \033[31mred\033[0m"), "bad red");
  EXPECT_EQ(cause_line(std::string(1000, 'x')).size(), 300u);
}

}  // namespace
}  // namespace fleet
