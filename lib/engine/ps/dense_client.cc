#include "ps/dense_client.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "ps/left_until.h"
#include "ps/plain_vars.h"
#include "ps/table_host.h"

namespace fleet::ps {
namespace {

std::vector<std::string> names_of(const std::vector<std::string>& addresses) {
  std::vector<std::string> names;
  for (size_t s = 0; s < addresses.size(); ++s) {
    names.push_back("server " + std::to_string(s) + " at " + addresses[s]);
  }
  return names;
}

// The variable in plain layout where the host can read it; empty otherwise.
std::span<const std::byte> plain_on_host(const Executor& executor, VarId id) {
  const Argument argument = executor.argument(id);
  if (!argument.layout.is_plain() || argument.bytes() != plain_bytes(executor, id)) return {};
  return executor.on_host(id);
}

bool all_finite(std::span<const std::byte> data, DType dtype) {
  // All bits of the exponent are set in infinities and NaNs.
  const auto any = [&]<typename Word>(Word exponent) {
    const std::span words(reinterpret_cast<const Word*>(data.data()), data.size() / sizeof(Word));
    bool found = false;
    for (const Word word : words) found |= (word & exponent) == exponent;
    return found;
  };
  if (dtype == DType::kFloat32) return !any(uint32_t{0x7f800000});
  return !any(dtype == DType::kBFloat16 ? uint16_t{0x7f80} : uint16_t{0x7c00});
}

// Errors of connecting name an address only.
std::shared_ptr<Connection> named(const std::string& server,
                                  const std::function<std::shared_ptr<Connection>()>& connect) {
  try {
    return connect();
  } catch (const Error& error) {
    throw Error(error.code(), error.failure(), server, error.next());
  }
}

}  // namespace

DenseClient::DenseClient(ServedModel model, Placement placement, const DenseClientOptions& options,
                         std::vector<ServedTable> tables)
    : model_(std::move(model)),
      placement_(std::move(placement)),
      options_(options),
      counters_(placement_.servers,
                options.settings.mode == ServerMode::kAsync ? options.settings.queue_size : 0),
      mailboxes_(names_of(options.servers), &counters_),
      tables_(std::move(tables), options.tables, table_options()),
      norm_parts_(norm_parts(model_, placement_)) {
  FLEET_CHECK(std::ssize(options.servers) == servers(), "a placement for other servers");
  for (int s = 0; s < servers(); ++s) {
    gradients_.push_back(segments_of(model_, placement_, s, kGradientSection));
    values_.push_back(segments_of(model_, placement_, s, kValueSection));
  }
  try {
    for (int s = 0; s < servers(); ++s) {
      connections_.push_back(
          named(mailboxes_.name(s), [&] { return options_.connect(s, mailboxes_.handler(s)); }));
    }
    say_hello();
  } catch (...) {
    end_connections();
    throw;
  }
}

DenseClient::~DenseClient() { end_connections(); }

void DenseClient::send(int server, Message message) {
  FLEET_CHECK(!ended_, "a call after an error or finish()");
  counters_.sent(server, message);
  connections_[server]->send(std::move(message));
}

Message DenseClient::wait(int server, MessageType type) {
  return mailboxes_.wait(server, type, options_.timeout);
}

Message DenseClient::wait(int server, MessageType type, TrainerCounters::Wait::Total total) {
  const TrainerCounters::Wait timer(counters_, total);
  return wait(server, type);
}

void DenseClient::say_hello() {
  HelloHead hello{
      .trainer = options_.trainer,
      .trainers = options_.trainers,
      .servers = servers(),
      .mode = static_cast<uint32_t>(settings().mode),
      .parameters = model_.hash_of_parameters(),
      .rule = model_.hash_of_rule(),
      .placement = hash_of(placement_, model_.placed_parameters(), model_.placed_vars()),
      .tables = hash_of(options_.tables),
      .incarnation = options_.incarnation};
  for (hello.server = 0; hello.server < servers(); ++hello.server) {
    send(hello.server, {.header = {.type = MessageType::kHello}, .parts = {bytes_of_head(hello)}});
  }
  for (int s = 0; s < servers(); ++s) {
    answered_.push_back(wait(s, MessageType::kHello).header.version);
  }
}

PushHead DenseClient::check(Executor& executor, double learning_rate) const {
  PushHead head{.learning_rate = static_cast<float>(learning_rate)};
  if (model_.checked.empty()) return head;
  head.loss_is_bad = is_finite(executor, model_.checked[0]) ? 0 : 1;
  for (size_t i = 1; i < model_.checked.size() && head.bad_gradient == 0; ++i) {
    const std::string& gradient = model_.checked[i];
    const bool good =
        is_finite(executor, gradient) && trained_->merged_is_finite(executor.program(), gradient);
    if (!good) head.bad_gradient = static_cast<uint32_t>(i);
  }
  return head;
}

// Copies gradients that a trainer has in another layout, or in a device's memory. Copies from a
// device run together.
void DenseClient::stage_gradients(Executor& executor) {
  for (const ServedParameter& parameter : model_.parameters) {
    const VarId id = find_var(executor.program(), parameter.gradient);
    if (!plain_on_host(executor, id).empty()) continue;
    const size_t bytes = plain_bytes(executor, id);
    Staged& staged = gradients_on_host_[parameter.gradient];
    if (!staged.memory) staged.memory = options_.allocate(bytes);
    const Argument argument = executor.argument(id);
    const bool as_it_is = argument.layout.is_plain() && argument.bytes() == bytes;
    if (as_it_is) {
      executor.copy_out(id, staged.data(bytes));
    } else {
      executor.read(id, staged.data(bytes));
    }
  }
  executor.synchronize();
}

// A gradient, after stage_gradients().
std::span<const std::byte> DenseClient::host_bytes(Executor& executor,
                                                   const std::string& variable) const {
  const VarId id = find_var(executor.program(), variable);
  const auto staged = gradients_on_host_.find(variable);
  if (staged == gradients_on_host_.end()) return plain_on_host(executor, id);
  return staged->second.data(plain_bytes(executor, id));
}

bool DenseClient::is_finite(Executor& executor, const std::string& variable) const {
  const VarId id = find_var(executor.program(), variable);
  const DType dtype = executor.program().var(id).dtype;
  const std::span<const std::byte> data = host_bytes(executor, variable);
  if (!data.empty()) return all_finite(data, dtype);
  std::vector<std::byte> copy(plain_bytes(executor, id));  // the loss, of a device
  executor.read(id, copy);
  return all_finite(copy, dtype);
}

// Without an owner: the memory stays unchanged until the values of all servers have arrived.
Bytes DenseClient::gradient_bytes(Executor& executor, const BlockSegment& segment) const {
  const std::span<const std::byte> whole = host_bytes(executor, segment.variable);
  const size_t begin = static_cast<size_t>(segment.begin) * size_of(segment.dtype);
  return {.data = whole.subspan(begin, segment.bytes)};
}

void DenseClient::push(Executor& executor, const PushHead& head, int64_t step) {
  sequence_ += 1;
  tables_.send(tables_.gradients(executor), sequence_, step);
  for (int s = 0; s < servers(); ++s) {
    const std::vector<BlockSegment>& segments = gradients_[s];
    Message push{.header = {.type = MessageType::kPush,
                            .count = static_cast<uint32_t>(segments.size()),
                            .sequence = sequence_,
                            .version = step},
                 .parts = {bytes_of_head(head)}};
    for (const BlockSegment& segment : segments) {
      append_segment(push.parts, segment, gradient_bytes(executor, segment));
    }
    send(s, std::move(push));
    send(s, {.header = {.type = MessageType::kPull, .version = step + 1}});
  }
}

TableClientOptions DenseClient::table_options() {
  return {.trainer = options_.trainer,
          .servers = servers(),
          .deltas = options_.table_deltas,
          .send = [this](int server, Message message) { send(server, std::move(message)); },
          .wait =
              [this](int server, MessageType type) {
                // Only waits for rows belong to a step.
                std::optional<TrainerCounters::Wait> timer;
                if (type == MessageType::kValues) timer.emplace(counters_, &ServerUse::rows_wait);
                return mailboxes_.wait(server, type, options_.timeout, Topic::kRows);
              }};
}

void DenseClient::feed_rows(Executor& executor, const Columns& columns, bool evaluation) {
  if (!evaluation) say_missing();
  counters_.count(!evaluation);
  tables_.feed_rows(executor, columns, version_, evaluation);
  counters_.count(true);
}

void DenseClient::merge_rows(Executor& executor) {
  if (tables_.empty()) return;
  executor.synchronize();
  trained_->merge(executor);
}

void DenseClient::restore_merged_rows(std::vector<MergedRows> rows) {
  tables_.restore_merged_rows(std::move(rows));
}

void DenseClient::resume_tables(const std::string& folder) {
  if (!tables_.empty()) tables_.load(folder);
}

void DenseClient::cut_tables() {
  if (!tables_.empty()) tables_.cut();
}

std::string DenseClient::save_tables(const std::string& folder) { return tables_.save(folder); }

bool DenseClient::shrink_tables(int64_t age) {
  if (tables_.empty()) return false;
  tables_.shrink(version_, age);
  return true;
}

// After an evaluation.
void DenseClient::say_missing() {
  for (const std::string& line : tables_.missing_lines()) {
    if (leads()) spdlog::info("{}{}", line, options_.trainers > 1 ? " (trainer 0's part)" : "");
  }
}

// Puts the sums of squares of all servers together.
void DenseClient::exchange_norms(int64_t step) {
  std::vector<Message> received;
  for (int s = 0; s < servers(); ++s) {
    received.push_back(wait(s, MessageType::kNorms, &ServerUse::values_wait));
  }
  const auto all = std::make_shared<std::vector<std::byte>>();
  std::vector<std::span<const std::byte>> rest;
  for (const Message& message : received) rest.push_back(message.payload());
  for (const NormParts& parts : norm_parts_) {
    std::span<const std::byte>& own = rest[placement_.blocks[parts.block].server];
    const size_t bytes = static_cast<size_t>(parts.count) * sizeof(double);
    FLEET_CHECK(own.size() >= bytes, "too few norms");
    all->insert(all->end(), own.begin(), own.begin() + static_cast<std::ptrdiff_t>(bytes));
    own = own.subspan(bytes);
  }
  for (int s = 0; s < servers(); ++s) {
    FLEET_CHECK(rest[s].empty(), "more norms of " + mailboxes_.name(s) + " than it has");
    send(s, {.header = {.type = MessageType::kNorms, .version = step},
             .parts = {{.data = *all, .owner = all}}});
  }
}

void DenseClient::update(Executor& executor, int64_t step, double learning_rate) {
  executor.synchronize();
  stage_gradients(executor);
  tables_.collect(executor);
  const PushHead head = check(executor, learning_rate);
  ValuesHead outcome;
  try {
    push(executor, head, step);
    version_ = step + 1;
    if (leads() && !norm_parts_.empty()) exchange_norms(step);
    for (int s = 0; s < servers(); ++s) {
      const Message values = wait(s, MessageType::kValues, &ServerUse::values_wait);
      outcome = head_of<ValuesHead>(values);
      land(executor, values_[s], behind_head<ValuesHead>(values));
    }
  } catch (...) {
    end_connections();
    throw;
  }
  counters_.updated();
  if (!model_.checked.empty()) record_outcome(executor, head, outcome);
}

void DenseClient::end_connections() {
  if (ended_.exchange(true)) return;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (const auto& connection : connections_) connection->close();
  for (const auto& connection : connections_) connection->disconnect(left_until(deadline));
}

// As check_finite and count_skipped_updates do.
void DenseClient::record_outcome(Executor& executor, const PushHead& own, const ValuesHead& all) {
  record_.checks += 1;
  if (own.loss_is_bad || all.bad_gradient) {
    record_.bad += 1;
    if (record_.first == 0) {
      record_.first = record_.checks;
      record_.first_input = own.loss_is_bad ? 0 : all.bad_gradient;
    }
  }
  executor.write(find_var(executor.program(), kFiniteRecordName),
                 std::vector{record_.checks, record_.bad, record_.first, record_.first_input});
  if (!model_.counts_skips) return;
  skipped_ = all.left_out ? skipped_ + 1 : 0;
  executor.write(find_var(executor.program(), kSkippedUpdatesName), std::vector{skipped_});
}

void DenseClient::finish() {
  say_missing();
  for (size_t s = 0; s < connections_.size(); ++s) {
    send(static_cast<int>(s), {.header = {.type = MessageType::kGoodbye}});
  }
  end_connections();
}

std::string DenseClient::text() const {
  return std::to_string(servers()) + " parameter server" + (servers() == 1 ? "" : "s") + ", " +
         name_of(settings().mode);
}

}  // namespace fleet::ps
