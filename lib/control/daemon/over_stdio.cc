// fleetrun over_stdio: the node's side of --via=ssh, a client session over standard input and
// output. Accepts one job and ends with it. If the connection ends first, stops the job with its
// grace time.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>

#include "base/commands.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/client_session.h"
#include "daemon/job_table.h"
#include "daemon/message_stream.h"
#include "daemon/node_jobs.h"
#include "launch/planning/refuse.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

// Copies all data until its end.
void copy(int from, int to) {
  char buffer[65536];
  while (true) {
    const ssize_t size = ::read(from, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    for (ssize_t done = 0; done < size;) {
      const ssize_t written = ::write(to, buffer + done, static_cast<size_t>(size - done));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      done += written;
    }
  }
}

// gRPC needs a single socket, but ssh may provide two pipes.
struct StdioSocket {
  UniqueFd socket;
  int inside = -1;         // the other end of the socket
  std::future<void> sent;  // ready when the copy to standard output has ended
};

StdioSocket socket_of_stdio() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw_errno("cannot create a socket pair");
  }
  // The job's processes must not inherit the connection.
  const int in = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const int out = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (in < 0 || out < 0) throw_errno("standard input or output is closed");
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(null.get(), STDOUT_FILENO);
  const int ours = ends[1];
  const bool reads = start_detached([in, ours] {
    copy(in, ours);
    ::shutdown(ours, SHUT_RDWR);  // the client has closed the connection
  });
  const auto sent = std::make_shared<std::promise<void>>();
  StdioSocket result{UniqueFd(ends[0]), ours, sent->get_future()};
  const bool writes = reads && start_detached([out, ours, sent] {
                        copy(ours, out);
                        ::close(out);
                        ::shutdown(ours, SHUT_RDWR);
                        sent->set_value();
                      });
  if (!writes) {
    throw SystemError(ErrorCode::kIo, "cannot create a thread", EAGAIN, {}, Wanted::kProcess);
  }
  return result;
}

// Waits until gRPC's output has been sent, but not for a client that has stopped reading.
void flush_output(StdioSocket& stdio) {
  ::shutdown(stdio.inside, SHUT_RD);
  stdio.sent.wait_for(std::chrono::seconds(10));
}

int run_over_stdio(const CommandLine&) {
  if (::isatty(STDIN_FILENO) == 1) {
    refuse("--via=ssh runs this command on a node", "over_stdio", "see fleetrun --help");
  }
  set_up_logging("ERROR", "fleetrun");
  ::signal(SIGPIPE, SIG_IGN);
  StdioSocket stdio = socket_of_stdio();
  EventLoop loop;
  // ssh has already decided which user runs the commands.
  auto* jobs = new NodeJobs(loop, JobTable({}, visible_gpu_names()));
  std::unique_ptr<ClientSession> session;
  // Never destroyed: the process exits, and gRPC's threads with it.
  auto* server =
      new StreamServer(loop, std::move(stdio.socket), [&](std::shared_ptr<ServerStream> stream) {
        if (session) return stream->cancel();
        session = std::make_unique<ClientSession>(loop, *jobs, std::move(stream), [&] {
          loop.post([&] { jobs->when_idle([&loop] { loop.stop(); }); });
        });
      });
  (void)server;
  loop.run_until_stopped();
  flush_output(stdio);
  return 0;
}

}  // namespace

FLEET_COMMAND(over_stdio) {
  def.syntax = {.program = "fleetrun over_stdio",
                .about = "run a node's part of a job with --via=ssh"};
  def.run = run_over_stdio;
  def.internal = true;
}

}  // namespace fleet
