// fleetrun data get, from a local HTTP server that breaks off, and from a folder.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/child_process.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/file.h"
#include "launch/tools/data_sets.h"
#include "tests/errors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Serves one file under every path, with ranges; the first `breaks` answers end after a third.
class HttpServer {
 public:
  HttpServer(std::string content, int breaks) : content_(std::move(content)), breaks_(breaks) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~HttpServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // The first lines of the requests, and their ranges: "GET /a from 100".
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void run() {
    for (;;) {
      const int peer = ::accept(listener_, nullptr, nullptr);
      if (peer < 0) return;
      answer(peer);
      ::close(peer);
    }
  }

  void answer(int peer) {
    std::string request;
    char piece[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::read(peer, piece, sizeof piece);
      if (got <= 0) return;
      request.append(piece, static_cast<size_t>(got));
    }
    const size_t range = request.find("Range: bytes=");
    const size_t from =
        range == std::string::npos ? 0 : std::strtoul(request.c_str() + range + 13, nullptr, 10);
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request.substr(0, request.find(" HTTP")) + " from " +
                          std::to_string(from));
    }
    std::string body = content_.substr(from);
    std::string head = from == 0 ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 206 Partial Content\r\n";
    if (from > 0) {
      head += "Content-Range: bytes " + std::to_string(from) + "-" +
              std::to_string(content_.size() - 1) + "/" + std::to_string(content_.size()) + "\r\n";
    }
    head += "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n";
    if (breaks_-- > 0) body.resize(body.size() / 3);
    head += body;
    for (size_t done = 0; done < head.size();) {
      const ssize_t sent = ::send(peer, head.data() + done, head.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) return;
      done += static_cast<size_t>(sent);
    }
  }

  const std::string content_;
  std::atomic<int> breaks_;
  int listener_ = -1, port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

class DataCommand : public ::testing::Test {
 protected:
  DataCommand() {
    folder_ = ::testing::TempDir() + "/data_command_" + std::to_string(::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    ::setenv("no_proxy", "127.0.0.1", 1);
    content_.resize(300'000);
    for (size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<char>(i * i >> 7);
    write_file_atomically(path("content"), content_);
    const ChildResult sum = run_child({.words = {"sha256sum", path("content")}});
    sha256_ = sum.output.substr(0, 64);
  }
  ~DataCommand() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string read(const std::string& name) const { return read_file(path(name)); }
  // A list with the set "small" of one file.
  void list(const std::string& url, const std::string& sha256) const {
    write_file_atomically(path("list.json"), R"({"small": {"files": [{"name": "a.bin", "url": ")" +
                                                 url + R"(", "bytes": 300000, "sha256": ")" +
                                                 sha256 + R"("}]}})");
  }
  std::string get(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"get", "small", path("out"), "--list=" + path("list.json")};
    words.insert(words.end(), more.begin(), more.end());
    ::testing::internal::CaptureStdout();
    try {
      EXPECT_EQ(run_command(*find_command("data"), words), 0);
    } catch (...) {
      ::testing::internal::GetCapturedStdout();
      throw;
    }
    return ::testing::internal::GetCapturedStdout();
  }

  std::string folder_, content_, sha256_;
};

TEST_F(DataCommand, Download_IsCheckedAndNotRepeated) {
  const HttpServer server(content_, 0);
  list(server.url() + "/x/a.bin", sha256_);
  EXPECT_THAT(get(), HasSubstr("data.root=" + path("out")));
  EXPECT_EQ(read("out/a.bin"), content_);
  EXPECT_THAT(get(), HasSubstr("is there already"));
  EXPECT_THAT(server.requests(), ElementsAre("GET /x/a.bin from 0"));
}

TEST_F(DataCommand, Interrupted_GoesOnWhereItStopped) {
  const HttpServer server(content_, 1);
  list(server.url() + "/a.bin", sha256_);
  EXPECT_THAT(thrown_by([&] { get(); }), IsError(ErrorCode::kIo, HasSubstr(server.url())));
  EXPECT_FALSE(fs::exists(path("out/a.bin")));
  get();
  EXPECT_EQ(read("out/a.bin"), content_);
  EXPECT_THAT(server.requests(), ElementsAre("GET /a.bin from 0", "GET /a.bin from 100000"));
}

TEST_F(DataCommand, WrongChecksum_LeavesNothing) {
  const HttpServer server(content_, 0);
  list(server.url() + "/a.bin", std::string(64, 'a'));
  EXPECT_THAT(thrown_by([&] { get(); }), IsError(ErrorCode::kIo, HasSubstr("/a.bin")));
  EXPECT_TRUE(fs::is_empty(path("out")));
}

