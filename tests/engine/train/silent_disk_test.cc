// A disk or network mount that does not answer.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "base/file.h"
#include "tests/engine/train/trainer_job.h"

namespace fleet {
namespace {

// A pipe without room in place of a file: who writes to it waits until drain().
class FullPipe {
 public:
  explicit FullPipe(const std::string& path) {
    std::filesystem::remove(path);
    EXPECT_EQ(::mkfifo(path.c_str(), 0644), 0);
    fd_ = UniqueFd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const std::string zeros(4096, '0');
    while (::write(fd_.get(), zeros.data(), zeros.size()) > 0) ++pieces_;
    EXPECT_GT(pieces_, 0);
  }
  // The text written since the last call.
  std::string drain() {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = ::read(fd_.get(), buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  UniqueFd fd_;
  int pieces_ = 0;
};

class SilentDisk : public TrainerTest {
 protected:
  std::string checkpoints() const { return output_ + "/checkpoints"; }
  bool has_saved(int64_t step) const {
    const auto latest = latest_checkpoint(checkpoints());
    return latest && step_of_checkpoint(*latest) == step;
  }
};

TEST_F(SilentDisk, TrainingGoesOnAndNoLineIsLost) {
  run(job({"train.max_steps=2"}), 1);
  FullPipe metrics(output_ + "/metrics.jsonl");
  std::thread training([&] {
    run(job({"train.epochs=4", "train.fetch_every=1", "checkpoint.resume=auto"}), 1);
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!has_saved(16) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(has_saved(16)) << "training stands still";
  std::string lines;
  while (lines.find("\"summary\"") == std::string::npos &&
         std::chrono::steady_clock::now() < deadline) {
    lines += metrics.drain();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  training.join();
  lines += metrics.drain();
  for (int step = 2; step < 16; ++step) {
    const std::string wanted = "\"step\":" + std::to_string(step) + ",";
    EXPECT_NE(lines.find(wanted), std::string::npos) << wanted;
  }
}

}  // namespace
}  // namespace fleet
