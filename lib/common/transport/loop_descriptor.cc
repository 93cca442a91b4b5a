#include "transport/loop_descriptor.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>
#include <utility>

#include "base/error.h"

namespace fleet {

using boost::asio::posix::stream_descriptor;

// Belongs to one open descriptor, so that a handler can tell whether its descriptor is still open.
struct LoopDescriptor::State {
  explicit State(EventLoop& loop) : descriptor(loop.asio()) {}
  stream_descriptor descriptor;
};

namespace {

stream_descriptor::wait_type asio_event(LoopDescriptor::Event event) {
  switch (event) {
    case LoopDescriptor::Event::kReadable:
      return stream_descriptor::wait_read;
    case LoopDescriptor::Event::kWritable:
      return stream_descriptor::wait_write;
    case LoopDescriptor::Event::kError:
      break;
  }
  return stream_descriptor::wait_error;
}

}  // namespace

LoopDescriptor::~LoopDescriptor() = default;

void LoopDescriptor::assign(UniqueFd fd) {
  close();
  auto state = std::make_shared<State>(loop_);
  boost::system::error_code error;
  state->descriptor.assign(fd.get(), error);
  if (error) throw SystemError(ErrorCode::kIo, "cannot wait for a descriptor", error.value(), {});
  fd.release();
  state_ = std::move(state);
}

int LoopDescriptor::get() const { return state_ ? state_->descriptor.native_handle() : -1; }

void LoopDescriptor::close() { state_.reset(); }

UniqueFd LoopDescriptor::release() {
  FLEET_CHECK(state_, "the release of a closed descriptor");
  UniqueFd fd(state_->descriptor.release());
  state_.reset();
  return fd;
}

void LoopDescriptor::wait(Event event, Handler handler) {
  FLEET_CHECK(state_, "a wait for a closed descriptor");
  state_->descriptor.async_wait(asio_event(event),
                                [weak = std::weak_ptr(state_),
                                 handler = std::move(handler)](boost::system::error_code error) {
                                  if (!weak.expired()) handler(error);
                                });
}

void LoopDescriptor::read_some(std::span<char> buffer,
                               std::function<void(std::error_code, size_t)> handler) {
  FLEET_CHECK(state_, "a read of a closed descriptor");
  state_->descriptor.async_read_some(boost::asio::buffer(buffer.data(), buffer.size()),
                                     [weak = std::weak_ptr(state_), handler = std::move(handler)](
                                         boost::system::error_code error, size_t size) {
                                       if (!weak.expired()) handler(error, size);
                                     });
}

}  // namespace fleet
