#include "ps/client.h"

#include "ps/async_client.h"
#include "ps/geo_client.h"
#include "ps/mode_limits.h"

namespace fleet::ps {

std::unique_ptr<DenseClient> make_dense_client(ServedModel model, Placement placement,
                                               const DenseClientOptions& options,
                                               std::vector<ServedTable> tables) {
  check_mode(options.settings.mode, model, placement, options.tables);
  switch (options.settings.mode) {
    case ServerMode::kSync:
      break;
    case ServerMode::kAsync:
      return std::make_unique<AsyncClient>(std::move(model), std::move(placement), options,
                                           std::move(tables));
    case ServerMode::kGeo:
      return std::make_unique<GeoClient>(std::move(model), std::move(placement), options,
                                         std::move(tables));
  }
  return std::make_unique<DenseClient>(std::move(model), std::move(placement), options,
                                       std::move(tables));
}

std::unique_ptr<ParameterExchange> connect_servers(const Program& program,
                                                   const ClientOptions& options) {
  ServedModel model = served_model(program);
  Placement placement = place(model, static_cast<int>(options.servers.size()));
  const auto connect_to = [options](int server, ConnectionHandler& handler) {
    return connect(options.servers[static_cast<size_t>(server)], handler, options.transport,
                   options.connect_timeout);
  };
  DenseClientOptions client{.trainer = options.trainer,
                            .trainers = options.trainers,
                            .incarnation = options.incarnation,
                            .servers = options.servers,
                            .settings = options.settings,
                            .timeout = options.timeout,
                            .tables = options.tables,
                            .table_deltas = options.table_deltas,
                            .connect = connect_to};
  if (options.device) {
    client.allocate = [device = options.device](size_t bytes) {
      return device->allocate_host(bytes);
    };
  }
  return make_dense_client(std::move(model), std::move(placement), client, served_tables(program));
}

}  // namespace fleet::ps
