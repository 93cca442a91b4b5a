// Which server holds what, for --explain and --dry_run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/program.h"
#include "ps/tables/table_settings.h"
#include "ps/tables/virtual_shards.h"
#include "strategy/server_settings.h"

namespace fleet::ps {

// Elements [begin, end) of a parameter, in row-major order.
struct HeldBlock {
  std::string parameter;
  int64_t begin = 0, end = 0;
  bool whole = false;
  std::string text() const;  // "fc1.weight", "fc1.weight [0, 8192)"
};

struct HeldByServer {
  std::string line;  // "server 0 holds 3 blocks of 2 parameters: ..."
  size_t bytes = 0;  // values only
  std::vector<HeldBlock> blocks = {};
  std::vector<std::string> kept = {};  // what it only keeps: running statistics, frozen parameters
};

// A sparse table: its rows are created in training, so their number is not known.
struct HeldTable {
  std::string name, rule, storage;
  int dim = 0;
  size_t row_bytes = 0;     // values and states of a row in memory, without its place in the index
  int64_t cached_rows = 0;  // if the storage is a disk; 0: all are in memory
  int64_t most_ids = 0;     // in a trainer's batch
  // Bytes of one id of a batch, in a step with an update, without framing.
  size_t pushed_bytes = 0, pulled_bytes = 0;
  std::vector<ShardRange> shards = {};  // by server
  // "table embedding: dim 16, adagrad, 68 bytes a row in memory"
  std::string text() const;
};

struct ServersExplained {
  std::vector<HeldByServer> servers;
  std::vector<HeldTable> tables = {};
  // Of one trainer in a step that ends with an update, in geo in an exchange, without framing.
  size_t pushed_bytes = 0, pulled_bytes = 0;
};

// program: trainer 0's. tables: as served_tables(program) orders them. kUnsupported naming a
// key of the job that servers do not support, in this mode or any, as at the start.
ServersExplained servers_explained(const Program& program, int servers,
                                   const std::vector<TableSettings>& tables = {},
                                   ServerMode mode = ServerMode::kSync);

}  // namespace fleet::ps
