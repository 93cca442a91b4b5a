#include "daemon/ssh_greeting.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {
namespace {

constexpr size_t kMostPrinted = 1 << 20;

// Lives until its last wait has ended.
class GreetingReader : public std::enable_shared_from_this<GreetingReader> {
 public:
  using Done = std::function<void(UniqueFd, const std::string&)>;
  GreetingReader(EventLoop& loop, UniqueFd socket, Done done)
      : socket_(loop, std::move(socket)), done_(std::move(done)) {}

  void wait() {
    socket_.wait(LoopDescriptor::Event::kReadable,
                 [self = shared_from_this()](std::error_code error) {
                   error ? self->end({}) : self->read();
                 });
  }

 private:
  // Looks at the bytes before it takes them: those behind the greeting are gRPC's.
  void read() {
    char bytes[4096];
    const ssize_t size = ::recv(socket_.get(), bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return wait();
    if (size <= 0) return end({});
    const size_t taken = finder_.take({bytes, static_cast<size_t>(size)});
    if (::recv(socket_.get(), bytes, taken, 0) != static_cast<ssize_t>(taken)) return end({});
    if (finder_.found()) return end(socket_.release());
    finder_.gives_up() ? end({}) : wait();
  }

  void end(UniqueFd socket) { done_(std::move(socket), finder_.printed()); }

  LoopDescriptor socket_;
  GreetingFinder finder_;
  const Done done_;
};

}  // namespace

size_t GreetingFinder::take(std::string_view bytes) {
  const size_t before = seen_.size();
  seen_ += bytes;
  const size_t first = before - std::min(before, kSshGreeting.size() - 1);
  const size_t at = seen_.find(kSshGreeting, first);
  if (at == std::string::npos) return bytes.size();
  found_ = true;
  seen_.resize(at);
  return at + kSshGreeting.size() - before;
}

bool GreetingFinder::gives_up() const { return seen_.size() > kMostPrinted; }

void await_greeting(EventLoop& loop, UniqueFd socket,
                    std::function<void(UniqueFd, const std::string&)> done) {
  std::make_shared<GreetingReader>(loop, std::move(socket), std::move(done))->wait();
}

}  // namespace fleet
