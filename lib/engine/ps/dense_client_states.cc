// The calls of a trainer to servers outside of steps: initial values, values and states of
// checkpoints, the place of a lost trainer.
#include <algorithm>
#include <cstring>
#include <limits>

#include "ps/dense_client.h"
#include "ps/plain_vars.h"

namespace fleet::ps {

uint32_t DenseClient::present(uint32_t sections) const {
  const auto any = [&](auto has) { return std::ranges::any_of(model_.parameters, has); };
  if (!any([](const ServedParameter& p) { return !p.average.empty(); })) {
    sections &= ~kAverageSection;
  }
  if (!any([](const ServedParameter& p) { return !p.states.empty(); })) sections &= ~kStateSection;
  if (model_.counters.empty()) sections &= ~kCounterSection;
  if (model_.kept.empty()) sections &= ~kKeptSection;
  return sections;
}

// A copy of a whole variable serves all its blocks, and lives until they are sent.
Bytes DenseClient::copied_bytes(Executor& executor, const BlockSegment& segment,
                                std::map<std::string, Bytes>& copies) const {
  Bytes& whole = copies[segment.variable];
  if (!whole.owner) {
    const VarId id = find_var(executor.program(), segment.variable);
    const auto copy = std::make_shared<std::vector<std::byte>>(plain_bytes(executor, id));
    executor.read(id, *copy);
    whole = {.data = *copy, .owner = copy};
  }
  const size_t begin = static_cast<size_t>(segment.begin) * size_of(segment.dtype);
  return {.data = whole.data.subspan(begin, segment.bytes), .owner = whole.owner};
}

void DenseClient::send_initial(Executor& executor, uint32_t sections) {
  std::map<std::string, Bytes> copies;
  for (int s = 0; s < servers(); ++s) {
    Message message{
        .header = {.type = MessageType::kInitial, .sequence = ordinal_, .version = version_},
        .parts = {bytes_of_head(InitialHead{.sections = sections})}};
    for (const BlockSegment& segment : segments_of(model_, placement_, s, sections)) {
      append_segment(message.parts, segment, copied_bytes(executor, segment, copies));
    }
    send(s, std::move(message));
  }
}

// Writes each variable once all its blocks have arrived.
void DenseClient::land(Executor& executor, const std::vector<BlockSegment>& segments,
                       std::span<const std::byte> data) {
  FLEET_CHECK(data.size() == bytes_of(segments), "a message of another size than its blocks");
  for (const BlockSegment& segment : segments) {
    const VarId id = find_var(executor.program(), segment.variable);
    const size_t whole = plain_bytes(executor, id);
    const std::span<const std::byte> part = data.first(segment.bytes);
    data = data.subspan(segment.padded());
    if (part.size() == whole) {
      executor.write(id, part);
      continue;
    }
    std::vector<std::byte>& staging = staging_[segment.variable];
    staging.resize(whole);
    std::memcpy(staging.data() + static_cast<size_t>(segment.begin) * size_of(segment.dtype),
                part.data(), part.size());
    size_t& landed = landed_[segment.variable];
    landed += part.size();
    if (landed < whole) continue;
    landed = 0;
    executor.write(id, staging);
  }
}

// Compares the versions itself: a server would wait for one that is newer than its own.
int64_t DenseClient::pull_states(Executor& executor, uint64_t ordinal, uint32_t sections,
                                 int64_t of_version) {
  int64_t least = std::numeric_limits<int64_t>::max();
  const StatesHead head{.ordinal = ordinal, .sections = sections};
  for (int s = 0; s < servers(); ++s) {
    send(s, {.header = {.type = MessageType::kPullStates, .version = 0},
             .parts = {bytes_of_head(head)}});
  }
  for (int s = 0; s < servers(); ++s) {
    const Message states = wait(s, MessageType::kStates);
    const int64_t version = states.header.version;
    if (of_version >= 0 && version != of_version) {
      throw Error(ErrorCode::kUsage,
                  "has the state after " + std::to_string(version) +
                      " steps, this trainer that of " + std::to_string(of_version),
                  mailboxes_.name(s), "start all trainers from the same checkpoint");
    }
    land(executor, segments_of(model_, placement_, s, sections), behind_head<StatesHead>(states));
    least = std::min(least, version);
  }
  return least;
}

// The servers may have different pushes of the lost process. No step is applied twice, so training
// continues from the newest one.
ParameterExchange::TakenPlace DenseClient::take_place(Executor& executor, uint64_t shares) {
  executor.synchronize();
  ordinal_ = shares;
  TakenPlace taken{.steps = *std::ranges::max_element(answered_)};
  for (const int64_t steps : answered_)
    taken.missing = std::max(taken.missing, taken.steps - steps);
  version_ = taken.steps;
  uint32_t sections = kValueSection | kAverageSection | kCounterSection | kKeptSection;
  if (settings().mode == ServerMode::kGeo) sections |= kStateSection;
  taken.version = pull_states(executor, 0, present(sections), -1);
  return taken;
}

void DenseClient::begin(Executor& executor, int64_t steps) {
  executor.synchronize();
  version_ = steps;
  ordinal_ += 1;
  if (leads()) {
    send_initial(executor, kAllSections);
    for (int s = 0; s < servers(); ++s) wait(s, MessageType::kAccepted);
  } else {
    uint32_t sections = kValueSection | kAverageSection | kCounterSection | kKeptSection;
    if (settings().mode == ServerMode::kGeo) sections |= kStateSection;
    pull_states(executor, ordinal_, present(sections), steps);
  }
}

void DenseClient::synchronize(Executor& executor, bool with_states) {
  executor.synchronize();
  uint32_t sections = present(kAverageSection);
  if (sections) sections |= kCounterSection;
  if (leads() && with_states) sections |= kStateSection | kCounterSection;
  share(executor, sections);
}

void DenseClient::share(Executor& executor, uint32_t sections) {
  ordinal_ += 1;
  const bool keeps = !model_.kept.empty();
  if (leads() && keeps) send_initial(executor, kKeptSection);
  if (!leads()) sections |= kKeptSection;
  sections = present(sections);
  const int64_t version = settings().apart() ? -1 : version_;
  if (sections) pull_states(executor, keeps ? ordinal_ : 0, sections, version);
}

}  // namespace fleet::ps
