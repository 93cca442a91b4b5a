#include "viewing/report/run_report.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cmath>

#include "base/commands.h"
#include "base/file.h"
#include "tests/control/viewing/report/report_html.h"
#include "tests/control/viewing/runs/run_folder_files.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::string failed_verdict(double started, double time) {
  return R"({"verdict":"rank failed","exit_code":7,"message":"rank 1 failed","text":"rank 1 of 2 exited",)"
         R"("started":)" +
         std::to_string(started) + R"(,"time":)" + std::to_string(time) +
         R"(,"rank":{"rank":1,"log":"log/workerlog.1","last_lines":["one","<b>two</b>"]},"generations":[]})";
}

// How the run ended, above everything else.
std::string state_of(const std::string& page) { return elements_of(page, "b").at(0); }

std::string page_of(const RunFiles& run) { return report_page(read_run_report(run.path(), "")); }

TEST(RunReport, CompleteRun_HasCurvesTimesAndSettings) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0) + train_line(105, 0, "2.5") +
                                 train_line(110, 1, "1.5") + test_line(119, 2, "0.75") +
                                 summary_line(120, 2));
  run.write("config.txt", "train.seed = 1  (default)\noptimizer.name = \"lars\"  (job.json)\n");
  run.write("profile.txt", "conv2d 7 calls\n");
  const std::string page = page_of(run);
  expect_harmless(page);
  EXPECT_EQ(state_of(page), "completed");
  EXPECT_THAT(elements_of(page, "h2"),
              ElementsAre("Curves", "Evaluations", "Where the time went", "Settings"));
  EXPECT_THAT(elements_of(page, "text"),
              IsSupersetOf({"Loss", "Accuracy", "Learning rate", "Speed"}));
  EXPECT_THAT(elements_of(page, "td"), IsSupersetOf({"optimizer.name", "&quot;lars&quot;"}));
  EXPECT_THAT(elements_of(page, "pre"), ElementsAre("conv2d 7 calls\n"));
}

TEST(RunReport, TextRun_HasTheMetricsOfItsTask) {
  const RunFiles run;
  run.write("metrics.jsonl",
            start_line(100, 0,
                       R"(,"metrics":["loss","perplexity"],"headline":"perplexity",)"
                       R"("larger_is_better":false,"unit":"tokens")") +
                R"({"event":"train","time":105,"step":0,"loss":3.4,"perplexity":30})"
                "\n"
                R"({"event":"test","time":110,"step":1,"tokens":77,"loss":3.5,"perplexity":31})"
                "\n"
                R"({"event":"test","time":119,"step":2,"tokens":77,"loss":3.6,"perplexity":32})"
                "\n" +
                summary_line(120, 2));
  const std::string page = page_of(run);
  EXPECT_THAT(elements_of(page, "th"), AllOf(IsSupersetOf({"tokens", "loss", "perplexity"}),
                                             Not(Contains("acc1")), Not(Contains("samples"))));
  EXPECT_THAT(elements_of(page, "td"), IsSupersetOf({"77", "32"}));
  EXPECT_THAT(elements_of(page, "text"), AllOf(Contains("Perplexity"), Not(Contains("Accuracy"))));
  EXPECT_THAT(
      elements_of(page, "span"),
      AllOf(IsSupersetOf({"final perplexity", "best perplexity"}), Not(Contains("best accuracy"))));
  EXPECT_THAT(elements_of(page, "b"), IsSupersetOf({"32", "31"}));
}

TEST(RunReport, BestOfTheFacts_IsThatOfTheMetricThatIsKept) {
  const RunFiles run;
  run.write("metrics.jsonl",
            start_line(100, 0) + test_line(110, 1, "0.75") +
                R"({"event":"summary","time":120,"steps":2,"best_metric":"loss","best":0.125,)"
                R"("best_step":1})"
                "\n");
  const std::string page = page_of(run);
  EXPECT_THAT(elements_of(page, "span"), AllOf(Contains("best loss"), Contains("final accuracy"),
                                               Not(Contains("best accuracy"))));
  EXPECT_THAT(elements_of(page, "b"), Contains("0.125"));
}

TEST(RunReport, Bottleneck_IsThatOfTheVerdict) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0, R"(,"log_dir":")" + run.path() + R"(/log")") +
                                 train_line(105, 0, "2.5") + summary_line(120, 2));
  run.write("log/verdict.json", R"({"verdict":"success","exit_code":0,"started":99,"time":121,)"
                                R"("bottleneck":{"line":"server (server 1), 90 %: <look>"}})");
  const std::string page = page_of(run);
  expect_harmless(page);
  EXPECT_THAT(elements_of(page, "p"), Contains("server (server 1), 90 %: &lt;look&gt;"));
}

