// The pages and reports on a phone and on a wide screen, in a browser (page_widths.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "diagnosis/live_history.h"
#include "tests/browser.h"
#include "tests/control/viewing/report/evaluation_text.h"
#include "tests/control/viewing/runs/run_folder_files.h"
#include "tests/test_paths.h"
#include "transport/http_server.h"
#include "viewing/live_view.h"
#include "viewing/report/run_report.h"
#include "viewing/web/job_site.h"
#include "viewing/web/page_events.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
constexpr double kNow = 1'790'000'000;

// All values that a rank can have, with many digits.
LiveReport busy_report(int64_t step) {
  LiveReport report;
  report.set_job_id("resnet50_imagenet_" + std::string(60, 'x'));
  report.set_nnodes(2);
  report.set_world_size(12);
  report.set_running_ms(1000 * step);
  report.set_step(100'000 + step);
  report.set_target(938'400);
  report.set_loss(1.23456 / static_cast<double>(step));
  report.set_accuracy(0.765432);
  report.set_evaluation_accuracy(0.712345);
  report.set_seconds_left(123'456);
  report.mutable_bottleneck()->set_line("straggler: " + std::string(90, 'y'));
  for (int number = 0; number < 12; ++number) {
    wire::LiveRank* rank = report.add_ranks();
    rank->set_rank(number);
    rank->set_node_rank(number / 6);
    rank->set_slowest(number == 5);
    rank->set_step(report.step());
    rank->set_step_ms(123.456 + number);
    rank->set_samples_per_second(12'345.6);
    rank->set_input_share(0.05);
    rank->set_exposed_share(0.4);
    rank->set_loss(report.loss());
    rank->set_cpu(1.5);
    rank->set_memory(int64_t{123} << 30);
    wire::GpuUsage* gpu = rank->add_gpus();
    gpu->set_utilization(93);
    gpu->set_memory_used(int64_t{70} << 30);
    gpu->set_memory_total(int64_t{80} << 30);
    gpu->set_clock_mhz(1755);
    gpu->set_power_watts(640);
    gpu->set_celsius(71);
    gpu->set_throttled(0x4);
  }
  return report;
}

wire::LiveHistory busy_history() {
  const LiveHistory::Time begin{};
  LiveHistory history;
  for (int second = 0; second < 200; ++second) {
    history.add(busy_report(second + 1), begin + std::chrono::seconds(second));
  }
  return history.snapshot(begin + std::chrono::seconds(200));
}

std::string job_events(const std::optional<JobOutcome>& outcome) {
  std::string frame = live_json(busy_report(201), "rank", kNow);
  frame.pop_back();
  std::string events = server_sent_event("history", history_event(busy_history(), kNow)) +
                       server_sent_event("frame", frame);
  if (outcome) events += server_sent_event("ended", outcome_event(*outcome));
  return events;
}

std::string list_events() {
  std::vector<JobInfo> jobs(3);
  for (int number = 0; number < 3; ++number) {
    JobInfo& job = jobs[static_cast<size_t>(number)];
    job.set_number(number);
    job.set_phase(number == 0 ? JobInfo::ENDED : JobInfo::RUNNING);
    job.mutable_record()->set_job_id("job_" + std::string(50, 'z'));
    job.mutable_record()->set_started(kNow);
    job.mutable_record()->mutable_progress()->set_step(100'000);
    job.mutable_record()->mutable_progress()->set_target(938'400);
    job.mutable_record()->mutable_progress()->set_loss(0.123456);
  }
  const wire::LiveHistory history = busy_history();
  return server_sent_event("jobs", jobs_event("host", jobs)) +
         server_sent_event("curves", curves_event({{0, &history}, {1, &history}}));
}

// A failed run with every part of a report.
std::string busy_report_page() {
  const RunFiles run;
  std::string metrics = start_line(kNow, 0);
  for (int i = 1; i < 300; ++i) {
    metrics += train_line(kNow + i, 1000 * i, std::to_string(1.23456 / i));
    if (i % 30 == 0) metrics += test_line(kNow + i, 1000 * i, "0.7654321");
    metrics +=
        R"({"event":"ranks","time":)" + std::to_string(kNow + i + 0.5) +
        R"(,"step":1,"batch_time":[1,1,1],"data_time":[0.1,0.2,0.1],"wait_time":[0.3,0.1,0.2]})"
        "\n";
  }
  run.write("metrics.jsonl", metrics);
  run.write("config.txt", "strategy.hierarchical_allreduce_inter_nranks = \"" +
                              std::string(80, 'v') + "\"  (job.json)\n");
  run.write(
      "verdict.json",
      R"({"verdict":"rank failed","exit_code":7,"text":")" + std::string(200, 't') +
          R"(","rank":{"role":"trainer","rank":1,"log":"log/workerlog.1","last_lines":["a"]},)"
          R"("generations":[{"generation":1,"verdict":"rank failed","ran_for":12.5,)"
          R"("step":123456,"message":")" +
          std::string(100, 'm') + "\"}]}");
  run.write("evaluation.json", evaluation_text(6, "/9j/4AAQ"));
  run.write("workerlog.0.stack", std::string(200, 's'));
  return report_page(read_run_report(run.path(), ""));
}

void write_site(const RunFiles& pages, const std::string& name, const std::string& events) {
  pages.write(name + "/index.html", std::string(page_html()));
  pages.write(name + "/page.css", std::string(page_css()));
  pages.write(name + "/page.js", std::string(page_js()));
  pages.write(name + "/events", events);
}

nlohmann::json measured(const std::string& folder, const std::string& out) {
  const std::string script = source_folder() + "/tests/control/viewing/web/page_widths.py";
  const int status = std::system(
      ("python3 -B " + script + " " + folder + " >" + out + " 2>" + out + ".err").c_str());
  std::ifstream file(out), errors(out + ".err");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string why((std::istreambuf_iterator<char>(errors)), {});
  EXPECT_EQ(status, 0) << why;
  return nlohmann::json::parse(text, nullptr, false);
}

TEST(PageWidths, PhoneAndWideScreen_NeedNoSidewaysScrolling) {
  if (const char* missing = browser_missing()) GTEST_SKIP() << missing;
  const RunFiles pages, results;
  write_site(pages, "running", job_events(std::nullopt));
  write_site(
      pages, "failed",
      job_events(JobOutcome{
          .state = "failed (7)", .text = std::string(300, 'f'), .failed = WatchedLog{.rank = 3}}));
  write_site(pages, "list", list_events());
  pages.write("report.html", busy_report_page());
  const nlohmann::json found = measured(pages.path(), results.path() + "/found.json");
  ASSERT_EQ(found.size(), 8u);  // 4 pages of 2 widths
  for (const nlohmann::json& page : found) {
    const std::string where = page["page"].dump() + " of " + page["width"].dump();
    EXPECT_LE(page["scroll_width"], page["client_width"]) << where;
    EXPECT_EQ(page["broken_heads"], nlohmann::json::array()) << where;
    EXPECT_GT(page["charts"], 1) << where;
    if (!page["smallest_text"].is_null()) {
      EXPECT_GE(page["smallest_text"], 10) << where;
    }
    EXPECT_EQ(page["scrolled"], nlohmann::json::array()) << where;
    if (page["page"] == "report.html") {
      EXPECT_GT(page["heads"], 10) << where;
    }
    if (page["page"] == "running/") {
      EXPECT_THAT(page["text"], HasSubstr("5 (slowest)")) << where;
    }
    if (page["page"] != "failed/") continue;
    EXPECT_EQ(page["failed"], nlohmann::json::array({"3 (failed)"})) << where;
    EXPECT_THAT(page["text"], Not(HasSubstr("(slowest)"))) << where;
  }
}

}  // namespace
}  // namespace fleet
