// Counts a server's work, for the launcher (observe/server_progress.h).
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "observe/server_progress.h"
#include "ps/message.h"

namespace fleet::ps {

class DenseServer;
class TableHost;

// For the thread of the server's loop.
class ServerCounters {
 public:
  // blocks, bytes: what it holds besides tables. apart: the mode is async or geo.
  ServerCounters(const std::string& address, int64_t blocks, size_t bytes, bool apart,
                 const TableHost& tables,
                 ServerProgressWriter writer = ServerProgressWriter::from_env());

  void received(const Message& message);
  void sent(const Message& message);
  void worked(double seconds) { counts_.busy += static_cast<int64_t>(1e9 * seconds); }
  // now: seconds. queued: messages that wait. Does nothing within a quarter of a second, unless it
  // is the last call.
  void publish(const DenseServer& server, size_t queued, double now, bool last = false);
  // With the totals of tables at the last publish().
  const ServerProgress& counts() const { return counts_; }

 private:
  void look_at_tables();
  TableProgress& table(uint16_t number);

  const TableHost& tables_;
  ServerProgressWriter writer_;
  ServerProgress counts_;
  double published_ = -1, looked_ = -1;
};

}  // namespace fleet::ps
