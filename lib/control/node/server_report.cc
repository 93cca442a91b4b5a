#include <algorithm>
#include <string>

#include "node/rank_steps.h"

namespace fleet {

void add_server_use(const ServerUse& use, wire::RankSteps* steps) {
  wire::ServerUse& to = *steps->mutable_servers();
  to.set_updates(use.updates);
  to.set_pushes(use.pushes);
  to.set_pulls(use.pulls);
  to.set_sent(use.sent);
  to.set_received(use.received);
  to.set_push_ns(use.push_wait);
  to.set_values_ns(use.values_wait);
  to.set_rows_ns(use.rows_wait);
  to.set_queued(use.queued);
  to.set_capacity(use.capacity);
  to.set_stale(use.stale);
  to.set_most_stale(use.most_stale);
  const auto servers = std::clamp<int64_t>(use.servers, 0, ServerUse::kMaxServers);
  for (int64_t s = 0; s < servers; ++s) to.add_answer_ns(use.answer[static_cast<size_t>(s)]);
}

wire::ServerReport server_report(int local_rank, const ServerProgress& seen) {
  wire::ServerReport report;
  report.set_local_rank(local_rank);
  report.set_at_ns(seen.at_ns);
  const int state = static_cast<int>(seen.state);
  if (wire::ServerReport::State_IsValid(state)) {
    report.set_state(static_cast<wire::ServerReport::State>(state));
  }
  report.set_apart(seen.apart != 0);
  report.set_address(std::string(seen.address.view()));
  report.set_blocks(seen.blocks);
  report.set_block_bytes(seen.bytes);
  report.set_pushes(seen.pushes);
  report.set_pulls(seen.pulls);
  report.set_received(seen.received);
  report.set_sent(seen.sent);
  report.set_busy_ns(seen.busy);
  report.set_waited_ns(seen.waited);
  report.set_step(seen.steps);
  report.set_ahead(seen.ahead);
  report.set_queued(seen.queued);
  const auto tables = std::clamp<int64_t>(seen.tables, 0, ServerProgress::kMaxTables);
  for (int64_t t = 0; t < tables; ++t) {
    const TableProgress& one = seen.table[static_cast<size_t>(t)];
    wire::ServedTable& table = *report.add_tables();
    table.set_name(std::string(one.name.view()));
    table.set_rows(one.rows);
    table.set_bytes(one.bytes);
    table.set_pulled(one.pulled);
    table.set_pushed(one.pushed);
  }
  return report;
}

}  // namespace fleet
