#include <gmock/gmock.h>

#include "tests/control/viewing/runs/run_folder_files.h"
#include "viewing/report/run_report.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string server_event(double time, int server, double busy, const std::string& more = "") {
  return R"({"event":"server","time":)" + std::to_string(time) + R"(,"server":)" +
         std::to_string(server) + R"(,"address":"host<b>:617)" + std::to_string(server) +
         R"(","seconds":10,"blocks":3,"block_bytes":1048576,"pushes":200,"pulls":200,)"
         R"("received_bytes":40000000,"sent_bytes":20000000,"late_seconds":2,"busy_seconds":)" +
         std::to_string(busy) + more + "}\n";
}

TEST(ServerLines, NewestLineOfEachServer_Counts) {
  const std::string lines = server_event(100, 0, 1) + "{damaged\n" + server_event(104, 0, 2) +
                            server_event(104, 1, 3) + server_event(900, 1, 9);
  const auto last = last_lines_of_servers(lines, 90, 200);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[0].number("busy_seconds"), 2);
  EXPECT_EQ(last[1].number("busy_seconds"), 3);
}

TEST(ServerTable, Servers_HaveRatesAndTheirTables) {
  RunReport report;
  EXPECT_EQ(server_table(report), "");
  const std::string table =
      R"(,"tables":["embedding"],"table_rows":[512],"table_bytes":[2097152],"pulled_rows":[5000],)"
      R"("pushed_rows":[4000])";
  report.servers = last_lines_of_servers(
      server_event(100, 0, 1, table) + server_event(100, 1, 5, table), 0, 200);
  const std::string html = server_table(report);
  for (const char* text : {"20.0", "4.0", "10.0 %", "50.0 %", "3.0 MiB", "512", "500", "400"}) {
    EXPECT_THAT(html, HasSubstr(std::string(">") + text + "<"));
  }
  EXPECT_THAT(html, HasSubstr("1 (busiest)"));
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
}

TEST(ServerTable, IsOnThePageOfARun) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0) + train_line(105, 0, "2.5") + summary_line(120, 2));
  run.write("verdict.json", R"({"verdict":"success","exit_code":0,"started":90,"time":121})");
  run.write("servers.jsonl", server_event(119, 0, 1));
  EXPECT_THAT(report_page(read_run_report(run.path(), run.path())), HasSubstr("Parameter servers"));
}

TEST(ServerTable, LastLinesOfAFailedServer_AreNotThoseOfARank) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0));
  run.write("verdict.json",
            R"({"verdict":"rank failed","exit_code":137,"started":90,"time":121,)"
            R"("rank":{"role":"server","rank":1,"log":"serverlog.1","last_lines":["one"]}})");
  const std::string page = report_page(read_run_report(run.path(), run.path()));
  EXPECT_THAT(page, HasSubstr("server 1, serverlog.1"));
  EXPECT_THAT(page, Not(HasSubstr("rank 1, serverlog.1")));
}

}  // namespace
}  // namespace fleet
