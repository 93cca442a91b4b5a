#include "diagnosis/live_servers.h"

#include <algorithm>
#include <optional>

namespace fleet {
namespace {

double rise_per(int64_t from, int64_t to, double of) {
  return static_cast<double>(std::max<int64_t>(0, to - from)) / of;
}
double rise_share(int64_t from, int64_t to, double of) {
  return std::min(1.0, rise_per(from, to, of));
}

void add_live_table(const wire::ServedTable* from, const wire::ServedTable& to, double seconds,
                    wire::LiveServer* live) {
  live->set_rows(live->rows() + to.rows());
  live->set_table_bytes(live->table_bytes() + to.bytes());
  wire::LiveTable& table = *live->add_tables();
  table.set_name(to.name());
  table.set_rows(to.rows());
  table.set_bytes(to.bytes());
  if (!from || seconds <= 0) return;
  table.set_pulled(rise_per(from->pulled(), to.pulled(), seconds));
  table.set_pushed(rise_per(from->pushed(), to.pushed(), seconds));
}

}  // namespace

wire::LiveServer live_server(const wire::ServerReport& from, const wire::ServerReport& to) {
  wire::LiveServer live;
  live.set_state(to.state());
  live.set_address(to.address());
  live.set_apart(to.apart());
  live.set_blocks(to.blocks());
  live.set_block_bytes(to.block_bytes());
  live.set_step(to.step());
  live.set_ahead(to.ahead());
  live.set_queued(to.queued());
  const auto ns = static_cast<double>(to.at_ns() - from.at_ns());
  const double seconds = 1e-9 * ns;
  for (int t = 0; t < to.tables_size(); ++t) {
    add_live_table(t < from.tables_size() ? &from.tables(t) : nullptr, to.tables(t), seconds,
                   &live);
  }
  if (ns <= 0) return live;
  live.set_pushes(rise_per(from.pushes(), to.pushes(), seconds));
  live.set_pulls(rise_per(from.pulls(), to.pulls(), seconds));
  live.set_received(rise_per(from.received(), to.received(), seconds));
  live.set_sent(rise_per(from.sent(), to.sent(), seconds));
  live.set_busy(rise_share(from.busy_ns(), to.busy_ns(), ns));
  if (!to.apart()) live.set_waits(rise_share(from.waited_ns(), to.waited_ns(), ns));
  return live;
}

wire::LiveServerUse live_server_use(const RankSteps& from_steps, const RankSteps& to_steps) {
  const wire::ServerUse &from = from_steps.servers(), &to = to_steps.servers();
  wire::LiveServerUse live;
  live.set_capacity(to.capacity());
  live.set_most_stale(to.most_stale());
  const auto ns = static_cast<double>(to_steps.step_ns() - from_steps.step_ns());
  const auto updates = static_cast<double>(to.updates() - from.updates());
  if (ns <= 0 || updates <= 0) return live;
  live.set_push_share(rise_share(from.push_ns(), to.push_ns(), ns));
  live.set_values_share(rise_share(from.values_ns(), to.values_ns(), ns));
  live.set_rows_share(rise_share(from.rows_ns(), to.rows_ns(), ns));
  live.set_sent(rise_per(from.sent(), to.sent(), 1e-9 * ns));
  live.set_received(rise_per(from.received(), to.received(), 1e-9 * ns));
  if (to.capacity() == 0) return live;
  live.set_queued(rise_per(from.queued(), to.queued(), updates));
  live.set_stale(rise_per(from.stale(), to.stale(), updates));
  return live;
}

void add_answer_times(const std::vector<UsePeriod>& uses, LiveReport* report) {
  wire::LiveRank* slowest = nullptr;
  int measured = 0;
  for (wire::LiveRank& live : *report->mutable_ranks()) {
    if (!live.has_serving()) continue;
    std::optional<double> least;
    for (const auto& [from, to] : uses) {
      const auto updates = static_cast<double>(to->updates() - from->updates());
      const int s = live.rank();
      if (updates <= 0 || s < 0 || s >= from->answer_ns_size() || s >= to->answer_ns_size()) {
        continue;
      }
      const double one = 1e-6 * rise_per(from->answer_ns(s), to->answer_ns(s), updates);
      least = std::min(least.value_or(one), one);
    }
    if (!least) continue;
    ++measured;
    live.mutable_serving()->set_answer_ms(*least);
    if (!slowest || *least > slowest->serving().answer_ms()) slowest = &live;
  }
  if (measured > 1) slowest->set_slowest(true);
}

}  // namespace fleet
