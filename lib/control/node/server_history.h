// Keeps the work of parameter servers in servers.jsonl of the log folder
// (docs/reference/metrics.md), for `fleetrun report`.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "node/step_history.h"
#include "observe/server_progress.h"

namespace fleet {

// For one node. Creates nothing before the first report of a server. A file that cannot be written
// is one warning, and is tried again. Not thread-safe.
class ServerHistory {
 public:
  using Moment = StepHistory::Moment;

  // The servers start (again). metrics_path: of metrics.jsonl in the same folder; "": nothing is
  // kept. The file of an earlier job is set aside, or with `overwrite` removed.
  void begin(const std::string& metrics_path, bool overwrite);
  // Writes a line every few seconds for each server, and when it ends.
  void add(int server, const ServerProgress& progress, Moment now);
  void on_server_ended(int server, Moment now);

 private:
  struct Server {
    ServerProgress last;
    int64_t begun_ns = 0, written_ns = 0;
  };
  void write(int server, Server& of, Moment now);

  std::string path_;
  bool overwrite_ = false, opened_ = false, failed_ = false;
  std::map<int, Server> servers_;
};

}  // namespace fleet
