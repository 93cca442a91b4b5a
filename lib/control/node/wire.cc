#include "node/wire.h"

#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace fleet {
namespace {

class Writer {
 public:
  void number(int32_t value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    text_.append(bytes, sizeof value);
  }
  void large(int64_t value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    text_.append(bytes, sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<int32_t>(value.size()));
    text_.append(value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  int32_t number() {
    int32_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  int64_t large() {
    int64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const int32_t size = number();
    FLEET_CHECK(size >= 0, "a message of the guardian's socket has a negative length");
    return std::string(take(static_cast<size_t>(size)));
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view take(size_t size) {
    FLEET_CHECK(size <= bytes_.size(), "a message of the guardian's socket is cut short");
    const std::string_view part = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return part;
  }
  std::string_view bytes_;
};

// One `fields` function per struct serves both directions: `visit` writes or reads a field.
template <typename Visit>
void fields(Visit& visit, RankCommand& rank) {
  visit(rank.local_rank), visit(rank.rank), visit(rank.argv), visit(rank.environment);
  visit(rank.removed), visit(rank.cores), visit(rank.log_path), visit(rank.error_log_path);
  visit(rank.shown_streams), visit(rank.shows_apart), visit(rank.draws_bar);
  visit(rank.hang_timeout_ms), visit(rank.service_socket), visit(rank.error_file);
  visit(rank.splits_streams), visit(rank.label), visit(rank.labelled_streams);
}
template <typename Visit>
void fields(Visit& visit, ConsoleStream& stream) {
  visit(stream.drop), visit(stream.collapse_ms);
}
template <typename Visit>
void fields(Visit& visit, CopiedLines& lines) {
  visit(lines.path), visit(lines.filters);
}
template <typename Visit>
void fields(Visit& visit, LogSettings& logs) {
  visit(logs.overwrite), visit(logs.stamp_files), visit(logs.stamp_console), visit(logs.labels);
  visit(logs.node), visit(logs.output), visit(logs.errors), visit(logs.errors_apart);
  visit(logs.max_size), visit(logs.total_size);
  visit(logs.output_copies), visit(logs.error_copies);
}
template <typename Visit>
void fields(Visit& visit, LocalStack& stack) {
  visit(stack.local_rank), visit(stack.state), visit(stack.channel), visit(stack.frames);
  visit(stack.missing);
}
template <typename Visit>
void fields(Visit& visit, RecordedError& error) {
  visit(error.message), visit(error.callstack), visit(error.unix_time);
}
template <typename Visit>
void fields(Visit& visit, SpawnRanks& message) {
  visit(message.ranks), visit(message.logs);
}
template <typename Visit>
void fields(Visit& visit, StopRanks& message) {
  visit(message.signal), visit(message.grace_ms);
}
template <typename Visit>
void fields(Visit&, KillRanks&) {}
template <typename Visit>
void fields(Visit& visit, RankStarted& message) {
  visit(message.local_rank), visit(message.pid), visit(message.error);
}
template <typename Visit>
void fields(Visit& visit, RankEnded& message) {
  visit(message.local_rank), visit(message.code), visit(message.signal), visit(message.tail);
  visit(message.cause);
  visit(message.note), visit(message.oom), visit(message.at_ns), visit(message.stop_sent);
  visit(message.error);
}
template <typename Visit>
void fields(Visit& visit, SignalRanks& message) {
  visit(message.signal);
}
template <typename Visit>
void fields(Visit& visit, CollectStacks& message) {
  visit(message.limit_ms);
}
template <typename Visit>
void fields(Visit& visit, LocalProgress& rank) {
  visit(rank.local_rank), visit(rank.steps), visit(rank.step), visit(rank.step_at_ns);
  visit(rank.waited_ns);
}
template <typename Visit>
void fields(Visit& visit, RanksProgress& message) {
  visit(message.ranks);
}
template <typename Visit>
void fields(Visit& visit, ServiceBytes& message) {
  visit(message.local_rank), visit(message.bytes);
}
template <typename Visit>
void fields(Visit& visit, RankStalled& message) {
  visit(message.local_rank), visit(message.quiet_ms), visit(message.step);
}
template <typename Visit>
void fields(Visit& visit, StacksCollected& message) {
  visit(message.stacks);
}
template <typename Visit>
void fields(Visit& visit, AllGone& message) {
  visit(message.stuck);
}

struct Write {
  Writer out;
  void operator()(int value) { out.number(value); }
  void operator()(bool value) { out.number(value); }
  void operator()(int64_t value) { out.large(value); }
  void operator()(const std::string& value) { out.text(value); }
  void operator()(std::pair<std::string, std::string>& pair) {
    out.text(pair.first), out.text(pair.second);
  }
  void operator()(RankCommand& rank) { fields(*this, rank); }
  void operator()(LocalStack& stack) { fields(*this, stack); }
  void operator()(LocalProgress& rank) { fields(*this, rank); }
  void operator()(LogSettings& logs) { fields(*this, logs); }
  void operator()(ConsoleStream& stream) { fields(*this, stream); }
  void operator()(CopiedLines& lines) { fields(*this, lines); }
  void operator()(RecordedError& error) { fields(*this, error); }
  template <typename T>
  void operator()(std::vector<T>& values) {
    out.number(static_cast<int32_t>(values.size()));
    for (T& value : values) (*this)(value);
  }
};

struct Read {
  Reader in;
  void operator()(int& value) { value = in.number(); }
  void operator()(bool& value) { value = in.number() != 0; }
  void operator()(int64_t& value) { value = in.large(); }
  void operator()(std::string& value) { value = in.text(); }
  void operator()(std::pair<std::string, std::string>& pair) {
    pair.first = in.text();
    pair.second = in.text();
  }
  void operator()(RankCommand& rank) { fields(*this, rank); }
  void operator()(LocalStack& stack) { fields(*this, stack); }
  void operator()(LocalProgress& rank) { fields(*this, rank); }
  void operator()(LogSettings& logs) { fields(*this, logs); }
  void operator()(ConsoleStream& stream) { fields(*this, stream); }
  void operator()(CopiedLines& lines) { fields(*this, lines); }
  void operator()(RecordedError& error) { fields(*this, error); }
  template <typename T>
  void operator()(std::vector<T>& values) {
    const int count = in.number();
    for (int i = 0; i < count; ++i) (*this)(values.emplace_back());
  }
};

template <size_t... I>
WireMessage make_message(int index, std::index_sequence<I...>) {
  WireMessage message;
  const bool known = ((index == static_cast<int>(I) && (message.emplace<I>(), true)) || ...);
  FLEET_CHECK(known, "a message of the guardian's socket has an unknown kind");
  return message;
}

}  // namespace

std::string encode(const WireMessage& message) {
  Write write;
  write(static_cast<int>(message.index()));
  WireMessage copy = message;
  std::visit([&](auto& alternative) { fields(write, alternative); }, copy);
  Writer framed;
  framed.text(write.out.take());
  return framed.take();
}

bool decode(std::string& buffer, WireMessage* message) {
  int32_t size = 0;
  if (buffer.size() < sizeof size) return false;
  std::memcpy(&size, buffer.data(), sizeof size);
  FLEET_CHECK(size >= 0, "a message of the guardian's socket has a negative length");
  const size_t whole = sizeof size + static_cast<size_t>(size);
  if (buffer.size() < whole) return false;
  Read read{Reader(std::string_view(buffer).substr(sizeof size, static_cast<size_t>(size)))};
  *message =
      make_message(read.in.number(), std::make_index_sequence<std::variant_size_v<WireMessage>>());
  std::visit([&](auto& alternative) { fields(read, alternative); }, *message);
  FLEET_CHECK(read.in.at_end(), "a message of the guardian's socket is too long");
  buffer.erase(0, whole);
  return true;
}

}  // namespace fleet
