// fleetrun top on running jobs: of this host, and through fleetds on two nodes.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "tests/control/daemon/jobs/fleetd_test_base.h"
#include "tests/control/daemon/jobs/http_get.h"
#include "tests/http_answer.h"
#include "tests/table_rows.h"
#include "tests/test_paths.h"
#include "tests/test_terminal.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
// Ranks that count steps of 50 ms; of these, rank 1 needs 45 itself, the others 20.
std::vector<std::string> counting_ranks(const std::string& last = "") {
  return {"sh", "-c",
          "test $RANK = 1 && own=45 || own=20; exec " + kHelper + " steps $own 50 " + last};
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Whether every rank has its rates, which takes some seconds.
bool complete(const nlohmann::json& frame, size_t ranks) {
  if (!frame.is_object() || frame["ranks"].size() != ranks) return false;
  return std::ranges::all_of(frame["ranks"], [](const nlohmann::json& rank) {
    return rank["step_ms"].is_number() && rank["cpu"].is_number();
  });
}

struct TopOfThisHost : ::testing::Test {
  ~TopOfThisHost() override {
    if (fleetrun) {
      fleetrun->signal(SIGTERM);
      fleetrun->wait();
    }
    EXPECT_THAT(job.survivors(30), IsEmpty());
  }
  void start(std::vector<std::string> program) {
    std::vector<std::string> arguments = {"--nproc_per_node=2", "--job_id=seen"};
    arguments.insert(arguments.end(), program.begin(), program.end());
    fleetrun = std::make_unique<Fleetrun>(job, "run", arguments);
  }
  std::pair<int, std::string> command(std::vector<std::string> words) {
    words.push_back("--fleetd_port=" + port);
    Fleetrun one(job, "command" + std::to_string(++commands), words);
    const int code = one.wait();
    return {code, one.output()};
  }
  // `top --once` until every rank has its rates. The bound is against hanging.
  nlohmann::json top() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    nlohmann::json frame;
    while (!complete(frame, 2) && std::chrono::steady_clock::now() < end) {
      const auto [code, text] = command({"top", "seen", "--once", "--format=json"});
      frame = code == 0 ? nlohmann::json::parse(text, nullptr, false) : nlohmann::json();
      ::poll(nullptr, 0, 100);
    }
    EXPECT_TRUE(complete(frame, 2)) << frame.dump();
    return frame;
  }

  JobFolder job;
  const std::string port = std::to_string(ReservedPort::any("127.0.0.1").port());
  std::unique_ptr<Fleetrun> fleetrun;
  int commands = 0;
};

