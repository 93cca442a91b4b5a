// Horovod with its Gloo controller, which uses an HTTP key-value server.
#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <memory>

#include "base/error.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/planning/dialects/horovod_kv.h"
#include "transport/accept.h"

namespace fleet {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

Variables horovod_variables(const Assignment& assignment, int local_rank,
                            const RankContext& context) {
  // Its ranks of other nodes are those with the same local rank.
  const std::vector<int>& nodes = context.lists->nodes_with[static_cast<size_t>(local_rank)];
  const auto own = std::lower_bound(nodes.begin(), nodes.end(), assignment.node_rank);
  Variables all = {
      {"HOROVOD_RANK", std::to_string(assignment.node().first_rank() + local_rank)},
      {"HOROVOD_SIZE", std::to_string(assignment.world_size())},
      {"HOROVOD_LOCAL_RANK", std::to_string(local_rank)},
      {"HOROVOD_LOCAL_SIZE", std::to_string(assignment.node().local_world_size())},
      {"HOROVOD_CROSS_RANK", std::to_string(own - nodes.begin())},
      {"HOROVOD_CROSS_SIZE", std::to_string(nodes.size())},
      {"HOROVOD_HOSTNAME", assignment.node().address()},
      {"HOROVOD_CONTROLLER", "gloo"},
      {"HOROVOD_CPU_OPERATIONS", "gloo"},
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.0.0.1"},
      {"HOROVOD_GLOO_RENDEZVOUS_PORT", std::to_string(context.service_port)},
  };
  if (!context.interface.empty()) all.emplace_back("HOROVOD_GLOO_IFACE", context.interface);
  return all;
}

// One request, one response.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, std::weak_ptr<HorovodKv> kv)
      : socket_(std::move(socket)), kv_(std::move(kv)) {}

  void read() {
    socket_.async_read_some(asio::buffer(chunk_),
                            [self = shared_from_this()](boost::system::error_code error, size_t n) {
                              if (!error) self->on_bytes(std::string_view(self->chunk_, n));
                            });
  }

 private:
  void on_bytes(std::string_view bytes) {
    const auto kv = kv_.lock();
    if (!kv) return;
    switch (reader_.add(bytes)) {
      case HttpReader::State::kMore:
        return read();
      case HttpReader::State::kBad:
        return respond(400, "this is a key-value server");
      case HttpReader::State::kWhole:
        return kv->handle(reader_.request(),
                          [self = shared_from_this()](int status, const std::string& body) {
                            self->respond(status, body);
                          });
    }
  }

  void respond(int status, const std::string& body) {
    response_ = http_response(status, body);
    asio::async_write(socket_, asio::buffer(response_),
                      [self = shared_from_this()](boost::system::error_code, size_t) {
                        boost::system::error_code ignored;
                        self->socket_.shutdown(tcp::socket::shutdown_both, ignored);
                      });
  }

  tcp::socket socket_;
  std::weak_ptr<HorovodKv> kv_;
  HttpReader reader_;
  std::string response_;
  char chunk_[16384];
};

class HorovodService final : public RankService {
 public:
  explicit HorovodService(const ServiceContext& context)
      : kv_(std::make_shared<HorovodKv>(context.assignment, context.store)),
        acceptor_(context.loop.asio()),
        pause_(context.loop.asio()) {
    try {
      const tcp::endpoint where(asio::ip::address_v4::loopback(),
                                static_cast<unsigned short>(context.port));
      acceptor_.open(where.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));  // the port is held
      acceptor_.bind(where);
      acceptor_.listen();
    } catch (const boost::system::system_error& error) {
      throw Error(ErrorCode::kIo, error.what(), "the key-value server of --dialect horovod");
    }
    accept();
  }

  void on_rank_bytes(int, std::string_view) override {}

 private:
  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) std::make_shared<Connection>(std::move(socket), kv_)->read();
      accept_again(error, &pause_, [this] { accept(); });
    });
  }

  std::shared_ptr<HorovodKv> kv_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
};

}  // namespace

FLEET_DIALECT(horovod) {
  def.variables = horovod_variables;
  def.serve = [](const ServiceContext& context) -> std::unique_ptr<RankService> {
    return std::make_unique<HorovodService>(context);
  };
  def.needs_port = true;
}

}  // namespace fleet
