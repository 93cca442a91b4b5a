#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/errors.h"
#include "transport/event_loop.h"
#include "viewing/web/job_site.h"

namespace fleet {
namespace {

// The text of an event "lines".
std::string text_of(const std::string& event) {
  const std::string begin = "event: lines\ndata: ";
  EXPECT_THAT(event, ::testing::StartsWith(begin));
  EXPECT_THAT(event, ::testing::EndsWith("\n\n"));
  return nlohmann::json::parse(event.substr(begin.size()))["text"];
}

TEST(LogLines, WholeLines_AreSentOnce) {
  LogLines lines(false, true);
  EXPECT_EQ(lines.add("one"), "");
  const std::string event = lines.add(" line\nand ");
  EXPECT_EQ(text_of(event), "one line\n");
  EXPECT_THAT(event, ::testing::HasSubstr("\"error\":true"));
  EXPECT_EQ(text_of(lines.add("more\n")), "and more\n");
}

TEST(LogLines, FirstPartOfACutLine_IsLeftOut) {
  LogLines lines(true, false);
  EXPECT_EQ(lines.add("half\n"), "");
  EXPECT_EQ(text_of(lines.add("whole\n")), "whole\n");
}

TEST(LogLines, ColoursProgressBarsAndBrokenBytes_DoNotReachTheBrowser) {
  LogLines lines(false, false);
  EXPECT_EQ(text_of(lines.add("\x1b[31mred\x1b[0m\x1b]0;title\x07\n")), "red\n");
  EXPECT_EQ(text_of(lines.add("10 %\r20 %\rdone\n")), "done\n");
  const std::string broken = lines.add("a\xff z\n");
  EXPECT_TRUE(nlohmann::json::accept(broken.substr(broken.find('{')))) << broken;
}

TEST(LogLines, MarkupAndNewEvents_StayData) {
  LogLines lines(false, false);
  const std::string event = lines.add("<script>alert(1)</script>\nevent: ended\n\n");
  EXPECT_EQ(text_of(event), "<script>alert(1)</script>\nevent: ended\n\n");
  EXPECT_EQ(std::count(event.begin(), event.end(), '\n'), 3);  // one event of one field
}

// Takes everything until it is full.
class TestStream : public HttpStream {
 public:
  bool open() const override { return open_; }
  size_t queued() const override { return queued_; }
  bool send(std::shared_ptr<const std::string> bytes) override {
    all += *bytes;
    queued_ += bytes->size();
    return true;
  }
  void close() override { open_ = false; }
  void read() { queued_ = 0; }
  std::string all;

 private:
  bool open_ = true;
  size_t queued_ = 0;
};

TEST(LocalLog, LongLog_IsReadOnOnlyWhenTheBrowserReads) {
  std::string folder = ::testing::TempDir() + "fleet_log_stream.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  JobRecord::Rank rank;
  rank.set_log_path(folder + "/workerlog.0");
  std::ofstream log(rank.log_path());
  for (int i = 0; i < 100'000; ++i) log << "line " << i << "\n";
  log.flush();
  EventLoop loop;
  const auto stream = std::make_shared<TestStream>();
  stream_local_log(loop, rank, stream);
  EXPECT_THAT(stream->all, ::testing::HasSubstr("line 99999"));
  EXPECT_LT(stream->all.size(), 2 * static_cast<size_t>(kPastLogBytes));
  const size_t at_first = stream->all.size();
  for (int i = 0; i < 100'000; ++i) log << "later " << i << "\n";
  log.flush();
  loop.run_one();
  EXPECT_LE(stream->all.size(), at_first + 2 * static_cast<size_t>(kPastLogBytes));
  while (stream->all.find("later 99999") == std::string::npos) {
    stream->read();
    loop.run_one();
  }
  stream->close();
  loop.run();  // ends
  std::filesystem::remove_all(folder);
}

TEST(LocalLog, OutputThatIsNotKept_IsAnError) {
  EventLoop loop;
  EXPECT_THAT(
      thrown_by([&] { stream_local_log(loop, JobRecord::Rank(), std::make_shared<TestStream>()); }),
      IsError(ErrorCode::kNotFound, "rank 0"));
}

}  // namespace
}  // namespace fleet
