// The pages of fleetrun top --web and fleetd --web, with running jobs: as raw HTTP, and in a
// browser (web_page.py), where there is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "tests/browser.h"
#include "tests/control/daemon/jobs/fleetd_test_base.h"
#include "tests/control/daemon/jobs/http_get.h"
#include "tests/http_answer.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
// Where a page is, from a line of output with its address.
struct PageAddress {
  int port = 0;
  std::string token;
  std::string cookie() const {
    return "Cookie: fleetrun_" + std::to_string(port) + "=" + token + "\r\n";
  }
  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(port) + "/?token=" + token;
  }
};

template <typename Text>
PageAddress page_in(const Text& text_now) {
  const std::string begin = "http://127.0.0.1:", middle = "/?token=";
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < end) {
    const std::string text = text_now();
    const size_t at = text.find(begin), token = text.find(middle);
    if (token != std::string::npos && text.find('\n', token) != std::string::npos) {
      return {std::atoi(text.c_str() + at + begin.size()), text.substr(token + middle.size(), 32)};
    }
    ::poll(nullptr, 0, 10);
  }
  ADD_FAILURE() << "no address: " << text_now();
  return {};
}

// The data of the last event of this kind in a stream; null if there is none.
nlohmann::json event_in(const std::string& stream, const std::string& kind) {
  const std::string begin = "event: " + kind + "\ndata: ";
  const size_t at = stream.rfind(begin);
  if (at == std::string::npos) return {};
  const size_t data = at + begin.size();
  return nlohmann::json::parse(stream.substr(data, stream.find('\n', data) - data), nullptr, false);
}

// A picture of the page at `url`, and what a person would see, as web_page.py says it.
nlohmann::json look_at(const std::string& url, const std::string& picture,
                       const std::string& wait_for) {
  const std::string folder = program_folder() + "/web_pages";  // of this build alone
  std::filesystem::create_directories(folder);
  const std::string out = folder + "/" + picture;
  const std::string script = source_folder() + "/tests/control/daemon/jobs/web_page.py";
  const int status = std::system(("python3 -B " + script + " '" + url + "' " + out + " '" +
                                  wait_for + "' >" + out + ".json 2>" + out + ".err")
                                     .c_str());
  std::ifstream file(out + ".json"), errors(out + ".err");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string why((std::istreambuf_iterator<char>(errors)), {});
  EXPECT_EQ(status, 0) << why;
  std::printf("pictures: %s.*.png\n", out.c_str());
  return nlohmann::json::parse(text, nullptr, false);
}

// Ranks that count steps of 50 ms, and write lines that would be markup.
std::vector<std::string> ranks_with_markup() {
  return {"sh", "-c",
          "echo '<script>document.title=\"caught\"</script><b>bold</b> of rank '$RANK; test $RANK "
          "= 1 && own=45 || own=20; exec " +
              program_folder() + "/launch_rank_helper steps $own 50"};
}

struct WebOfTop : ::testing::Test {
  ~WebOfTop() override {
    for (Fleetrun* one : {top.get(), fleetrun.get()}) {
      if (!one) continue;
      one->signal(SIGTERM);
      one->wait();
    }
    EXPECT_THAT(job.survivors(30), IsEmpty());
  }
  void start(std::vector<std::string> program, const std::string& name = "seen") {
    std::vector<std::string> arguments = {"--nproc_per_node=2", "--job_id=" + name};
    arguments.insert(arguments.end(), program.begin(), program.end());
    fleetrun = std::make_unique<Fleetrun>(job, "run", arguments);
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < end) {
      Fleetrun once(job, "once", {"top", "--once", "--fleetd_port=" + port});
      if (once.wait() == 0) break;
      ::poll(nullptr, 0, 50);
    }
    top = std::make_unique<Fleetrun>(
        job, "top", std::vector<std::string>{"top", "--web", "--fleetd_port=" + port});
    page = page_in([this] { return top->output(); });
  }
  std::string get(const std::string& path, const std::string& until = "") const {
    return http_get(page.port, path, page.cookie(), until);
  }

  JobFolder job;
  const std::string port = std::to_string(ReservedPort::any("127.0.0.1").port());
  std::unique_ptr<Fleetrun> fleetrun, top;
  PageAddress page;
};

