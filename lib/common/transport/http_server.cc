#include "transport/http_server.h"

#include <strings.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstring>
#include <deque>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "transport/client_budgets.h"
#include "transport/grpc_setup.h"
#include "transport/tcp_listener.h"

namespace fleet {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// For a client to answer the end of TLS.
constexpr int kFarewellSeconds = 2;

// Up to the first character that is not of the alphabet: "=" at the end, too.
std::string from_base64(std::string_view text) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) break;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count & 0xff));
  }
  return bytes;
}

// Upper and lower case are the same in names of schemes (RFC 9110, 11.1).
bool has_scheme(std::string_view authorization, std::string_view scheme) {
  return authorization.size() >= scheme.size() &&
         ::strncasecmp(authorization.data(), scheme.data(), scheme.size()) == 0;
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

bool has_token(const HttpRequest& request, std::string_view token) {
  constexpr std::string_view kBearer = "Bearer ", kBasic = "Basic ";
  const std::string_view given = request.authorization;
  if (has_scheme(given, kBearer)) return equal_secrets(given.substr(kBearer.size()), token);
  if (!has_scheme(given, kBasic)) return false;
  const std::string login = from_base64(given.substr(kBasic.size()));  // "NAME:PASSWORD"
  const size_t colon = login.find(':');
  return colon != std::string::npos && equal_secrets(login.substr(colon + 1), token);
}

class HttpServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(EventLoop& loop, const std::string& address, int port, Handler handler, HttpsContext https,
       const HttpLimits& limits)
      : loop_(loop),
        handler_(std::move(handler)),
        https_(std::move(https)),
        limits_(limits),
        budget_({.burst = std::max(ConnectionBudget::Limits().burst, 1.0 * limits.connections),
                 .total = static_cast<size_t>(limits.connections)}) {
    TcpListeners found = listen_at(address, port, std::chrono::seconds(kSilentSeconds));
    if (found.error != 0) {
      throw Error(ErrorCode::kUsage, std::string("cannot listen: ") + std::strerror(found.error),
                  host_port(address, port), "choose another port");
    }
    port_ = found.port;
    for (UniqueFd& socket : found.sockets) {
      listeners_.emplace_back(loop, std::move(socket),
                              [this](UniqueFd connection, const sockaddr_storage& name) {
                                admit(std::move(connection), name);
                              });
    }
  }

  void accept() {
    for (LoopListener& listener : listeners_) listener.start();
  }
  void close() { listeners_.clear(); }
  int port() const { return port_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kSilentSeconds = HttpStream::kSilentSeconds;

  void admit(UniqueFd fd, const sockaddr_storage& name) {
    boost::system::error_code failed;
    tcp::socket socket(loop_.asio());
    socket.assign(name.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), fd.get(), failed);
    if (failed) return;
    fd.release();
    const Peer peer = peer_of(name);
    const ConnectionBudget::Decision decision =
        budget_.admit(peer.address, peer.connection, Clock::now());
    if (!decision.admitted) return;
    if (const auto found = unanswered_.find(decision.close); found != unanswered_.end()) {
      if (const auto excess = found->second.lock()) excess->shut();
    }
    const auto connection =
        std::make_shared<Connection>(loop_, std::move(socket), peer, shared_from_this());
    unanswered_[peer.connection] = connection;
    connection->begin();
  }

  // Its pending operations keep it alive; the timer ends them.
  class Connection : public HttpStream, public std::enable_shared_from_this<Connection> {
   public:
    Connection(EventLoop& loop, tcp::socket socket, Peer peer, const std::shared_ptr<Impl>& server)
        : socket_(std::move(socket)),
          peer_(std::move(peer)),
          timer_(loop),
          server_(server),
          reader_(server->limits_.body) {
      if (server->https_) tls_.emplace(socket_, *server->https_);
    }
    ~Connection() override { leave(); }
    const Peer& peer() const { return peer_; }

    void begin() {
      end_after(server_.lock()->limits_.seconds);
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
      timer_.after(std::chrono::seconds(seconds), [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->shut();
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
      if (server->open_streams_ >= server->limits_.connections) {
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
      if (queue_.empty()) return;  // shut in the meantime
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
    const Peer peer_;
    std::optional<asio::ssl::stream<tcp::socket&>> tls_;
    LoopTimer timer_;
    std::weak_ptr<Impl> server_;
    HttpReader reader_;
    std::deque<std::shared_ptr<const std::string>> queue_;  // the first is being written
    size_t queued_ = 0;
    bool responded_ = false, streams_ = false, ending_ = false, left_ = false,
         said_farewell_ = false;
    char chunk_[4096];
  };

  // well: the client did nothing wrong.
  void forget(const Connection& connection, bool well) {
    budget_.closed(connection.peer().address, connection.peer().connection, well, Clock::now());
    unanswered_.erase(connection.peer().connection);
  }

  EventLoop& loop_;
  const Handler handler_;
  const HttpsContext https_;
  const HttpLimits limits_;
  ConnectionBudget budget_;
  int port_ = 0;
  std::list<LoopListener> listeners_;
  std::unordered_map<std::string, std::weak_ptr<Connection>> unanswered_;  // by peer
  int open_streams_ = 0;
};

HttpServer::HttpServer(EventLoop& loop, const std::string& address, int port, Handler handler,
                       HttpsContext https, const HttpLimits& limits)
    : impl_(std::make_shared<Impl>(loop, address, port, std::move(handler), std::move(https),
                                   limits)) {
  impl_->accept();
}

HttpServer::~HttpServer() { impl_->close(); }

int HttpServer::port() const { return impl_->port(); }

}  // namespace fleet
