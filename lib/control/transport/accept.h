// Accepting connections for as long as a server lives.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <utility>

namespace fleet {

// Calls `accept`, which accepts the next connection, after an accept that ended with `error`. If
// the process has no descriptor left, a new accept would fail at once, and keep a core busy: so it
// is called later, unless `pause` is destroyed or cancelled until then.
template <typename Accept>
void accept_again(const boost::system::error_code& error, boost::asio::steady_timer* pause,
                  Accept accept) {
  if (!error || error == boost::asio::error::connection_aborted) return accept();
  pause->expires_after(std::chrono::milliseconds(100));
  pause->async_wait([accept = std::move(accept)](boost::system::error_code cancelled) {
    if (!cancelled) accept();
  });
}

}  // namespace fleet