TEST_F(WebOfTop, Page_IsServedToThoseWithTheToken) {
  start(ranks_with_markup());
  for (const char* path : {"/", "/events", "/log?rank=0"}) {
    EXPECT_EQ(parse_http(http_get(page.port, path)).status, 401) << path;
  }
  HttpAnswer entry = parse_http(http_get(page.port, "/?token=" + page.token));
  EXPECT_EQ(entry.status, 303);
  EXPECT_EQ(entry.headers["Set-Cookie"], "fleetrun_" + std::to_string(page.port) + "=" +
                                             page.token + "; Path=/; HttpOnly; SameSite=Strict");
  const std::pair<const char*, const char*> files[] = {
      {"/", "text/html"}, {"/page.js", "text/javascript"}, {"/page.css", "text/css"}};
  for (const auto& [path, type] : files) {
    HttpAnswer file = parse_http(get(path));
    EXPECT_EQ(file.status, 200) << path;
    EXPECT_EQ(file.headers["Content-Type"], std::string(type) + "; charset=utf-8") << path;
    EXPECT_TRUE(file.headers.contains("Content-Security-Policy")) << path;
    EXPECT_FALSE(file.body.empty()) << path;
  }
  EXPECT_THAT(get("/"), HasSubstr("<script src=\"page.js\" defer>"));
  for (const char* path : {"/nothing", "/../etc/passwd", "//", "/log", "/log?rank=x"}) {
    EXPECT_GE(parse_http(get(path)).status, 400) << path;
  }
}

TEST_F(WebOfTop, Events_AreTheFramesOfTop) {
  start(ranks_with_markup());
  const std::string stream = get("/events", "\"slowest\":true");
  EXPECT_EQ(parse_http(stream).headers["Content-Type"], "text/event-stream");
  EXPECT_TRUE(event_in(stream, "history")["points"].is_array());
  const nlohmann::json frame = event_in(stream, "frame");
  EXPECT_EQ(frame["job_id"], "seen");
  EXPECT_EQ(frame["ranks"].size(), 2u);
  EXPECT_TRUE(frame["ranks"][1]["slowest"]);
  const nlohmann::json history = event_in(get("/events", "event: history"), "history");
  ASSERT_FALSE(history["points"].empty());  // also for those who come later
  EXPECT_EQ(history["points"].back()["ranks"].size(), 2u);
}

// A page that is opened late has the curves from the job's start: its launcher keeps them.
TEST_F(WebOfTop, History_BeginsBeforeThePage) {
  start(ranks_with_markup());
  ASSERT_FALSE(event_in(get("/events", "\"slowest\":true"), "frame").is_null());
  const double opened = unix_seconds();
  Fleetrun later(job, "later", {"top", "--web", "--fleetd_port=" + port});
  const PageAddress second = page_in([&] { return later.output(); });
  const std::string stream = http_get(second.port, "/events", second.cookie(), "\"points\":[{");
  const nlohmann::json history = event_in(stream, "history");
  ASSERT_FALSE(history["points"].empty());
  EXPECT_LT(history["points"][0]["time"], opened);
  later.signal(SIGINT);
  EXPECT_EQ(later.wait(), 0);
}

TEST_F(WebOfTop, Log_IsSentAndFollowed) {
  start({"sh", "-c",
         "echo first $RANK; while [ ! -e more ]; do sleep 0.01; done; echo later; "
         "while :; do sleep 0.01; done"});
  EXPECT_THAT(get("/log?rank=1", "first 1"), Not(HasSubstr("later")));
  std::ofstream(job.path() + "/more");
  EXPECT_THAT(get("/log?rank=1", "later"), HasSubstr("first 1"));
  EXPECT_THAT(get("/log?rank=7", "event: refused"), HasSubstr("rank 7"));
}

TEST_F(WebOfTop, JobThatFails_LeavesItsVerdictOnThePage) {
  start({"sh", "-c", "while [ ! -e end ]; do sleep 0.01; done; test $RANK = 0 || exit 5"});
  std::ofstream(job.path() + "/end");
  for (int browser = 0; browser < 2; ++browser) {  // also to one that comes later
    const nlohmann::json outcome = event_in(get("/events", "event: ended"), "ended");
    EXPECT_EQ(outcome["state"], "failed (5)");
    EXPECT_EQ(outcome["failed"], nlohmann::json({{"role", "trainer"}, {"rank", 1}}));
    EXPECT_THAT(outcome["text"], HasSubstr("rank 1"));
  }
  EXPECT_THAT(top->output(), HasSubstr("failed (5)"));
  fleetrun->wait();
  fleetrun.reset();
  top->signal(SIGINT);
  EXPECT_EQ(top->wait(), 0);
  top.reset();
}

// A browser that stops reading, and many that vanish.
TEST_F(WebOfTop, BrowsersThatVanish_LeaveThePageToOthers) {
  start(ranks_with_markup());
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(event_in(get("/events", "event: history"), "history").is_object());
  }
  EXPECT_TRUE(event_in(get("/events", "event: frame"), "frame").is_object());
}

