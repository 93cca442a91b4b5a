#include "launch/starting/http_server.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "launch/planning/addresses.h"

namespace fleet {

namespace asio = boost::asio;
using asio::ip::tcp;

class HttpServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, const std::string& address, int port, Handler handler)
      : acceptor_(loop), handler_(std::move(handler)) {
    try {
      const tcp::endpoint where(asio::ip::make_address(address), static_cast<unsigned short>(port));
      acceptor_.open(where.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(where);
      acceptor_.listen();
    } catch (const boost::system::system_error& error) {
      throw Error(ErrorCode::kUsage, "cannot listen: " + error.code().message(),
                  endpoint(address, port), "choose another port");
    }
  }

  void accept() {
    acceptor_.async_accept(
        [weak = weak_from_this()](boost::system::error_code error, tcp::socket socket) {
          const auto self = weak.lock();
          if (!self || error == asio::error::operation_aborted) return;
          if (!error && self->open_ < kMostConnections) {
            std::make_shared<Connection>(std::move(socket), self)->begin();
          }
          self->accept();
        });
  }
  void close() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
  }
  int port() const { return acceptor_.local_endpoint().port(); }

 private:
  // Its pending operations keep it alive; the timer ends them.
  class Connection : public std::enable_shared_from_this<Connection> {
   public:
    Connection(tcp::socket socket, const std::shared_ptr<Impl>& server)
        : socket_(std::move(socket)), timer_(socket_.get_executor()), server_(server) {
      ++server->open_;
    }
    ~Connection() {
      if (const auto server = server_.lock()) --server->open_;
    }

    void begin() {
      timer_.expires_after(std::chrono::seconds(kSeconds));
      timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
        const auto self = weak.lock();
        if (!error && self) self->close();
      });
      read();
    }

   private:
    void read() {
      socket_.async_read_some(asio::buffer(chunk_), [self = shared_from_this()](
                                                        boost::system::error_code error, size_t n) {
        if (!error) self->on_bytes(std::string_view(self->chunk_, n));
      });
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
          return server->handler_(reader_.request(),
                                  [self = shared_from_this()](Response response) {
                                    self->respond(std::move(response));
                                  });
      }
    }

    void respond(const Response& response) {
      if (std::exchange(responded_, true)) return;
      bytes_ = http_response(response.status, response.body, response.type);
      asio::async_write(
          socket_, asio::buffer(bytes_),
          [self = shared_from_this()](boost::system::error_code, size_t) { self->close(); });
    }

    void close() {
      responded_ = true;
      timer_.cancel();
      boost::system::error_code ignored;
      socket_.shutdown(tcp::socket::shutdown_both, ignored);
      socket_.close(ignored);
    }

    tcp::socket socket_;
    asio::steady_timer timer_;
    std::weak_ptr<Impl> server_;
    HttpReader reader_;
    std::string bytes_;
    bool responded_ = false;
    char chunk_[4096];
  };

  tcp::acceptor acceptor_;
  const Handler handler_;
  int open_ = 0;
};

HttpServer::HttpServer(asio::io_context& loop, const std::string& address, int port,
                       Handler handler)
    : impl_(std::make_shared<Impl>(loop, address, port, std::move(handler))) {
  impl_->accept();
}

HttpServer::~HttpServer() { impl_->close(); }

int HttpServer::port() const { return impl_->port(); }

}  // namespace fleet
