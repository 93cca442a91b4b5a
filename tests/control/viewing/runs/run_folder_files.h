// Folders as runs leave them, for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace fleet {

class RunFiles {
 public:
  RunFiles() {
    static int number = 0;
    path_ = ::testing::TempDir() + "run_files." + std::to_string(::getpid()) + "." +
            std::to_string(number++);
    std::filesystem::create_directories(path_);
  }
  ~RunFiles() { std::filesystem::remove_all(path_); }
  RunFiles(const RunFiles&) = delete;
  const std::string& path() const { return path_; }
  // Writes a file of the folder.
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

 private:
  std::string path_;
};

// Lines of metrics.jsonl.
inline std::string start_line(double time, int step, const std::string& more = "") {
  return R"({"event":"start","time":)" + std::to_string(time) +
         R"(,"model":"lenet","ranks":2,"device":"cpu","seed":1,"step":)" + std::to_string(step) +
         more + "}\n";
}
inline std::string train_line(double time, int step, const std::string& loss,
                              const std::string& more = "") {
  return R"({"event":"train","time":)" + std::to_string(time) + R"(,"step":)" +
         std::to_string(step) + R"(,"loss":)" + loss +
         R"(,"acc1":0.5,"learning_rate":0.1,"data_time":0.01,"batch_time":0.04,"speed":100)" +
         more + "}\n";
}
inline std::string test_line(double time, int step, const std::string& acc1) {
  return R"({"event":"test","time":)" + std::to_string(time) + R"(,"step":)" +
         std::to_string(step) + R"(,"epoch":0,"samples":10,"loss":0.4,"acc1":)" + acc1 +
         R"(,"seconds":0.5})" + "\n";
}
inline std::string summary_line(double time, int steps) {
  return R"({"event":"summary","time":)" + std::to_string(time) +
         R"(,"seconds":20,"start_seconds":1,"training_seconds":16,"evaluation_seconds":2,)" +
         R"("saving_seconds":1,"speed":120,"steps":)" + std::to_string(steps) +
         R"(,"stopped":false,"damaged":0})" + "\n";
}

}  // namespace fleet
