#include "launch/starting/http_server.h"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "launch/planning/addresses.h"
#include "launch/planning/refuse.h"
#include "transport/accept.h"
#include "transport/client_budgets.h"

namespace fleet {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// For a client to answer the end of TLS.
constexpr int kFarewellSeconds = 2;

// Asio does not, and programs that this process starts must not hold the port.
template <typename Socket>
void close_on_exec(Socket& socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

}  // namespace

std::string server_sent_event(std::string_view event, std::string_view data) {
  std::string text = "event: " + std::string(event) + "\n";
  for (;;) {
    const size_t end = std::min(data.find_first_of("\r\n"), data.size());
    text.append("data: ").append(data.substr(0, end)).append("\n");
    if (end == data.size()) return text + "\n";
    data.remove_prefix(end + (data.substr(end).starts_with("\r\n") ? 2 : 1));
  }
}

bool equal_secrets(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    difference |= static_cast<unsigned char>(one[i] ^ other[i]);
  }
  return difference == 0;
}

class HttpServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(EventLoop& loop, const std::string& address, int port, Handler handler, HttpsContext https)
      : acceptor_(loop.asio()),
        pause_(loop.asio()),
        handler_(std::move(handler)),
        https_(std::move(https)) {
    try {
      const tcp::endpoint where(asio::ip::make_address(address), static_cast<unsigned short>(port));
      acceptor_.open(where.protocol());
      close_on_exec(acceptor_);
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(where);
      acceptor_.listen();
    } catch (const boost::system::system_error& error) {
      refuse("cannot listen: " + error.code().message(), endpoint(address, port),
             "choose another port");
    }
  }

  void accept() {
    acceptor_.async_accept(
        [weak = weak_from_this()](boost::system::error_code error, tcp::socket socket) {
          const auto self = weak.lock();
          if (!self || error == asio::error::operation_aborted) return;
          if (!error) self->admit(std::move(socket));
          accept_again(error, &self->pause_, [weak] {
            if (const auto self = weak.lock()) self->accept();
          });
        });
  }
  void close() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }
  int port() const { return acceptor_.local_endpoint().port(); }

 private:
  using Clock = std::chrono::steady_clock;

  void admit(tcp::socket socket) {
    boost::system::error_code gone;
    const tcp::endpoint client = socket.remote_endpoint(gone);
    if (gone) return;
    close_on_exec(socket);
    const std::string address = client.address().to_string();
    const std::string peer = endpoint(address, client.port());
    const ConnectionBudget::Decision decision = budget_.admit(address, peer, Clock::now());
    if (!decision.admitted) return;
    if (const auto found = unanswered_.find(decision.close); found != unanswered_.end()) {
      if (const auto excess = found->second.lock()) excess->shut();
    }
    const auto connection =
        std::make_shared<Connection>(std::move(socket), address, peer, shared_from_this());
    unanswered_[peer] = connection;
    connection->begin();
  }

  // Its pending operations keep it alive; the timer ends them.
  class Connection : public HttpStream, public std::enable_shared_from_this<Connection> {
   public:
    Connection(tcp::socket socket, std::string address, std::string peer,
               const std::shared_ptr<Impl>& server)
        : socket_(std::move(socket)),
          address_(std::move(address)),
          peer_(std::move(peer)),
          timer_(socket_.get_executor()),
          server_(server) {
      if (server->https_) tls_.emplace(socket_, *server->https_);
    }
    ~Connection() override { leave(); }
    const std::string& address() const { return address_; }
    const std::string& peer() const { return peer_; }

    void begin() {
      end_after(kSeconds);
      if (!tls_) return read();
      tls_->async_handshake(asio::ssl::stream_base::server,
                            [self = shared_from_this()](boost::system::error_code error) {
                              error ? self->shut() : self->read();
                            });
    }

    bool open() const override { return streams_ && !ending_ && socket_.is_open(); }
    size_t queued() const override { return queued_; }
    bool send(std::shared_ptr<const std::string> bytes) override {
      if (!open() || bytes->empty()) return open();
      if (queued_ > 0 && queued_ + bytes->size() > kMaxQueued) return false;
      queued_ += bytes->size();
      queue_.push_back(std::move(bytes));
      if (queue_.size() == 1) write();
      return true;
    }
    void close() override {
      ending_ = true;
      if (queue_.empty()) end();
    }

    void shut() {
      leave();
      responded_ = ending_ = true;
      queue_.clear();
      queued_ = 0;
      timer_.cancel();
      boost::system::error_code ignored;
      socket_.shutdown(tcp::socket::shutdown_both, ignored);
      socket_.close(ignored);
    }

   private:
    // The place of a connection is free once it is shut, whoever still holds its stream.
    void leave() {
      const auto server = server_.lock();
      if (!server || std::exchange(left_, true)) return;
      if (streams_) {
        --server->open_streams_;
      } else {
        server->forget(*this, responded_);
      }
    }

    void end_after(int seconds) {
      timer_.expires_after(std::chrono::seconds(seconds));
      timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
        const auto self = weak.lock();
        if (!error && self) self->shut();
      });
    }

    void read() {
      auto done = [self = shared_from_this()](boost::system::error_code error, size_t n) {
        if (error) return self->shut();
        self->streams_ ? self->read() : self->on_bytes(std::string_view(self->chunk_, n));
      };
      const auto into = asio::buffer(chunk_);
      tls_ ? tls_->async_read_some(into, std::move(done))
           : socket_.async_read_some(into, std::move(done));
    }

    void on_bytes(std::string_view bytes) {
      const auto server = server_.lock();
      if (!server) return;
      switch (reader_.add(bytes)) {
        case HttpReader::State::kMore:
          return read();
        case HttpReader::State::kBad:
          return respond({.status = 400, .body = "bad request\n"});
        case HttpReader::State::kWhole:
          return server->handler_(
              reader_.request(),
              [self = shared_from_this()](const Response& response) { self->respond(response); });
      }
    }

    void respond(const Response& response) {
      if (std::exchange(responded_, true)) return;
      if (response.on_stream) return stream(response);
      queue_.push_back(std::make_shared<const std::string>(
          http_response(response.status, response.body, response.type, response.headers)));
      queued_ = queue_.back()->size();
      ending_ = true;
      write();
    }

    void stream(const Response& response) {
      const auto server = server_.lock();
      if (!server) return shut();
      if (server->open_streams_ >= kMaxConnections) {
        responded_ = false;
        return respond({.status = 503, .body = "too many streams\n"});
      }
      server->forget(*this, true);
      ++server->open_streams_;
      streams_ = true;
      timer_.cancel();
      send(std::make_shared<const std::string>(http_stream_head(response.type, response.headers)));
      read();  // the end of the connection
      response.on_stream(shared_from_this());
    }

    void write() {
      if (streams_) end_after(kSilentSeconds);
      auto done = [self = shared_from_this(), bytes = queue_.front()](
                      boost::system::error_code error, size_t) {
        error ? self->shut() : self->written();
      };
      const auto from = asio::buffer(*queue_.front());
      tls_ ? asio::async_write(*tls_, from, std::move(done))
           : asio::async_write(socket_, from, std::move(done));
    }

    void written() {
      if (queue_.empty()) return;  // shut meanwhile
      queued_ -= queue_.front()->size();
      queue_.pop_front();
      if (!queue_.empty()) return write();
      if (ending_) return end();
      timer_.cancel();
    }

    // TLS tells the client that nothing was cut off.
    void end() {
      if (!tls_) return shut();
      if (std::exchange(said_farewell_, true)) return;
      end_after(kFarewellSeconds);
      tls_->async_shutdown(
          [self = shared_from_this()](boost::system::error_code) { self->shut(); });
    }

    tcp::socket socket_;
    const std::string address_, peer_;
    std::optional<asio::ssl::stream<tcp::socket&>> tls_;
    asio::steady_timer timer_;
    std::weak_ptr<Impl> server_;
    HttpReader reader_{kMaxBody};
    std::deque<std::shared_ptr<const std::string>> queue_;  // the first is being written
    size_t queued_ = 0;
    bool responded_ = false, streams_ = false, ending_ = false, left_ = false,
         said_farewell_ = false;
    char chunk_[4096];
  };

  // well: the client did nothing wrong.
  void forget(const Connection& connection, bool well) {
    budget_.closed(connection.address(), connection.peer(), well, Clock::now());
    unanswered_.erase(connection.peer());
  }

  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  const Handler handler_;
  const HttpsContext https_;
  ConnectionBudget budget_{{.total = kMaxConnections}};
  std::unordered_map<std::string, std::weak_ptr<Connection>> unanswered_;  // by peer
  int open_streams_ = 0;
};

HttpServer::HttpServer(EventLoop& loop, const std::string& address, int port, Handler handler,
                       HttpsContext https)
    : impl_(std::make_shared<Impl>(loop, address, port, std::move(handler), std::move(https))) {
  impl_->accept();
}

HttpServer::~HttpServer() { impl_->close(); }

int HttpServer::port() const { return impl_->port(); }

}  // namespace fleet