TEST_F(TopOfThisHost, RanksThatCountSteps_AreSeenWithTheirRates) {
  start(counting_ranks());
  const nlohmann::json frame = top();
  EXPECT_EQ(frame["job_id"], "seen");
  EXPECT_EQ(frame["world_size"], 2);
  EXPECT_EQ(frame["target"], 1'000'000);
  EXPECT_GT(frame["step"], 0);
  EXPECT_TRUE(frame["seconds_left"].is_number());
  const nlohmann::json &first = frame["ranks"][0], &second = frame["ranks"][1];
  EXPECT_NEAR(first["step_ms"], 50, 1e-3);
  EXPECT_NEAR(first["samples_per_second"], 160, 1e-3);
  EXPECT_NEAR(first["peers_share"], 0.6, 1e-3);
  EXPECT_NEAR(second["peers_share"], 0.1, 1e-3);
  EXPECT_FALSE(first["slowest"]);
  EXPECT_TRUE(second["slowest"]);
  EXPECT_GT(first["memory"], 100'000);

  const auto [code, text] = command({"top", "--once", "--sort=ms"});  // the only job
  EXPECT_EQ(code, 0);
  const auto lines = split(text, '\n');
  EXPECT_EQ(lines[0].substr(0, lines[0].find("  ")), "job seen");
  EXPECT_THAT(words_of(text), IsSupersetOf({"STEP", "ms", "PEERS%", "1*"}));
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
}

TEST_F(TopOfThisHost, ProgressOfARunningJob_IsListed) {
  start(counting_ranks());
  top();
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  nlohmann::json status;
  while (std::chrono::steady_clock::now() < end) {  // its record is written every 5 s
    status = nlohmann::json::parse(command({"status", "seen", "--format=json"}).second);
    if (status[0]["progress"].is_object() && status[0]["progress"]["seconds_left"].is_number()) {
      break;
    }
    ::poll(nullptr, 0, 100);
  }
  EXPECT_EQ(status[0]["progress"]["target"], 1'000'000);
  const std::string step = table_rows(command({"ls"}).second).at(0)["STEP"];
  EXPECT_GT(std::stoi(step), 0) << step;
  EXPECT_EQ(step.substr(step.find('/')), "/1000000");
}

TEST_F(TopOfThisHost, AnyOtherProgram_HasCpuAndMemory) {
  start({"sh", "-c", "while :; do :; done"});
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  nlohmann::json rank;
  while (std::chrono::steady_clock::now() < end) {
    const auto [code, text] = command({"top", "seen", "--once", "--format=json"});
    if (code == 0) rank = nlohmann::json::parse(text)["ranks"];
    if (rank.size() == 2 && rank[0]["cpu"].is_number() && rank[0]["cpu"] > 0.05) break;
    ::poll(nullptr, 0, 100);
  }
  ASSERT_EQ(rank.size(), 2u);
  EXPECT_GT(rank[0]["cpu"], 0.05);
  EXPECT_GT(rank[0]["memory"], 100'000);
  EXPECT_TRUE(rank[0]["step"].is_null());
}

TEST_F(TopOfThisHost, JobThatEnds_EndsIt) {
  start({"sh", "-c", "while [ ! -e end ]; do sleep 0.01; done"});
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (command({"top", "seen", "--once"}).first != 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
  }
  Fleetrun lines(job, "lines", {"top", "seen", "--interval=0.1", "--fleetd_port=" + port});
  while (lines.output().find("CPU%") == std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << lines.output();
    ::poll(nullptr, 0, 20);
  }
  std::ofstream(job.path() + "/end").flush();
  EXPECT_EQ(fleetrun->wait(), 0);
  EXPECT_EQ(lines.wait(), 0) << lines.output();
  EXPECT_THAT(lines.output(), HasSubstr("job seen has ended"));
  fleetrun.reset();
}

TEST_F(TopOfThisHost, BadInput_IsOneLineAndTwo) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"top", "--sort=height"},
                                                {"top", "--format=xml"},
                                                {"top", "--interval=0"},
                                                {"top", "--by=job"},
                                                {"top", "--by=node", "--format=json"},
                                                {"top", "a", "b"},
                                                {"top", "--once=maybe"}}) {
    const auto [code, text] = command(words);
    EXPECT_EQ(code, 2) << text;
  }
  const auto [code, text] = command({"top", "--once"});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(text, HasSubstr("top: no job runs"));
  EXPECT_EQ(command({"top", "nowhere", "--once"}).first, 2);
}

