// 200 ranks of a static program (this one) on one node: how long from the start of fleetrun until
// the last of them runs, against a loop of posix_spawn() of as many in the same run. Medians over
// interleaved rounds.
//
//   scripts/bench.sh spawn_200 [ROUNDS [RANKS]]     default 9 and 200; FLEETRUN: which one
//
// Ends with 1 where it takes more than twice as long.
// Builds: fleetrun
// Libraries: -static
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "tests/bench/times.h"
#include "tests/test_paths.h"

namespace {

constexpr double kAsked = 2;

int64_t now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// The rank: it notes when it began to run.
int note(const char* file) {
  const int64_t now = now_ns();
  const int fd = ::open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
  return fd >= 0 && ::write(fd, &now, sizeof now) == sizeof now ? 0 : 1;
}

class Rounds {
 public:
  Rounds(std::string fleetrun, std::string self, std::string folder, int ranks)
      : fleetrun_(std::move(fleetrun)),
        self_(std::move(self)),
        folder_(std::move(folder)),
        ranks_(ranks) {}

  double ours() {
    empty_notes();
    const int64_t begin = now_ns();
    const pid_t pid = start({fleetrun_, "--nproc_per_node=" + std::to_string(ranks_),
                             "--gpus=", "--log_dir=" + folder_ + "/log", self_, "--note", notes()});
    finish(pid);
    return until_last_ms(begin);
  }

  double theirs() {
    empty_notes();
    const int64_t begin = now_ns();
    std::vector<pid_t> pids;
    for (int i = 0; i < ranks_; ++i) pids.push_back(start({self_, "--note", notes()}));
    for (const pid_t pid : pids) finish(pid);
    return until_last_ms(begin);
  }

 private:
  std::string notes() const { return folder_ + "/notes"; }

  void empty_notes() {
    const int fd = ::open(notes().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) fail("notes");
    ::close(fd);
  }

  pid_t start(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, 2, (folder_ + "/errors").c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0600);
    pid_t pid = -1;
    if (::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ) != 0) fail(argv[0]);
    ::posix_spawn_file_actions_destroy(&actions);
    return pid;
  }

  void finish(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (status == 0) return;
    std::fprintf(stderr, "spawn_200: a program failed: see %s/errors\n", folder_.c_str());
    std::exit(1);
  }

  double until_last_ms(int64_t begin) {
    std::vector<int64_t> all(static_cast<size_t>(ranks_) + 1);
    const int fd = ::open(notes().c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t size = ::read(fd, all.data(), all.size() * sizeof all[0]);
    ::close(fd);
    if (size != static_cast<ssize_t>(ranks_ * sizeof all[0])) fail("not every rank ran");
    return static_cast<double>(*std::max_element(all.begin(), all.end()) - begin) * 1e-6;
  }

  const std::string fleetrun_, self_, folder_;
  const int ranks_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--note") == 0) return note(argv[2]);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9, ranks = argc > 2 ? std::atoi(argv[2]) : 200;
  const char* own = std::getenv("FLEETRUN");
  char folder[] = "/tmp/spawn_200_XXXXXX";
  if (!::mkdtemp(folder)) fail(folder);
  char self[4096] = {};
  if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) fail("/proc/self/exe");
  Rounds run(own ? own : fleet::program_folder() + "/fleetrun", self, folder, ranks);
  std::vector<double> ours, theirs;
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(run.ours());
    theirs.push_back(run.theirs());
  }
  const double ratio = fleet::median(ours) / fleet::median(theirs);
  std::printf("least: fleetrun %.1f ms, posix_spawn %.1f ms of %d\n",
              *std::min_element(ours.begin(), ours.end()),
              *std::min_element(theirs.begin(), theirs.end()), rounds);
  std::printf("spawn_%d: ratio %.2f (ours %.1f ms, posix_spawn %.1f ms; asked for <= %.0f: %s)\n",
              ranks, ratio, fleet::median(ours), fleet::median(theirs), kAsked,
              ratio <= kAsked ? "met" : "MISSED");
  std::string remove = std::string("rm -rf ") + folder;
  if (std::system(remove.c_str()) != 0) std::perror(folder);
  return ratio <= kAsked ? 0 : 1;
}
