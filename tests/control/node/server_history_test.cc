#include "node/server_history.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace fleet {
namespace {

constexpr int64_t kServerSecond = 1'000'000'000;

struct ServerHistoryTest : ::testing::Test {
  ServerHistoryTest() {
    std::string pattern = ::testing::TempDir() + "fleet_servers.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    history.begin(folder + "/metrics.jsonl", /*overwrite=*/false);
  }
  ~ServerHistoryTest() override { std::filesystem::remove_all(folder); }

  void add(int server, int64_t second) {
    ServerProgress progress{.at_ns = second * kServerSecond,
                            .state = ServerState::kServing,
                            .pushes = 10 * second,
                            .busy = second * kServerSecond / 2,
                            .tables = 1};
    progress.table[0].name.set("embedding");
    progress.table[0].rows = second;
    history.add(server, progress, {second * kServerSecond, 1e9 + static_cast<double>(second)});
  }
  std::vector<Json> lines(const std::string& name = "servers.jsonl") {
    std::vector<Json> all;
    const std::string path = folder + "/" + name;
    if (!std::filesystem::exists(path)) return all;
    const std::string text = read_file(path);
    for (const std::string_view line : lines_of(text)) {
      if (!line.empty()) all.push_back(Json::parse(line));
    }
    return all;
  }

  std::string folder;
  ServerHistory history;
};

TEST_F(ServerHistoryTest, Reports_AreLinesNowAndThenAndAtTheEnd) {
  add(1, 100);
  EXPECT_TRUE(lines().empty());
  for (int second = 101; second <= 107; ++second) add(1, second);
  ASSERT_EQ(lines().size(), 1u);
  history.on_server_ended(1, {108 * kServerSecond, 1e9 + 108});
  const std::vector<Json> all = lines();
  ASSERT_EQ(all.size(), 2u);
  const Json& last = all[1];
  EXPECT_EQ(last.at("event").get<std::string>(), "server");
  EXPECT_EQ(last.at("server").get<int>(), 1);
  EXPECT_EQ(last.at("state").get<std::string>(), "serving");
  EXPECT_EQ(last.at("seconds").get<double>(), 7);
  EXPECT_EQ(last.at("pushes").get<int>(), 1070);
  EXPECT_EQ(last.at("table_rows").elements()[0].get<int>(), 107);
}

TEST_F(ServerHistoryTest, LaterJob_SetsTheFileAside) {
  for (const int second : {1, 9}) add(0, second);
  ServerHistory other;
  std::swap(history, other);
  history.begin(folder + "/metrics.jsonl", /*overwrite=*/false);
  for (const int second : {1, 9, 17}) add(0, second);
  EXPECT_EQ(lines("servers.jsonl.1").size(), 1u);
  EXPECT_EQ(lines().size(), 2u);
}

TEST_F(ServerHistoryTest, WithoutAFolder_NothingIsKept) {
  history.begin("", false);
  for (const int second : {1, 9}) add(0, second);
  EXPECT_TRUE(lines().empty());
}

}  // namespace
}  // namespace fleet
