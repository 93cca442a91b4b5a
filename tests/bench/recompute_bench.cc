// ResNet-50's training step with a checkpoint a block against the step that keeps everything: the
// process's memory for activations (VmHWM after the steps, less VmRSS before the session and what
// the Plan says of parameters, states and feeds, which are alike) and time. Each in a process of
// its own, a step of each in turns.
//
//   bench_recompute [BATCH]
//
// Links: train backend_cpu
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/process_memory.h"
#include "tensor/host.h"
#include "tests/bench/resnet50_step.h"
#include "tests/bench/times.h"

namespace fleet {
namespace {

constexpr int kRounds = 7;
constexpr char kKeep[] = "{}";
constexpr char kRecompute[] =
    R"({"recompute": true, "recompute_configs": {"checkpoints": ["every block"]}})";

// A process that runs a step for every byte it is sent, and answers with {milliseconds, MiB of
// memory that the steps so far took}.
class StepProcess {
 public:
  StepProcess(int64_t batch, const char* strategy) {
    int to[2], from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(to[1]);
      ::close(from[0]);
      serve(batch, strategy, to[0], from[1]);
      ::_exit(0);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  ~StepProcess() {
    ::close(to_);
    ::close(from_);
    ::waitpid(pid_, nullptr, 0);
  }
  StepProcess(const StepProcess&) = delete;
  StepProcess& operator=(const StepProcess&) = delete;

  struct Answer {
    double milliseconds = 0, mib = 0, loss = 0;
  };
  Answer step() {
    Answer answer;
    if (::write(to_, "s", 1) != 1 || ::read(from_, &answer, sizeof answer) != sizeof answer) {
      std::fprintf(stderr, "a process ended\n");
      std::exit(1);
    }
    return answer;
  }

 private:
  static void serve(int64_t batch, const char* strategy, int in, int out) {
    HostDevice device;
    const int64_t before = process_memory().resident;
    bench::ResNet50Step step(device, batch, strategy);
    const PlannedMemory memory = step.executor().plan().memory();
    const int64_t others = before + memory.parameters + memory.states + memory.feeds;
    char byte;
    while (::read(in, &byte, 1) == 1) {
      const auto begin = std::chrono::steady_clock::now();
      step.run();
      Answer answer{.milliseconds = ms_since(begin)};
      answer.mib = static_cast<double>(process_memory().peak - others) / (1 << 20);
      answer.loss = step.loss();
      if (::write(out, &answer, sizeof answer) != sizeof answer) return;
    }
  }

  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

int run(int64_t batch) {
  StepProcess keep(batch, kKeep), recompute(batch, kRecompute);
  std::vector<double> ratios, kept_times, again_times;
  double kept_mib = 0, again_mib = 0;
  bool same = true;
  for (int round = -1; round < kRounds; ++round) {  // the first warms up
    const auto kept = keep.step(), again = recompute.step();
    same = same && kept.loss == again.loss;
    kept_mib = kept.mib;
    again_mib = again.mib;
    if (round < 0) continue;
    kept_times.push_back(kept.milliseconds);
    again_times.push_back(again.milliseconds);
    ratios.push_back(again.milliseconds / kept.milliseconds);
  }
  std::printf("ResNet50, batch %ld, float32; losses of %d steps %s\n", static_cast<long>(batch),
              kRounds + 1, same ? "are the same bits" : "DIFFER");
  std::printf("recompute_memory: ratio %.3f (ours %.0f MiB, keeping all %.0f MiB)\n",
              again_mib / kept_mib, again_mib, kept_mib);
  std::printf("recompute_time: ratio %.3f (ours %.0f ms, keeping all %.0f ms)\n", median(ratios),
              median(again_times), median(kept_times));
  return same ? 0 : 1;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::warn);
  return fleet::run(argc > 1 ? std::atoi(argv[1]) : 16);
}
