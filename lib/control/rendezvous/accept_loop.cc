#include "rendezvous/accept_loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <utility>

namespace fleet {

AcceptLoop::AcceptLoop(std::string name, OnConnection on_connection)
    : name_(std::move(name)), on_connection_(std::move(on_connection)) {}

AcceptLoop::~AcceptLoop() { stop(); }

void AcceptLoop::add(UniqueFd listener) { listeners_.emplace_back(loop_, listener.release()); }

void AcceptLoop::start() {
  for (auto& listener : listeners_) wait(listener);
  thread_ = Thread(name_, [this] {
    // Runs until stop(), because others post work to it after listening has ended.
    const auto keep = boost::asio::make_work_guard(loop_);
    loop_.run();
  });
}

void AcceptLoop::stop_listening() {
  if (!running()) return listeners_.clear();
  std::promise<void> closed;
  boost::asio::post(loop_, [&] {
    for (auto& listener : listeners_) {
      boost::system::error_code ignored;
      listener.close(ignored);
    }
    closed.set_value();
  });
  closed.get_future().wait();
}

void AcceptLoop::stop() {
  loop_.stop();
  if (thread_.joinable()) thread_.join();
  listeners_.clear();
}

void AcceptLoop::wait(Descriptor& listener) {
  listener.async_wait(Descriptor::wait_read, [this, &listener](boost::system::error_code error) {
    if (!error && listener.is_open()) accept_some(listener);
  });
}

void AcceptLoop::accept_some(Descriptor& listener) {
  for (int i = 0; i < 64; ++i) {  // then give the thread's other work a turn
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    UniqueFd fd(::accept4(listener.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size,
                          SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      on_connection_(std::move(fd), peer);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return back_off(listener);
    } else if (errno == EAGAIN) {
      return wait(listener);
    }  // the peer has gone again: accept the next one
  }
  wait(listener);
}

// No descriptor is left: connections wait in the kernel's queue until one is free.
void AcceptLoop::back_off(Descriptor& listener) {
  auto timer = std::make_shared<boost::asio::steady_timer>(loop_, std::chrono::milliseconds(100));
  timer->async_wait([this, &listener, timer](boost::system::error_code) {
    if (listener.is_open()) wait(listener);
  });
}

}  // namespace fleet