// Also of a job that ended well.
TEST(RunReport, ReplacedTrainers_AreListed) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0, R"(,"log_dir":")" + run.path() + R"(/log")") +
                                 train_line(105, 0, "2.5") + summary_line(120, 2));
  run.write("log/verdict.json",
            R"({"verdict":"success","exit_code":0,"started":99,"time":121,"replacements":[)"
            R"({"rank":1,"replacement":1,"time":103,"message":"rank 1 was <killed>",)"
            R"("repeated_samples":64,"lost_samples":32},)"
            R"({"rank":0,"replacement":1,"time":104,"message":"rank 0 failed",)"
            R"("repeated_samples":null,"lost_samples":null}]})");
  const std::string page = page_of(run);
  expect_harmless(page);
  EXPECT_EQ(state_of(page), "completed");
  EXPECT_THAT(elements_of(page, "h2"), Contains("Replaced trainers"));
  EXPECT_THAT(elements_of(page, "td"),
              IsSupersetOf({"rank 1 was &lt;killed&gt;", "64, and 32 lost", "rank 0 failed"}));
}

// Another job may write to the same log folder at the same time.
TEST(RunReport, VerdictOfAnotherJob_IsLeftOut) {
  const auto verdict_of = [](const std::string& of_run, const std::string& of_verdict, bool given) {
    const RunFiles run;
    const std::string logs = run.path() + "/log";
    run.write("metrics.jsonl", start_line(100, 0, R"(,"log_dir":")" + logs + "\"" + of_run) +
                                   train_line(105, 0, "2.5"));
    const std::string verdict = failed_verdict(99, 107);
    run.write("log/verdict.json", "{" + of_verdict + verdict.substr(1));
    const RunReport report = read_run_report(run.path(), given ? logs : "");
    EXPECT_EQ(report.verdict.has_value(), report.notes.size() == 1) << "a note without one";
    return report.verdict.has_value();
  };
  for (const bool given : {false, true}) {
    EXPECT_TRUE(verdict_of(R"(,"run":"a")", R"("run":"a",)", given));
    EXPECT_FALSE(verdict_of(R"(,"run":"a")", R"("run":"b",)", given));
    EXPECT_TRUE(verdict_of(R"(,"run":"a")", "", given)) << "an older fleetrun";
    EXPECT_TRUE(verdict_of("", R"("run":"b",)", given)) << "an older fleet-worker";
  }
}

TEST(RunReport, Times_AddUpToTheRun) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0) + train_line(105, 0, "2.5") + summary_line(120, 2));
  double total = 0, reads = 0;
  for (const TimePart& part : time_parts(read_run_report(run.path(), ""))) {
    total += part.seconds;
    if (part.name == "training: waiting for data") reads = part.seconds;
  }
  EXPECT_NEAR(total, 20, 1e-9);  // 1 + 16 + 2 + 1
  EXPECT_NEAR(reads, 4, 1e-9);   // 0.01 of 0.04 in 16 s
}

TEST(RunReport, CrashedRun_SaysSo) {
  const RunFiles run;
  run.write("metrics.jsonl",
            start_line(100, 0) + train_line(105, 0, "2.5") + R"({"event":"train","ti)");
  const std::string page = page_of(run);
  EXPECT_THAT(state_of(page), HasSubstr("ended without a summary"));
  EXPECT_THAT(elements_of(page, "li"), Contains(HasSubstr("1 of 3 lines of metrics.jsonl")));
}

TEST(RunReport, FolderOfARunningJob_IsSaidToRun) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0) + train_line(105, 0, "2.5"));
  run.write(".lock", "- process 1 on a\n");
  EXPECT_FALSE(read_run_report(run.path(), "").running);
  const UniqueFd lock(::open((run.path() + "/.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(read_run_report(run.path(), "").running);
  EXPECT_EQ(state_of(page_of(run)), "running");
}

TEST(RunReport, JobOfAnotherHost_MayStillRun) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0) + train_line(105, 0, "2.5"));
  run.write(".lock", "- process 1 on gpu-7\n");
  EXPECT_THAT(state_of(page_of(run)), HasSubstr("it runs on gpu-7"));
}

