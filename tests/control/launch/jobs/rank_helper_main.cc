// Ranks in the tests of whole jobs that a shell script could not play.
//
//   listen PORT_VARIABLE   listens on the port of that variable ("ip:port" or "port") as servers
//   do,
//                          with SO_REUSEADDR; and sees that without it the port is taken
//   hold FIFO MARK         listens, as servers do, on its endpoint, rank 0 also on MASTER_PORT;
//   makes
//                          the file MARK.RANK, and ends when FIFO is opened for writing
//   store                  meets all ranks through the job's Store
//   write BYTES STREAMS [PIECE]
//                          writes so many bytes of lines "rank number checksum text" of random
//                          lengths, in pieces of random sizes (PIECE: of that size); STREAMS: 1
//                          standard output, 2 standard error, 3 each line to one of them
//   fill BYTES             writes so many bytes of lines as fast as it can
//   calls CALL...          makes a step and these calls of collectives of all ranks, as our engine
//                          records them: "all_reduce 4096 bucket_0 done", then sleeps; the last of
//                          the four words is done, started or issued. Word "end": it ends with 0
//   map FILE               maps a file, as a library that it has loaded, then sleeps
//   steps OWN STEP [LAST]  counts a step every STEP ms, of which OWN are its own and the rest is
//                          waiting for others; after step LAST it only writes and computes
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "observe/collective_log.h"
#include "observe/rank_progress.h"
#include "rendezvous/store_client.h"

namespace {

// The socket, or -1.
int listening(const std::string& address, int port, bool reuse) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = reuse ? 1 : 0;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, address.c_str(), &where.sin_addr);
  const bool bound =
      ::bind(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0 && ::listen(fd, 8) == 0;
  if (bound) return fd;
  ::close(fd);
  return -1;
}

