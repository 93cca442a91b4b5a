#include "ps/server_counters.h"

#include <algorithm>
#include <utility>

#include "ps/dense_server.h"
#include "ps/table_host.h"

namespace fleet::ps {
namespace {

constexpr double kBetweenRecords = 0.25;  // seconds
constexpr double kBetweenLooks = 2;       // at tables, whose rows are counted by shard

}  // namespace

ServerCounters::ServerCounters(const std::string& address, int64_t blocks, size_t bytes, bool apart,
                               const TableHost& tables, ServerProgressWriter writer)
    : tables_(tables), writer_(std::move(writer)) {
  counts_.address.set(address);
  counts_.blocks = blocks;
  counts_.bytes = static_cast<int64_t>(bytes);
  counts_.apart = apart ? 1 : 0;
  counts_.tables = std::min<int64_t>(tables.size(), ServerProgress::kMaxTables);
  for (int t = 0; t < tables.size(); ++t) {
    const bool others = t >= ServerProgress::kMaxTables;
    table(static_cast<uint16_t>(t + 1))
        .name.set(others ? "others" : tables.table(t).settings().name);
  }
}

TableProgress& ServerCounters::table(uint16_t number) {
  const int last = ServerProgress::kMaxTables - 1;
  return counts_.table[static_cast<size_t>(std::min(number - 1, last))];
}

void ServerCounters::received(const Message& message) {
  counts_.received += static_cast<int64_t>(message.bytes());
  const MessageHeader& header = message.header;
  const bool push = header.type == MessageType::kPush, pull = header.type == MessageType::kPull;
  if (header.table == 0) {
    counts_.pushes += push;
    counts_.pulls += pull;
  } else if (header.table <= tables_.size()) {
    if (push) table(header.table).pushed += header.count;
  }
}

// A pull of changes (geo) does not name its rows, so answers are counted.
void ServerCounters::sent(const Message& message) {
  counts_.sent += static_cast<int64_t>(message.bytes());
  const MessageHeader& header = message.header;
  if (header.type != MessageType::kValues || header.table == 0) return;
  if (header.table <= tables_.size()) table(header.table).pulled += header.count;
}

void ServerCounters::look_at_tables() {
  for (TableProgress& one : counts_.table) one.rows = one.bytes = 0;
  for (int t = 0; t < tables_.size(); ++t) {
    const TableCounts counts = tables_.table(t).counts();
    TableProgress& one = table(static_cast<uint16_t>(t + 1));
    one.rows += counts.rows;
    one.bytes += counts.bytes;
  }
}

void ServerCounters::publish(const DenseServer& server, size_t queued, double now, bool last) {
  if (!last && published_ >= 0 && now - published_ < kBetweenRecords) return;
  published_ = now;
  if (last || looked_ < 0 || now - looked_ >= kBetweenLooks) {
    looked_ = now;
    look_at_tables();
  }
  counts_.at_ns = std::max<int64_t>(1, static_cast<int64_t>(1e9 * now));
  counts_.waited = static_cast<int64_t>(1e9 * server.waited_for_pushes());
  counts_.steps = server.version();
  counts_.ahead = server.ahead();
  counts_.queued = static_cast<int64_t>(queued);
  counts_.state = server.ending()                              ? ServerState::kEnding
                  : !server.complete() || server.version() < 0 ? ServerState::kStarting
                  : tables_.works()                            ? ServerState::kSaving
                                                               : ServerState::kServing;
  writer_.publish(counts_);
}

}  // namespace fleet::ps
