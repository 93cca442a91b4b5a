// Connections through shared memory, between processes of one user on one host. Both ends have
// agreed on one over an authenticated connection: `id` is their secret.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/mutex.h"
#include "comm/segment.h"
#include "ps/transport/shared_ring.h"
#include "ps/transport/stream_connection.h"

namespace fleet::ps {

// Equal for processes that may share memory: this boot of this host, and this user.
std::string host_identity();

// Two rings; and a Unix socket, over which a sleeping reader is woken, and whose end tells that the
// other process has ended. The reading thread calls the handler.
class SharedConnection final : public StreamConnection {
 public:
  // The client's end. `socket`: the server's Unix socket in gRPC's notation. Null if it cannot be
  // reached, or does not accept in time: in a container of its own, for example.
  static std::shared_ptr<SharedConnection> connect(const std::string& socket, const std::string& id,
                                                   const std::string& peer,
                                                   ConnectionHandler& handler,
                                                   std::chrono::milliseconds timeout);
  // The server's end of an accepted connection. find: the name of the client of this id; "": there
  // is none. Null, and the socket is closed, if the client is another user's or does not say within
  // 2 s what it wants.
  static std::shared_ptr<SharedConnection> accept(
      UniqueFd socket, const std::function<std::string(const std::string& id)>& find,
      ConnectionHandler& handler);

  SharedConnection(std::string peer, ConnectionHandler& handler, UniqueFd socket,
                   std::shared_ptr<fleet::Segment> memory, bool is_client);
  // The server's end, before begin(): tells the client.
  void confirm();
  // Starts its threads. call_opened: one of them calls opened(). Throws kIo if the system refuses
  // them.
  void begin(bool call_opened);
  std::string transport() const override { return "shm"; }
  void break_off(const Error& why) override;

 private:
  void start_sending() override;
  void abandon() override;
  void wake_writer();

  void write_all();
  void write(const Outgoing::Frame& frame) FLEET_REQUIRES(writing_);
  void write(std::span<const std::byte> bytes) FLEET_REQUIRES(writing_);
  void publish() FLEET_REQUIRES(writing_);

  void read_all();
  bool wait_for_data();
  bool other_end_is_gone();
  void end_if_closed();

  const UniqueFd socket_;
  const std::shared_ptr<fleet::Segment> memory_;
  SharedRing& out_;
  SharedRing& in_;
  std::atomic<bool> over_{false};
  std::atomic<bool> broken_off_{false};
  std::atomic<bool> close_sent_{false};
  Mutex writing_;  // held by the thread that writes to the ring
  Mutex mutex_;
  CondVar changed_;
  bool wanted_ FLEET_GUARDED_BY(mutex_) = false;  // the writing thread shall look
  std::optional<Error> why_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace fleet::ps
