// A connection over a bidirectional stream of gRPC. Each frame is a message of the stream.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "ps/transport/stream_connection.h"

namespace fleet::ps {

// A connection has two calls. The first carries the frames. The second has a TCP connection of its
// own and no data, so that the kernel notices there that a host does not answer: on a busy
// connection, it cannot tell a lost host from a process that does not read.
inline constexpr char kStreamMethod[] = "/fleet.ps.Transport/Stream";
inline constexpr char kWatchMethod[] = "/fleet.ps.Transport/Watch";

// Metadata of the client.
inline constexpr char kVersionKey[] = "fleet-ps-version";
inline constexpr char kHostKey[] = "fleet-ps-host";  // host_identity(), if shared memory will do
// Metadata of the server's answer.
inline constexpr char kIdKey[] = "fleet-ps-id";          // random, for the calls that follow
inline constexpr char kLocalKey[] = "fleet-ps-local";    // the Unix socket for shared memory
inline constexpr char kClientKey[] = "fleet-ps-client";  // the client's address

// A value of metadata; "" if absent.
template <typename Metadata>
std::string metadata_value(const Metadata& all, const char* key) {
  const auto found = all.find(key);
  return found == all.end() ? std::string()
                            : std::string(found->second.data(), found->second.size());
}

// The frame as gRPC sends it: larger parts are not copied. `outgoing` learns when gRPC has released
// them.
grpc::ByteBuffer to_byte_buffer(Outgoing::Frame frame, const std::shared_ptr<Outgoing>& outgoing);

// Reactor: ClientBidiReactor or ServerBidiReactor of ByteBuffers. gRPC keeps the address of this
// object until OnDone(): `self_` keeps it alive.
template <typename Reactor>
class GrpcStream : public Reactor, public StreamConnection {
 public:
  using StreamConnection::StreamConnection;

  std::string transport() const override { return "grpc"; }

  void OnReadDone(bool ok) override {
    if (!ok) return stop();
    std::vector<grpc::Slice> slices;
    const bool whole = in_.Dump(&slices).ok();
    for (const grpc::Slice& slice : slices) {
      if (!feed({reinterpret_cast<const std::byte*>(slice.begin()), slice.size()})) return;
    }
    slices.clear();
    in_.Clear();
    if (!whole) return stop();
    const MutexLock lock(mutex_);
    reading_ = false;
    read_next();
    end_if_closed();
  }
  void OnWriteDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      out_.Clear();  // also the sender's memory
    }
    if (!ok) return stop();
    const MutexLock lock(mutex_);
    writing_ = false;
    if (out_is_close_) close_sent_ = true;
    write_next();
    end_if_closed();
  }

 protected:
  // With the first use of the stream.
  void start_reading() {
    const MutexLock lock(mutex_);
    read_next();
  }
  void start_sending() final {
    const MutexLock lock(mutex_);
    write_next();
  }
  void start_receiving() final {
    const MutexLock lock(mutex_);
    read_next();
  }
  // Uses the stream no more. Any thread, any number of times.
  void stop() {
    const MutexLock lock(mutex_);
    if (!std::exchange(over_, true)) on_over(false);
  }
  // Once: gRPC may end the stream now. well: both ends have closed it.
  virtual void on_over(bool well) FLEET_REQUIRES(mutex_) = 0;

  // For OnDone().
  void done(const std::string& reason) {
    const auto self = std::move(self_);
    ended(reason);
  }

  std::shared_ptr<GrpcStream> self_;
  Mutex mutex_;

 private:
  void read_next() FLEET_REQUIRES(mutex_) {
    if (reading_ || over_ || close_received_ || inbox_.full()) return;
    reading_ = true;
    this->StartRead(&in_);
  }
  void write_next() FLEET_REQUIRES(mutex_) {
    Outgoing::Frame frame;
    if (writing_ || over_ || !outgoing_->next(&frame)) return;
    writing_ = true;
    out_is_close_ = frame.header.kind == FrameKind::kClose;
    sent_ += static_cast<int64_t>(sizeof frame.header + frame.header.bytes);
    out_ = to_byte_buffer(std::move(frame), outgoing_);
    this->StartWrite(&out_);
  }
  void end_if_closed() FLEET_REQUIRES(mutex_) {
    if (close_sent_ && close_received_ && !std::exchange(over_, true)) on_over(true);
  }

  // gRPC's own while a read or a write is under way.
  grpc::ByteBuffer in_, out_;
  bool reading_ FLEET_GUARDED_BY(mutex_) = false;
  bool writing_ FLEET_GUARDED_BY(mutex_) = false;
  bool out_is_close_ FLEET_GUARDED_BY(mutex_) = false;
  bool close_sent_ FLEET_GUARDED_BY(mutex_) = false;
  bool over_ FLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace fleet::ps