TEST_F(WebOfTop, AddressesThatOthersReach_AreRefused) {
  for (const char* word : {"--web=0.0.0.0:0", "--web=there"}) {
    Fleetrun one(job, std::string("refused") + word, {"top", word, "--fleetd_port=" + port});
    EXPECT_EQ(one.wait(), 2) << one.output();
    EXPECT_EQ(count_of(one.output(), "\n"), 1u) << one.output();
  }
  Fleetrun one(job, "refused", {"top", "--web", "--once", "--fleetd_port=" + port});
  EXPECT_EQ(one.wait(), 2);
}

TEST_F(WebOfTop, Browser_ShowsTheJobOnAnyScreen) {
  if (const char* missing = browser_missing()) GTEST_SKIP() << missing;
  start(ranks_with_markup(), "seen<b>&amp;");
  const nlohmann::json seen = look_at(page.url(), "fleet_web_top", "bold");
  ASSERT_TRUE(seen.is_object());
  EXPECT_EQ(seen["messages"],
            nlohmann::json::array());  // of the console, and of requests that failed
  EXPECT_EQ(seen["elsewhere"], nlohmann::json::array());
  ASSERT_EQ(seen["screens"].size(), 3u);
  for (const nlohmann::json& screen : seen["screens"]) {
    EXPECT_LE(screen["content_width"], screen["width"]) << screen.dump();
    EXPECT_EQ(screen["name"], "seen<b>&amp;");  // as text
    EXPECT_EQ(screen["curves"], 2)              // they report no loss
        << screen.dump();
    EXPECT_EQ(screen["rows"], 2) << screen.dump();
    EXPECT_TRUE(screen["heat"]) << screen.dump();
    EXPECT_THAT(screen["log"], HasSubstr("<script>document.title=\"caught\"</script><b>bold</b>"));
    EXPECT_THAT(screen["title"], Not(HasSubstr("caught")));
  }
}

struct WebOfFleetd : FleetdTest {
  WebOfFleetd() : FleetdTest(1) {}
};

TEST_F(WebOfFleetd, Jobs_AreListedAndEachHasItsPage) {
  fleetds[0].reset();
  more_options = {"--web=127.0.0.1:0"};
  start_fleetd(0);
  const PageAddress page = page_in([this] {
    const std::string text = fleetds[0]->output(), end = ".web has its address";
    const size_t at = text.find(end), begin = text.rfind(' ', at) + 1;
    std::string line;
    std::getline(std::ifstream(text.substr(begin, at - begin) + ".web"), line);
    return line + "\n";
  });
  EXPECT_THAT(fleetds[0]->output(), Not(HasSubstr(page.token)));  // others may read a log
  EXPECT_EQ(parse_http(http_get(page.port, "/events")).status, 401);
  const auto get = [&](const std::string& path, const std::string& until = "") {
    return http_get(page.port, path, page.cookie(), until);
  };
  EXPECT_EQ(event_in(get("/events", "event: jobs"), "jobs")["jobs"], nlohmann::json::array());
  const auto client = start("both", {}, ranks_with_markup());
  const std::string list = get("/events", "\"job_id\":\"both\",\"state\":\"running\"");
  EXPECT_EQ(event_in(list, "jobs")["jobs"][0]["number"], 1);
  EXPECT_EQ(get("/jobs/1/"), get("/"));
  EXPECT_EQ(get("/jobs/1/page.css"), get("/page.css"));
  EXPECT_EQ(event_in(get("/jobs/1/events", "\"slowest\":true"), "frame")["job_id"], "both");
  EXPECT_FALSE(event_in(get("/jobs/1/log?rank=1", "of rank 1"), "lines").is_null());
  for (const char* path : {"/jobs/9/", "/jobs/1", "/jobs/x/", "/jobs/", "/jobs/1/../2/"}) {
    EXPECT_EQ(parse_http(get(path)).status, 404) << path;
  }
  if (!browser_missing()) {
    const nlohmann::json seen = look_at(page.url(), "fleet_web_fleetd", "both");
    EXPECT_EQ(seen["messages"], nlohmann::json::array());
    for (const nlohmann::json& screen : seen["screens"]) {
      EXPECT_LE(screen["content_width"], screen["width"]) << screen.dump();
    }
  }
  run_command({"stop", "both"});
  client->wait();
  const std::string ended = get("/jobs/1/events", "event: ended");
  EXPECT_EQ(event_in(ended, "ended")["state"], "stopped (SIGTERM)");
  EXPECT_FALSE(event_in(ended, "history")["points"].empty());  // outlives the job
  const nlohmann::json curves = event_in(get("/events", "event: curves"), "curves");
  EXPECT_EQ(curves["jobs"][0]["number"], 1);
  EXPECT_FALSE(curves["jobs"][0]["points"].empty());
  EXPECT_THAT(left(), IsEmpty());
  if (const char* missing = browser_missing()) GTEST_SKIP() << "without a browser: " << missing;
}

}  // namespace
}  // namespace fleet
