#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "base/running_clock.h"
#include "comm/gloo.h"
#include "comm/peer_wait_timer.h"

namespace fleet {
namespace {

// Time for the other ranks to report their progress. A rank that does not answer counts as late.
constexpr std::chrono::seconds kAnswerTime(2);

using Clock = std::chrono::steady_clock;

// watch_waits() ends waits instead.
constexpr std::chrono::hours kNoLimit{24 * 365};

// Adapts our Store to Gloo's interface. Every wait uses our timeout: Gloo's default is too short
// for nodes that start late, and its base class ignores the given one.
class StoreForGloo : public ::gloo::rendezvous::Store {
 public:
  // `check` throws if the group has failed, so that no rank waits for one that gave up.
  StoreForGloo(std::shared_ptr<fleet::Store> store, std::chrono::milliseconds timeout,
               std::function<void()> check)
      : store_(std::move(store)), timeout_(timeout), check_(std::move(check)) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(key, std::string_view(data.data(), data.size()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = wait_for(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) wait_for(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

 private:
  std::string wait_for(const std::string& key) {
    RunningDeadline deadline(timeout_);
    for (;;) {
      check_();
      try {
        return store_->get(key, std::min(timeout_, std::chrono::milliseconds(500)));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kTimeout || deadline.passed()) throw;
      }
    }
  }
  std::shared_ptr<fleet::Store> store_;
  std::chrono::milliseconds timeout_;
  std::function<void()> check_;
};

// Gloo writes to sockets whose peer may be gone, and SIGPIPE would end the process. While this
// object lives, SIGPIPE is blocked for this thread and for threads that it starts.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~WithoutSigpipe() {
    if (sigismember(&before_, SIGPIPE)) return;
    const timespec now = {};
    while (::sigtimedwait(&sigpipe_, nullptr, &now) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t sigpipe_, before_;
};

}  // namespace

GlooLink::GlooLink(const CommOptions& options)
    : options_(options), group_{options.rank, options.size, options.names} {
  monitor_ =
      std::make_unique<PeerMonitor>(options, group_, [this](const Error& error) { fail(error); });
  if (group_.size == 1) return;
  const std::string& host = options.nodes[options.rank];
  const WithoutSigpipe quiet;  // also applies to Gloo's own thread, which starts here
  try {
    ::gloo::transport::tcp::attr attributes(host.c_str());
    std::shared_ptr<::gloo::transport::Device> device =
        ::gloo::transport::tcp::CreateDevice(attributes);
    auto context = std::make_shared<::gloo::rendezvous::Context>(options.rank, options.size);
    // Gloo waits five times this value for a connection. Waits for messages pass their own timeout.
    context->setTimeout(std::max(options.timeout / 5, std::chrono::milliseconds(1)));
    StoreForGloo store(with_prefix(options.store, options.group + "/gloo/"), options.timeout,
                       [this] { check(); });
    context->connectFullMesh(store, device);
    context_ = context;
    watch_ = Thread("gloo_watch", [this] { watch_waits(); });
  } catch (const Error& error) {
    if (fail(error)) monitor_->report(error_for_peers(error, group_));
    throw;
  } catch (const std::exception& error) {
    check();  // a peer's failure is the better explanation
    const Error ours(ErrorCode::kPeerLost,
                     group_.name_of(group_.rank) + " on " + host +
                         " cannot connect to the other ranks: " + error.what(),
                     "communicator", "check that this node's address is right and reachable");
    if (fail(ours)) monitor_->report(ours);
    check();
  }
}

GlooLink::~GlooLink() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

void GlooLink::watch_waits() {
  const auto interval = std::clamp<std::chrono::milliseconds>(
      options_.timeout / 8, std::chrono::milliseconds(5), RunningDeadline::kLook);
  const MutexLock lock(mutex_);
  while (!ends_) {
    changed_.wait_for(mutex_, interval);
    for (MessageBuffer* message : buffers_) {
      if (!message->deadline_ || !message->deadline_->passed()) continue;
      message->late_ = true;
      message->buffer_->abortWaitRecv();
      message->buffer_->abortWaitSend();
    }
  }
}

void GlooLink::check() const {
  if (!failed_) return;
  const MutexLock lock(mutex_);
  throw *error_;
}

bool GlooLink::fail(const Error& error) {
  const MutexLock lock(mutex_);
  if (error_) return false;
  error_ = error;
  failed_ = true;
  changed_.notify_all();
  for (MessageBuffer* message : buffers_) {
    message->buffer_->abortWaitRecv();
    message->buffer_->abortWaitSend();
  }
  return true;
}

void GlooLink::abort(const Error& why) {
  if (fail(why)) monitor_->report(error_for_peers(why, group_));
}

std::string GlooLink::late_names(const Operation& operation) {
  const std::vector<int> late =
      monitor_->ranks_behind(*operation.ranks, operation.group_id, operation.count, kAnswerTime);
  return late.empty() ? "" : group_.name_of(late);
}

void GlooLink::explain(int peer, const Operation& operation, bool late, const std::string& what) {
  if (late) {
    std::string names = late_names(operation);
    if (names.empty()) names = group_.name_of(peer);  // the peer is on time, but no data arrives
    const Error error = ranks_late_error(names, options_.timeout.count());
    if (fail(error)) monitor_->report(error);
    check();
  }
  {
    // The first rank that failed, or the peer monitor, explains why the connection broke: either
    // within an instant or after it has found the late rank (Gloo closes a connection that timed
    // out).
    const MutexLock lock(mutex_);
    const auto deadline = Clock::now() + 2 * kAnswerTime;
    while (!error_ && Clock::now() < deadline) {
      bool left = false;
      {
        const MutexUnlock unlock(mutex_);
        left = monitor_->has_left(peer);
      }
      if (left || error_) break;
      changed_.wait_for(mutex_, std::chrono::milliseconds(20));
    }
  }
  const Error error = monitor_->has_left(peer)
                          ? rank_left_error(group_.name_of(peer))
                          : Error(ErrorCode::kPeerLost,
                                  "the connection to " + group_.name_of(peer) + " broke: " + what,
                                  "communicator", "look at the log of that rank");
  if (fail(error)) monitor_->report(error);
  check();
  throw error;  // not reached: check() throws the first failure
}

GlooLink::MessageBuffer::MessageBuffer(GlooLink& link, const Operation& operation, void* data,
                                       size_t bytes)
    : link_(link), operation_(operation) {
  buffer_ = link.context_->createUnboundBuffer(data, bytes);
  const MutexLock lock(link_.mutex_);
  if (link_.error_) throw *link_.error_;
  link_.buffers_.insert(this);
}

GlooLink::MessageBuffer::~MessageBuffer() {
  const MutexLock lock(link_.mutex_);
  link_.buffers_.erase(this);
}

template <typename Body>
void GlooLink::MessageBuffer::guarded(int peer, const Body& body) {
  link_.check();
  std::string what;
  try {
    if (body()) return;
    what = "aborted";
  } catch (const std::exception& error) {
    what = error.what();
  }
  link_.check();
  const bool late = [&] {
    const MutexLock lock(link_.mutex_);
    return late_;
  }();
  link_.explain(peer, operation_, late, what);
}

template <typename Wait>
bool GlooLink::MessageBuffer::in_time(const Wait& wait) {
  {
    const MutexLock lock(link_.mutex_);
    deadline_.emplace(link_.options_.timeout);
  }
  bool done = false;
  try {
    done = wait();
  } catch (...) {
    const MutexLock lock(link_.mutex_);
    deadline_.reset();
    throw;
  }
  const MutexLock lock(link_.mutex_);
  deadline_.reset();
  return done && !late_;
}

void GlooLink::MessageBuffer::send(int to, uint64_t slot, size_t offset, size_t bytes) {
  guarded(to, [&] {
    const WithoutSigpipe quiet;
    buffer_->send(to, slot, offset, bytes);
    return true;
  });
  const std::vector<std::string>& nodes = link_.options_.nodes;
  operation_.traffic->sent(bytes, nodes[to] != nodes[link_.group_.rank]);
}

void GlooLink::MessageBuffer::recv(int from, uint64_t slot, size_t offset, size_t bytes) {
  guarded(from, [&] {
    const WithoutSigpipe quiet;  // because it announces the buffer
    buffer_->recv(from, slot, offset, bytes);
    return true;
  });
  operation_.traffic->received(bytes);
}

void GlooLink::MessageBuffer::wait_send(int to) {
  const PeerWaitTimer waiting;
  guarded(to, [&] { return in_time([&] { return buffer_->waitSend(nullptr, kNoLimit); }); });
}

void GlooLink::MessageBuffer::wait_recv(int from) {
  const PeerWaitTimer waiting;
  guarded(from, [&] { return in_time([&] { return buffer_->waitRecv(nullptr, kNoLimit); }); });
}

}  // namespace fleet
