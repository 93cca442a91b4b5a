#include "ps/geo_client.h"

#include <utility>

namespace fleet::ps {

GeoClient::GeoClient(ServedModel model, Placement placement, const DenseClientOptions& options,
                     std::vector<ServedTable> tables)
    : DenseClient(std::move(model), std::move(placement), options, tables),
      tables_(std::move(tables), options.tables, table_options(), options.trainers) {
  set_trained(tables_);
}

GeoClient::Values GeoClient::read(Executor& executor) const {
  Values values;
  for (const ServedParameter& parameter : model().parameters) {
    std::vector<float>& own = values[parameter.name];
    own.resize(static_cast<size_t>(parameter.elements));
    executor.read(executor.program().find(parameter.name), std::as_writable_bytes(std::span(own)));
  }
  return values;
}

void GeoClient::write(Executor& executor, const Values& values) const {
  for (const auto& [name, own] : values) executor.write(executor.program().find(name), own);
}

void GeoClient::begin(Executor& executor, int64_t steps) {
  DenseClient::begin(executor, steps);
  begin_here(executor);
}

GeoClient::TakenPlace GeoClient::take_place(Executor& executor, uint64_t shares) {
  const TakenPlace taken = DenseClient::take_place(executor, shares);
  begin_here(executor);
  return taken;
}

void GeoClient::begin_here(Executor& executor) {
  old_ = read(executor);
  tables_.clear();
  local_.clear();
  since_ = 0;
}

// Evaluations have the servers' rows.
void GeoClient::feed_rows(Executor& executor, const Columns& columns, bool evaluation) {
  if (evaluation) return DenseClient::feed_rows(executor, columns, evaluation);
  say_missing();
  tables_.feed_rows(executor, columns);
}

void GeoClient::restore_merged_rows(std::vector<MergedRows> rows) {
  tables_.restore_merged_rows(std::move(rows));
}

void GeoClient::update(Executor& executor, int64_t step, double learning_rate) {
  if (!tables_.empty()) {
    executor.synchronize();
    tables_.collect(executor);
    const PushHead head = check(executor, learning_rate);
    const bool left_out = head.loss_is_bad || head.bad_gradient;
    left_out ? tables_.leave_out() : tables_.update(head.learning_rate);
  }
  set_steps(step + 1);
  since_ += 1;
  step_ = step;
  if (since_ >= settings().geo_steps) exchange(executor);
}

void GeoClient::exchange(Executor& executor) {
  executor.synchronize();
  Values local = read(executor), deltas;
  const auto trainers = static_cast<float>(trainers_of_job());
  for (const auto& [name, own] : local) {
    std::vector<float>& delta = deltas[name];
    std::vector<float>& old = old_[name];
    delta.resize(own.size());
    for (size_t i = 0; i < own.size(); ++i) {
      delta[i] = (own[i] - old[i]) / trainers;
      old[i] += delta[i];
    }
  }
  push(std::move(deltas));
  pull(executor);
  tables_.receive_changes();
  Values fresh = read(executor);
  for (auto& [name, own] : local) {
    const std::vector<float>&old = old_[name], &value = fresh[name];
    for (size_t i = 0; i < own.size(); ++i) own[i] += value[i] - old[i];
  }
  write(executor, local);
  old_ = std::move(fresh);
  since_ = 0;
  counters().updated();
}

// Returns before the servers have received it, so the messages own the memory.
void GeoClient::push(Values deltas) {
  const auto owner = std::make_shared<const Values>(std::move(deltas));
  sequence_ += 1;
  tables().send(tables_.take_differences(), sequence_, step_);
  for (int s = 0; s < servers(); ++s) {
    Message push{.header = {.type = MessageType::kPush,
                            .count = static_cast<uint32_t>(values_of(s).size()),
                            .sequence = sequence_,
                            .version = step_},
                 .parts = {bytes_of_head(PushHead())}};
    for (const BlockSegment& segment : values_of(s)) {
      const auto whole = std::as_bytes(std::span(owner->at(segment.variable)));
      const size_t begin = static_cast<size_t>(segment.begin) * sizeof(float);
      append_segment(push.parts, segment,
                     {.data = whole.subspan(begin, segment.bytes), .owner = owner});
    }
    send(s, std::move(push));
    send(s, {.header = {.type = MessageType::kPull, .version = 0}});
    tables_.request_changes(s);
  }
}

void GeoClient::pull(Executor& executor) {
  for (int s = 0; s < servers(); ++s) {
    const Message values = wait(s, MessageType::kValues, &ServerUse::values_wait);
    land(executor, values_of(s), behind_head<ValuesHead>(values));
  }
}

void GeoClient::settle(Executor& executor) {
  if (since_ > 0) exchange(executor);
}

void GeoClient::synchronize(Executor& executor, bool with_states) {
  executor.synchronize();
  if (local_.empty()) local_ = read(executor);
  if (!with_states) return share(executor, kValueSection);
  pull_states(executor, 0, kValueSection, -1);  // alone
}

void GeoClient::resume(Executor& executor) {
  if (local_.empty()) return;
  write(executor, std::exchange(local_, {}));
}

}  // namespace fleet::ps
