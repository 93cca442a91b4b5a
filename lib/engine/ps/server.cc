#include "ps/server.h"

#include "base/fault_point.h"
#include "base/log.h"
#include "base/running_clock.h"
#include "base/text.h"
#include "exec/backend.h"
#include "ps/block_store.h"
#include "ps/dense_server.h"
#include "ps/job_tables.h"
#include "ps/mode_limits.h"
#include "ps/server_loop.h"
#include "ps/table_host.h"

namespace fleet::ps {
namespace {

// The line of this server.
std::string own_line(const std::string& text, int server) {
  return std::string(lines_of(text)[static_cast<size_t>(server)]);
}

// In memory, with states.
size_t held_bytes(const Placement& placement, const std::vector<PlacedParameter>& parameters,
                  const std::vector<PlacedVar>& kept, int server) {
  size_t bytes = 0;
  for (const int i : placement.blocks_of(server)) {
    const Block& block = placement.blocks[i];
    bytes += static_cast<size_t>(block.elements()) * parameters[block.parameter].element_bytes;
  }
  for (size_t i = 0; i < kept.size(); ++i) bytes += placement.kept[i] == server ? kept[i].bytes : 0;
  return bytes;
}

}  // namespace

void run_server(const Job& job, const ProgramOptions& program, const ServerOptions& options) {
  Program trainer;
  {
    const Silence silence;  // trainer 0 logs the same
    trainer = build_program(job, program).program;
  }
  ServerOptions with_tables = options;
  with_tables.tables = tables_of(job, trainer);
  run_server(trainer, with_tables);
}

void run_server(const Program& trainer, const ServerOptions& options) {
  const ServedModel model = served_model(trainer);
  const Placement placement = place(model, options.servers);
  check_mode(options.mode, model, placement, options.tables);
  const std::unique_ptr<Device> device = choose_device("cpu", 0).device;
  const std::unique_ptr<BlockStore> store =
      make_block_store(server_program(trainer, model, placement, options.server), model, placement,
                       options.server, *device);
  const auto parameters = model.placed_parameters();
  const auto kept = model.placed_vars();
  TableHost tables(options.tables, options.server, options.servers, options.trainers, options.mode);
  DenseServer server({.own = {.trainers = options.trainers,
                              .server = options.server,
                              .servers = options.servers,
                              .mode = static_cast<uint32_t>(options.mode),
                              .parameters = model.hash_of_parameters(),
                              .rule = model.hash_of_rule(),
                              .placement = hash_of(placement, parameters, kept),
                              .tables = hash_of(options.tables)},
                      .tables = &tables,
                      .timeout = std::chrono::duration<double>(options.timeout).count()},
                     *store, running_seconds());
  fault_point("ps_listens");
  ServerLoop loop;
  const std::unique_ptr<Listener> listener = listen(options.address, loop, options.transport);
  const bool updates = options.mode != ServerMode::kGeo;
  const std::string line = own_line(text_of(placement, parameters, kept, updates), options.server);
  spdlog::info("{} at {}", line, listener->address());
  ServerCounters counters(listener->address(), std::ssize(placement.blocks_of(options.server)),
                          held_bytes(placement, parameters, kept, options.server),
                          options.mode != ServerMode::kSync, tables);
  loop.run(server, options.stop, {options.stopping, options.on_abandoned}, &counters);
  for (const std::string& text : tables.lines()) spdlog::info("{}", text);
}

}  // namespace fleet::ps