TEST(RunReport, LogFolderThatCannotBeRead_IsNamed) {
  const RunFiles run;
  const std::string logs = run.path() + "/" + std::string(300, 'x');  // too long for a name
  run.write("metrics.jsonl",
            start_line(100, 0, R"(,"log_dir":")" + logs + "\"") + train_line(105, 0, "2.5"));
  EXPECT_THAT(read_run_report(run.path(), "").notes, Contains(HasSubstr(logs + " cannot be read")));
}

TEST(RunReport, WarningsBeforeARestart_AreInTheClosedLogs) {
  const RunFiles run;
  run.write("metrics.jsonl", "");
  run.write("verdict.json", failed_verdict(99, 107));
  run.write("workerlog.0.1", "ERROR 2026-11-24 13:00:02,000 fleet-worker] disk is full\n");
  run.write("workerlog.0", "WARNING 2026-11-24 13:00:03,000 fleet-worker] disk is slow\n");
  std::vector<std::string> found;
  for (const LogWarning& warning : read_run_report(run.path(), "").warnings) {
    found.push_back(warning.log + ": " + warning.text);
  }
  EXPECT_THAT(found, ElementsAre("workerlog.0.1: disk is full", "workerlog.0: disk is slow"));
}

TEST(RunReport, FailedJob_HasItsVerdictLinesAndStacks) {
  const RunFiles run;
  const std::string logs = run.path() + "/log";
  run.write("metrics.jsonl",
            start_line(100, 0, R"(,"log_dir":")" + logs + "\"") + train_line(105, 0, "2.5"));
  run.write("log/verdict.json", failed_verdict(99, 107));
  run.write("log/workerlog.1.stack", "main <at> loop.cc:3\n");
  const RunReport report = read_run_report(run.path(), "");
  ASSERT_TRUE(report.verdict);
  EXPECT_EQ(report.verdict->number("exit_code"), 7);
  EXPECT_THAT(report.stacks, IsEmpty());  // the file is newer than this run
  const std::string page = report_page(read_run_report(run.path(), logs));
  expect_harmless(page);
  EXPECT_EQ(state_of(page), "rank failed, exit code 7");
  EXPECT_THAT(elements_of(page, "pre"),
              ElementsAre("rank 1 of 2 exited", "one\n&lt;b&gt;two&lt;/b&gt;\n",
                          "main &lt;at&gt; loop.cc:3\n"));
}

TEST(RunReport, SuccessfulRun_ListsNoStacks) {
  const RunFiles run;
  const std::string logs = run.path() + "/log";
  run.write("log/workerlog.0.stack", "main at loop.cc:3\n");  // of fleetrun stacks
  const std::string half = start_line(100, 0) + train_line(105, 0, "2.5");
  run.write("metrics.jsonl", half + summary_line(120, 2));
  EXPECT_THAT(elements_of(report_page(read_run_report(run.path(), logs)), "summary"),
              Not(Contains(HasSubstr("workerlog.0.stack"))));
  run.write("metrics.jsonl", half);  // it crashed
  const std::string page = report_page(read_run_report(run.path(), logs));
  EXPECT_THAT(elements_of(page, "summary"), Contains(HasSubstr("workerlog.0.stack")));
  EXPECT_THAT(elements_of(page, "h2"), Not(Contains("Verdict")));
}

TEST(RunReport, FailedRank_IsMarkedAmongTheRanks) {
  const RunFiles run;
  const std::string ranks =
      R"({"event":"ranks","time":106,"step":1,"batch_time":[1,1],"data_time":[],"wait_time":[]})"
      "\n";
  run.write("metrics.jsonl", start_line(100, 0) + train_line(105, 0, "2.5") + ranks);
  run.write("verdict.json", failed_verdict(99, 107));
  const std::string page = page_of(run);
  expect_harmless(page);
  EXPECT_THAT(page, HasSubstr("<div class=\"bad\">rank 1 failed</div>"));
  EXPECT_THAT(page, HasSubstr("<div>rank 0</div>"));
}

TEST(RunReport, VerdictOfALaterJob_IsNotThisRuns) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0, R"(,"log_dir":")" + run.path() + "/log\"") +
                                 train_line(105, 0, "2.5"));
  run.write("log/verdict.json", failed_verdict(500, 600));
  const RunReport report = read_run_report(run.path(), "");
  EXPECT_FALSE(report.verdict);
  EXPECT_THAT(report.notes, Contains(run.path() + "/log/verdict.json belongs to another job"));
  EXPECT_TRUE(covers_time(*JsonObject::parse(failed_verdict(99, 107)), 105));
  EXPECT_FALSE(covers_time(*JsonObject::parse(failed_verdict(99, 107)), 50));
  EXPECT_FALSE(covers_time(*JsonObject::parse("{}"), 50));
}