bool can_listen(const std::string& address, int port, bool reuse) {
  const int fd = listening(address, port, reuse);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

bool hold_port(const std::string& name, const std::string& address, int port) {
  if (listening(address, port, true) >= 0) return true;  // as long as this process lives
  std::printf("CLASH: %s %s:%d: %s\n", name.c_str(), address.c_str(), port, std::strerror(errno));
  return false;
}

int hold(const std::string& fifo, const std::string& mark) {
  const std::string endpoint = std::getenv("PADDLE_CURRENT_ENDPOINT"), rank = std::getenv("RANK");
  const size_t colon = endpoint.rfind(':');
  bool held = hold_port("PADDLE_CURRENT_ENDPOINT", endpoint.substr(0, colon),
                        std::stoi(endpoint.substr(colon + 1)));
  if (rank == "0") {
    held &=
        hold_port("MASTER_PORT", std::getenv("MASTER_ADDR"), std::stoi(std::getenv("MASTER_PORT")));
  }
  if (!held) return 4;
  std::ofstream(mark + "." + rank).flush();
  return ::open(fifo.c_str(), O_RDONLY) < 0 ? 5 : 0;
}

int listen_on(const char* variable) {
  const char* value = std::getenv(variable);
  if (!value) return 3;
  const std::string text = value;
  const size_t colon = text.rfind(':');
  const std::string address = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  const int port = std::atoi(text.c_str() + (colon == std::string::npos ? 0 : colon + 1));
  if (can_listen(address, port, false)) {
    std::puts("the port was free for anybody");
    return 4;
  }
  if (!can_listen(address, port, true)) {
    std::puts("the port cannot be listened on with SO_REUSEADDR");
    return 5;
  }
  std::printf("listened on %s\n", text.c_str());
  return 0;
}

int count_steps(int own_ms, int step_ms, int last) {
  fleet::ProgressWriter progress = fleet::ProgressWriter::from_env();
  progress.planned(last == 0 ? 1'000'000 : last, 0);
  int64_t waited = 0;
  for (int step = 1; last == 0 || step <= last; ++step) {
    ::usleep(static_cast<useconds_t>(step_ms) * 1000);
    waited += (step_ms - own_ms) * int64_t{1'000'000};
    progress.step_done(step, 0,
                       {.waited = waited,
                        .samples = int64_t{step} * 8,
                        .time = step * (step_ms * int64_t{1'000'000}),
                        .exposed = waited,
                        .exchange = waited});
    if (step == 1) std::puts("stepping"), std::fflush(stdout);
  }
  for (volatile unsigned i = 0;; i = i + 1) {
    if (i % 10'000'000 == 0) std::puts("busy"), std::fflush(stdout);
  }
}

fleet::CollectiveKind kind_called(const std::string& name) {
  auto kind = fleet::CollectiveKind::kAllReduce;
  while (name_of(kind) != name)
    kind = static_cast<fleet::CollectiveKind>(static_cast<int>(kind) + 1);
  return kind;
}

int make_calls(char** words) {
  fleet::ProgressWriter progress = fleet::ProgressWriter::from_env();
  progress.step_done(1, 0, {});
  std::vector<int> ranks(static_cast<size_t>(std::atoi(std::getenv("WORLD_SIZE"))));
  std::iota(ranks.begin(), ranks.end(), 0);
  fleet::CollectiveLog& log = fleet::CollectiveLog::of_process();
  const int group = log.add_group("data parallel", ranks, false);
  for (int64_t number = 1; *words; words += 4, ++number) {
    if (std::string_view(*words) == "end") return 0;
    const std::string_view state = words[3];
    fleet::CollectiveRecord call;
    call.sequence = number;
    call.kind = kind_called(words[0]);
    call.bytes = std::atoll(words[1]);
    call.purpose = fleet::CollectivePurpose(words[2]);
    const fleet::CollectiveTicket ticket = log.issue(group, call);
    if (state != "issued") log.start(ticket);
    if (state == "done") log.finish(ticket);
  }
  std::puts("called"), std::fflush(stdout);
  for (;;) ::pause();
}

int meet_in_store() {
  using namespace std::chrono_literals;
  const auto store = fleet::connect_store_from_env();
  const int rank = std::atoi(std::getenv("RANK")), size = std::atoi(std::getenv("WORLD_SIZE"));
  store->set("rank" + std::to_string(rank), std::to_string(rank * rank));
  fleet::store_barrier(*store, "all", size, 30s);
  int sum = 0;
  for (int other = 0; other < size; ++other) {
    sum += std::atoi(store->get("rank" + std::to_string(other), 30s).c_str());
  }
  std::printf("sum %d\n", sum);
  return 0;
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0) std::_Exit(9);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

int write_lines(size_t bytes, int streams, size_t piece) {
  const std::string rank = std::getenv("RANK");
  std::mt19937 random(static_cast<unsigned>(std::stoi(rank)));
  std::string held[3], text(100'000, ' ');
  for (char& c : text) c = static_cast<char>('!' + random() % 90);
  size_t due[3] = {0, piece, piece}, written = 0;
  for (int number = 0; written < bytes; ++number) {
    const int fd = streams == 3 ? 1 + static_cast<int>(random() % 2) : streams;
    const size_t length = random() % 1000 == 0 ? random() % 60'000 : random() % 200;
    const std::string_view part = std::string_view(text).substr(random() % 30'000, length);
    const std::string line = rank + " " + std::to_string(number) + " " +
                             std::to_string(std::hash<std::string_view>{}(part)) + " ";
    held[fd].append(line).append(part).append("\n");
    written += line.size() + length + 1;
    if (held[fd].size() < due[fd]) continue;
    // Cut anywhere: a line comes in parts.
    const size_t size = piece ? held[fd].size() : 1 + random() % held[fd].size();
    write_all(fd, std::string_view(held[fd]).substr(0, size));
    held[fd].erase(0, size);
    due[fd] = piece ? piece : random() % 20'000;
  }
  for (const int fd : {1, 2}) write_all(fd, held[fd]);
  return 0;
}

// As a program with a buffer does.
int fill(size_t bytes) {
  const std::string rank = std::getenv("RANK");
  std::string block;
  for (int number = 0; block.size() < 1 << 16; ++number) {
    block += "rank " + rank + " step " + std::to_string(number) + " loss 0.693147 lr 0.1 ";
    block += std::string(static_cast<size_t>(number) % 80, 'x') + "\n";
  }
  for (size_t written = 0; written < bytes; written += block.size()) write_all(1, block);
  return 0;
}

int map_file(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED) return 1;
  ::pause();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    if (what == "listen" && argc > 2) return listen_on(argv[2]);
    if (what == "hold" && argc > 3) return hold(argv[2], argv[3]);
    if (what == "store") return meet_in_store();
    if (what == "fill" && argc > 2) return fill(std::stoul(argv[2]));
    if (what == "write" && argc > 3) {
      return write_lines(std::stoul(argv[2]), std::stoi(argv[3]),
                         argc > 4 ? std::stoul(argv[4]) : 0);
    }
    if (what == "map" && argc > 2) return map_file(argv[2]);
    if (what == "calls") return make_calls(argv + 2);
    if (what == "steps" && argc > 3) {
      return count_steps(std::atoi(argv[2]), std::atoi(argv[3]), argc > 4 ? std::atoi(argv[4]) : 0);
    }
  } catch (const fleet::Error& error) {
    std::puts(error.what());
    return 1;
  }
  return 64;
}
