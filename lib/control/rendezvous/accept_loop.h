// A thread that accepts the connections of listening sockets.
#pragma once

#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <list>
#include <string>

#include "base/file.h"
#include "base/thread.h"

namespace fleet {

// Call add() before start(). Call stop() and the destructor from any thread but the loop's own.
class AcceptLoop {
 public:
  // Runs in the loop's thread. The connection is non-blocking and close-on-exec.
  using OnConnection = std::function<void(UniqueFd connection, const sockaddr_storage& peer)>;

  AcceptLoop(std::string name, OnConnection on_connection);
  ~AcceptLoop();  // stop()
  AcceptLoop(const AcceptLoop&) = delete;

  void add(UniqueFd listener);  // does not block
  void start();
  void stop_listening();  // closes the listeners; the thread keeps running; idempotent
  void stop();            // stops listening and ends the thread; idempotent
  bool running() const { return thread_.joinable(); }
  // For other work in the loop's thread.
  boost::asio::io_context& context() { return loop_; }

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;
  void wait(Descriptor& listener);
  void accept_some(Descriptor& listener);
  void back_off(Descriptor& listener);

  const std::string name_;
  const OnConnection on_connection_;
  boost::asio::io_context loop_{1};
  std::list<Descriptor> listeners_;
  Thread thread_;
};

}  // namespace fleet