TEST(RunReport, FolderWithSomeFiles_IsEnough) {
  for (const char* file : {"config.txt", "verdict.json", "profile.txt", "metrics.jsonl"}) {
    const RunFiles run;
    run.write(file, "");
    EXPECT_THAT(page_of(run), EndsWith("</html>\n")) << file;
    run.write(file, std::string("\x00\xff{[<", 5) + std::string(10'000, '{'));
    EXPECT_THAT(page_of(run), EndsWith("</html>\n")) << file;
  }
}

TEST(RunReport, HostileText_StaysText) {
  const std::string evil = R"(</pre></style><script>alert(1)</script><img src=x onerror=y>)";
  const RunFiles run;
  run.write("metrics.jsonl",
            start_line(100, 0, R"(,"model":")" + evil + R"(","precision":")" + evil + "\"") +
                R"({"event":"not_finite","time":101,"step":")" + evil + R"(","what":")" + evil +
                "\"}\n" + test_line(102, 1, "\"" + evil + "\"") + train_line(103, 0, "1"));
  run.write("config.txt", evil + " = " + evil + "  (" + evil + ")\n");
  run.write("profile.txt", evil);
  run.write("verdict.json", R"({"exit_code":1,"verdict":")" + evil + R"(","text":")" + evil +
                                R"(","generations":[{"message":")" + evil +
                                R"("},3],"rank":{"rank":")" + evil + R"(","last_lines":[")" + evil +
                                R"(",null]}})");
  run.write("workerlog.0.stack", evil);
  run.write("workerlog.0.err", "WARNING 1970-01-01 00:01:40,000 x] " + evil + "\n");
  const std::string page = page_of(run);
  expect_harmless(page);
  EXPECT_THAT(
      elements_of(page, "pre"),
      Contains("&lt;/pre&gt;&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x "
               "onerror=y&gt;"));
}

TEST(RunReport, HugeRun_StaysBelowAMegabyte) {
  const RunFiles run;
  std::string metrics = start_line(100, 0);
  for (int i = 0; i < 20'000; ++i) {
    metrics += train_line(101 + i, i, std::to_string((i * 7919) % 1000 / 100.0));
    if (i % 20 == 0) metrics += test_line(101 + i, i, "0.5");
    if (i % 4 != 0) continue;
    metrics +=
        R"({"event":"ranks","time":)" + std::to_string(101 + i) + R"(,"step":1,"batch_time":[)";
    for (int rank = 0; rank < 128; ++rank) metrics += rank > 0 ? ",0.5" : "0.5";
    metrics += R"(],"data_time":[],"wait_time":[]})" + std::string("\n");
  }
  run.write("metrics.jsonl", metrics);
  run.write("profile.txt", std::string(10 << 20, 'x'));
  std::string log;
  for (int i = 0; i < 50'000; ++i) {
    log += "WARNING 1970-01-01 00:02:00,000 x] warning " + std::to_string(i) + "\n";
  }
  run.write("verdict.json", failed_verdict(1, 2));
  for (int i = 0; i < 10; ++i) {
    run.write("workerlog." + std::to_string(i), log);
    run.write("workerlog." + std::to_string(i) + ".stack", std::string(1 << 20, 'x'));
  }
  EXPECT_LT(page_of(run).size(), 1'000'000u);
}

TEST(WarningsIn, LinesOfTheRunsTime_AreFound) {
  const std::string log =
      "INFO 2026-11-24 13:00:00,000 fleet-worker] not this\n"
      "WARNING 2026-11-24 13:00:01,500 fleet-worker] disk is slow\n"
      "WARNING of a program\n"
      "ERROR 2026-11-24 13:00:02,000 fleetrun] it ended\n"
      "WARNING 2026-11-24 19:00:00,000 fleet-worker] later";
  EXPECT_THAT(warnings_in(log, 0, HUGE_VAL), ElementsAre("disk is slow", "it ended", "later"));
  std::tm day = {};
  day.tm_year = 126, day.tm_mon = 10, day.tm_mday = 24, day.tm_hour = 13, day.tm_isdst = -1;
  const auto one = static_cast<double>(std::mktime(&day));
  EXPECT_THAT(warnings_in(log, one, one + 1.6), ElementsAre("disk is slow"));
}