TEST_F(DataCommand, ChecksumInCapitals_IsTheSame) {
  const HttpServer server(content_, 0);
  std::string capitals = sha256_;
  for (char& digit : capitals) digit = static_cast<char>(std::toupper(digit));
  list(server.url() + "/a.bin", capitals);
  get();
  EXPECT_EQ(read("out/a.bin"), content_);
}

TEST_F(DataCommand, ChecksumThatIsNone_IsRefusedBeforeTheDownload) {
  const HttpServer server(content_, 0);
  list(server.url() + "/a.bin", sha256_.substr(1));
  EXPECT_THAT(thrown_by([&] { get(); }), IsUsageError(path("list.json")));
  EXPECT_THAT(server.requests(), ::testing::IsEmpty());
}

TEST_F(DataCommand, Mirror_IsAUrlOrAFolder) {
  const HttpServer server(content_, 0);
  list("http://127.0.0.1:1/a.bin", sha256_);
  get({"--mirror=" + server.url() + "/m"});
  EXPECT_THAT(server.requests(), ElementsAre("GET /m/small/a.bin from 0"));
  fs::remove_all(path("out"));
  fs::create_directories(path("my mirror/small"));
  fs::copy_file(path("content"), path("my mirror/small/a.bin"));
  get({"--mirror=" + path("my mirror")});
  EXPECT_EQ(read("out/a.bin"), content_);
}

TEST_F(DataCommand, OtherFileThere_IsNotTouched) {
  list("http://127.0.0.1:1/a.bin", sha256_);
  fs::create_directories(path("out"));
  write_file_atomically(path("out/a.bin"), "precious");
  EXPECT_THAT(thrown_by([&] { get(); }), IsUsageError(path("out/a.bin")));
  EXPECT_EQ(read("out/a.bin"), "precious");
}

TEST_F(DataCommand, WrongWords_AreRefused) {
  const Command& data = *find_command("data");
  EXPECT_THAT(thrown_by([&] {
                run_command(data, {"get", "mnis", path("out")});
              }),
              AllOf(IsUsageError(), Advises(HasSubstr("mnist"))));
  EXPECT_THAT(thrown_by([&] { run_command(data, {"put", "mnist", path("out")}); }), IsUsageError());
  write_file_atomically(path("list.json"), "[");
  EXPECT_THAT(thrown_by([&] { get(); }), IsUsageError(path("list.json")));
  list("u", "../x");
  write_file_atomically(
      path("list.json"),
      R"({"s": {"files": [{"name": "../a", "url": "", "bytes": 1, "sha256": ""}]}})");
  EXPECT_THAT(thrown_by([&] { get(); }), IsUsageError(path("list.json")));
}

TEST(DataSets, Known_HaveSizesAndChecksums) {
  for (const DataSet& set : known_data_sets()) {
    EXPECT_FALSE(set.files.empty());
    for (const DataFile& file : set.files) {
      EXPECT_GT(file.bytes, 4000) << file.name;
      EXPECT_EQ(file.sha256.size(), 64u) << file.name;
      EXPECT_TRUE(file.url.starts_with("https://")) << file.url;
    }
  }
}

TEST_F(DataCommand, Cifar_BecomesIdxFilesOfInterleavedPixels) {
  std::string part;
  for (int image = 0; image < 2; ++image) {
    part += {static_cast<char>(9), static_cast<char>(image + 5)};
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 1024; ++i) part += static_cast<char>(c * 50 + i % 50 + image);
    }
  }
  write_file_atomically(path("part"), part);
  cifar_to_idx({path("part"), path("part")}, 2, path("images"), path("labels"));
  const std::string images = read("images"), labels = read("labels");
  EXPECT_EQ(images.substr(0, 20), std::string("\0\0\10\4\0\0\0\4\0\0\0\40\0\0\0\40\0\0\0\3", 20));
  EXPECT_EQ(labels, std::string("\0\0\10\1\0\0\0\4\5\6\5\6", 12));
  ASSERT_EQ(images.size(), 20u + 4 * 3072);
  EXPECT_EQ(images.substr(20 + 3072 + 3, 3), std::string({2, 52, 102}));
  write_file_atomically(path("part"), part.substr(1));
  EXPECT_THAT(thrown_by([&] { cifar_to_idx({path("part")}, 2, path("i"), path("l")); }),
              IsError(ErrorCode::kIo, path("part")));
}

}  // namespace
}  // namespace fleet
