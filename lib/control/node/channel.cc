#include "node/channel.h"

#include <utility>

namespace fleet {

Channel::Channel(boost::asio::io_context& loop, UniqueFd socket,
                 std::function<void(WireMessage)> on_message, std::function<void()> on_closed)
    : on_message_(std::move(on_message)),
      stream_(
          loop, std::move(socket),
          [this](std::string_view bytes) {
            incoming_ += bytes;
            WireMessage message;
            while (decode(incoming_, &message)) on_message_(std::move(message));
          },
          std::move(on_closed)) {}

}  // namespace fleet