TEST(WarningsIn, StampedLines_AreFound) {
  EXPECT_THAT(warnings_in("2026-11-24T13:00:01.501+01:00 "
                          "WARNING 2026-11-24 13:00:01,500 fleet-worker] disk is slow\n",
                          0, HUGE_VAL),
              ElementsAre("disk is slow"));
}

TEST(ZoneShift, LogOfAnotherZone_DiffersByQuarterHours) {
  std::tm day = {};
  day.tm_year = 126, day.tm_mon = 10, day.tm_mday = 24, day.tm_hour = 13, day.tm_isdst = -1;
  const auto one = static_cast<double>(std::mktime(&day));
  const std::string log =
      "INFO 2026-11-24 12:58:00,000 fleet-worker] step 1\n"
      "INFO 2026-11-24 13:00:00,000 fleet-worker] step 2\n"
      "a line of a library\n";
  EXPECT_EQ(zone_shift(log, one + 1), 0);
  EXPECT_EQ(zone_shift(log, one - 3600 + 1), -3600);
  EXPECT_EQ(zone_shift(log, one + 5.75 * 3600), 5.75 * 3600);  // Nepal
  EXPECT_EQ(zone_shift(log, one + 3600 + 300), 0);             // written to later
  EXPECT_EQ(zone_shift(log, one + 86'400), 0);
  EXPECT_EQ(zone_shift("no times\n", one), 0);
}

// A log folder, in which a program's reports of steps are.
TEST(RunReport, ReportedSteps_HaveCurvesOfAllValuesAndNoSettings) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0, R"(,"reported":true)") +
                                 train_line(105, 0, "2.5", R"(,"perplexity":12)") +
                                 train_line(110, 1, "1.5", R"(,"perplexity":5)") +
                                 summary_line(120, 2));
  const std::string page = page_of(run);
  expect_harmless(page);
  EXPECT_EQ(state_of(page), "completed");
  EXPECT_THAT(elements_of(page, "text"), IsSupersetOf({"Loss", "perplexity"}));
  EXPECT_THAT(elements_of(page, "text"), Not(Contains("batch_time")));
  EXPECT_THAT(elements_of(page, "li"), IsEmpty());
  run.write("metrics.jsonl", start_line(100, 0) + train_line(105, 0, "2.5", R"(,"local_steps":4)"));
  EXPECT_THAT(elements_of(page_of(run), "text"), Not(Contains("local_steps")));
}

TEST(RunReport, ReportedStepsOfARunningJob_AreNotThoseOfTheVerdictBefore) {
  const RunFiles run;
  run.write("verdict.json", failed_verdict(1000, 2000));
  run.write("metrics.jsonl",
            start_line(5000, 0, R"(,"reported":true)") + train_line(5005, 0, "2.5"));
  EXPECT_FALSE(read_run_report(run.path(), "").verdict);
  run.write("verdict.json", failed_verdict(4990, 5010));
  EXPECT_TRUE(read_run_report(run.path(), "").verdict);
}

int report(const std::vector<std::string>& arguments) {
  return run_command(*find_command("report"), arguments);
}

TEST(ReportCommand, Folder_GetsAPage) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0) + train_line(105, 0, "2.5"));
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(report({run.path() + "/"}), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), run.path() + "/report.html\n");
  EXPECT_THAT(read_file(run.path() + "/report.html"), EndsWith("</html>\n"));
}

TEST(ReportCommand, Svg_IsThePictureOnly) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0) + train_line(105, 0, "2.5"));
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(report({run.path(), "--svg", "-"}), 0);
  const std::string svg = ::testing::internal::GetCapturedStdout();
  EXPECT_TRUE(svg.starts_with("<svg")) << svg.substr(0, 40);
  EXPECT_FALSE(std::filesystem::exists(run.path() + "/report.html"));
}

TEST(ReportCommand, OtherFolders_AreRefused) {
  const RunFiles run;
  EXPECT_THAT(thrown_by([&] { report({run.path()}); }), IsUsageError(run.path()));
  EXPECT_THAT(thrown_by([&] { report({run.path(), "--svg", "-"}); }), IsUsageError(run.path()));
  EXPECT_THAT(thrown_by([&] { report({}); }), IsUsageError());
}

}  // namespace
}  // namespace fleet