TEST_F(TopOfThisHost, Metrics_AreThoseOfTheRanks) {
  const ReservedPort held = ReservedPort::any("127.0.0.1");
  const int metrics = held.port();
  std::vector<std::string> program = counting_ranks();
  program.insert(program.begin(), "--metrics=127.0.0.1:" + std::to_string(metrics));
  start(program);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  std::string text;
  while (std::chrono::steady_clock::now() < end) {
    text = http_get(metrics, "/metrics");
    if (text.find("fleetrun_rank_step_seconds") != std::string::npos &&
        text.find("fleetrun_rank_cpu_cores") != std::string::npos) {
      break;
    }
    ::poll(nullptr, 0, 100);
  }
  HttpAnswer answer = parse_http(text);
  EXPECT_EQ(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(
      split(answer.body, '\n'),
      IsSupersetOf({"fleetrun_rank_step_seconds{job_id=\"seen\",role=\"trainer\",rank=\"1\","
                    "node_rank=\"0\"} 0.05",
                    "fleetrun_job_ranks{job_id=\"seen\"} 2"}));
  EXPECT_EQ(parse_http(http_get(metrics, "/")).status, 404);
  if (std::system("command -v promtool >/dev/null") != 0) {
    GTEST_SKIP() << "promtool is not installed: apt-get install prometheus";
  }
  std::ofstream(job.path() + "/metrics.txt") << answer.body;
  EXPECT_EQ(std::system(("promtool check metrics <" + job.path() + "/metrics.txt").c_str()), 0);
}

TEST_F(TopOfThisHost, MetricsWithAToken_AskForIt) {
  const ReservedPort held = ReservedPort::any("127.0.0.1");
  const int metrics = held.port();
  const std::string file = job.path() + "/token", token = "0123456789abcdef0123456789";
  std::ofstream(file) << token;
  ::chmod(file.c_str(), 0600);
  start({"--metrics=127.0.0.1:" + std::to_string(metrics), "--metrics_token_file=" + file, "sh",
         "-c", ": >ready.$RANK; while :; do sleep 0.01; done"});
  job.wait_for("ready.0");
  const auto status = [&](const std::string& head) {
    return parse_http(http_get(metrics, "/metrics", head)).status;
  };
  EXPECT_EQ(status(""), 401);
  EXPECT_EQ(status("Authorization: Bearer " + token + "x\r\n"), 401);
  EXPECT_EQ(status("Authorization: Bearer " + token + "\r\n"), 200);
}

TEST_F(TopOfThisHost, MetricsPortThatIsTaken_EndsTheStart) {
  const ReservedPort taken = ReservedPort::any("127.0.0.1");
  std::vector<std::string> words = {"--metrics=127.0.0.1:" + std::to_string(taken.port()), "true"};
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(taken.port()));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  Fleetrun again(job, "again", words);
  EXPECT_EQ(again.wait(), 2) << again.output();
  EXPECT_THAT(again.output(), HasSubstr("cannot listen"));
}

struct TopByFleetd : FleetdTest {
  TopByFleetd() : FleetdTest(2) {}
};

// gRPC's threads do not take the signal, which would leave the terminal as it is.
TEST_F(TopByFleetd, Terminal_IsRestoredWhateverEndsIt) {
  const auto client = start("both", {}, endless());
  wait_for_ranks("both");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, 0}) {
    TestTerminal terminal;
    const auto input = std::make_unique<StandardInput>(terminal.path());
    Fleetrun top(job, "top" + std::to_string(++commands),
                 {"top", "both", "--ips=" + all_addresses(), "--fleetd_port=" + port}, {},
                 terminal.path());
    ASSERT_TRUE(terminal.wait_for("\x1b[?1049h\x1b[?25l"));
    ASSERT_TRUE(terminal.wait_for("q: end"));
    ASSERT_TRUE(terminal.wait_for("M memory"));  // once the ranks have reported
    terminal.type("M");
    ASSERT_TRUE(terminal.wait_for("[M memory]"));
    signal > 0 ? top.signal(signal) : terminal.type("q");
    EXPECT_TRUE(terminal.wait_for("\x1b[?25h\x1b[?1049l")) << signal;
    EXPECT_EQ(top.wait(), signal > 0 ? 128 + signal : 0);
  }
  run_command({"stop", "both"});
  client->wait();
}

TEST_F(TopByFleetd, RanksOfAllNodes_AreInOneFrame) {
  const auto client = start("both", {}, counting_ranks());
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  nlohmann::json frame;
  while (!complete(frame, 4) && std::chrono::steady_clock::now() < end) {
    Fleetrun command(job, "top" + std::to_string(++commands),
                     {"top", "both", "--once", "--format=json", "--ips=" + all_addresses(),
                      "--fleetd_port=" + port});
    frame = command.wait() == 0 ? nlohmann::json::parse(command.output(), nullptr, false)
                                : nlohmann::json();
    ::poll(nullptr, 0, 100);
  }
  ASSERT_TRUE(complete(frame, 4)) << frame.dump();
  EXPECT_EQ(frame["nnodes"], 2);
  EXPECT_EQ(frame["ranks"][0]["node_rank"], 0);
  EXPECT_EQ(frame["ranks"][3]["node_rank"], 1);
  EXPECT_TRUE(frame["ranks"][1]["slowest"]);
  run_command({"stop", "both"});
  client->wait();
  EXPECT_THAT(left(), IsEmpty());
}

}  // namespace
}  // namespace fleet
