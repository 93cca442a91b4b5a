#include "base/pickle.h"

#include <algorithm>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet {
namespace {

std::string hex_of(uint8_t opcode) { return "0x" + hex({reinterpret_cast<char*>(&opcode), 1}); }

}  // namespace

void Pickle::throw_damaged(const std::string& what) const {
  throw Error(ErrorCode::kUsage, what, path_);
}

void Pickle::bad(const std::string& what) const {
  throw_damaged(what);
  internal_error(__FILE__, __LINE__, "throw_damaged() has returned");
}

void Pickle::check_global(const std::string& name) const {
  bad("its pickle asks for '" + shown_name(name) + "', which is not executed");
}

Pickle::Value Pickle::load_persistent(Value) { bad("its pickle refers to something outside it"); }

Pickle::Value Pickle::call(const std::string& function, const std::vector<Value>&) {
  bad("its pickle calls '" + shown_name(function) + "', which is not executed");
}

void Pickle::count_value() {
  if (++values_ > limits_.values) bad("its pickle has too many values");
}

void Pickle::push(Value value) {
  count_value();
  stack_.push_back(value);
}

Pickle::Value Pickle::new_dict() {
  lists_.emplace_back();
  return {Kind::kDict, static_cast<int64_t>(lists_.size()) - 1};
}

void Pickle::read(std::string_view bytes) {
  bytes = bytes.substr(0, limits_.bytes);
  bytes_ = bytes;
  const auto next = [&] { return static_cast<uint8_t>(take(1)[0]); };
  for (uint8_t opcode = next(); opcode != '.'; opcode = next()) step(opcode);
  size_ = bytes.size() - bytes_.size();
  root_ = pop();
  bytes_ = {};
}

std::string_view Pickle::take(uint64_t count) {
  if (count > bytes_.size()) bad("truncated: its pickle is cut off, or too large");
  const std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return taken;
}

uint64_t Pickle::integer(size_t bytes) {
  uint64_t value = 0;
  const std::string_view taken = take(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    value |= uint64_t{static_cast<uint8_t>(taken[i])} << (8 * i);
  }
  return value;
}

std::string_view Pickle::line() {
  constexpr size_t kLongest = 256;
  const size_t end = bytes_.substr(0, kLongest).find('\n');
  if (end == std::string_view::npos) bad("its pickle contains an unterminated name");
  return take(end + 1).substr(0, end);
}

void Pickle::push_text(std::string_view text) {
  push(Kind::kText, static_cast<int64_t>(texts_.size()));
  texts_.emplace_back(text);
}

void Pickle::push_list(Kind kind, std::vector<Value> values) {
  push(kind, static_cast<int64_t>(lists_.size()));
  lists_.push_back(std::move(values));
}

// Python integers have any length; those longer than 64 bits cannot be sizes.
void Pickle::push_long(uint64_t bytes) {
  const std::string_view taken = take(bytes);
  uint64_t value = 0;
  for (size_t i = 0; i < std::min<size_t>(taken.size(), 8); ++i) {
    value |= uint64_t{static_cast<uint8_t>(taken[i])} << (8 * i);
  }
  const bool negative = !taken.empty() && (taken.back() & 0x80) != 0;
  if (negative && taken.size() < 8) value |= ~uint64_t{0} << (8 * taken.size());
  if (taken.size() > 8) return push(Kind::kOther);
  push(Kind::kInteger, static_cast<int64_t>(value));
}

Pickle::Value Pickle::pop() {
  const size_t bottom = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= bottom) bad("its pickle reads a missing value");
  const Value top = stack_.back();
  stack_.pop_back();
  return top;
}

std::vector<Pickle::Value> Pickle::pop_to_mark() {
  if (marks_.empty()) bad("its pickle reads a missing value");
  std::vector<Value> values(stack_.begin() + static_cast<int64_t>(marks_.back()), stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return values;
}

void Pickle::append(std::vector<Value> values) {
  const Value list = pop();
  if (list.kind != Kind::kList) bad("its pickle appends to something that is not a list");
  std::vector<Value>& to = lists_[list.number];
  to.insert(to.end(), values.begin(), values.end());
  stack_.push_back(list);
}

void Pickle::set_items(const std::vector<Value>& values) {
  const Value dict = pop();
  if (dict.kind != Kind::kDict || values.size() % 2 != 0) {
    bad("its pickle sets items of something that is not a dict");
  }
  std::vector<Value>& to = lists_[dict.number];
  to.insert(to.end(), values.begin(), values.end());
  stack_.push_back(dict);
}

void Pickle::remember(uint64_t place) {
  const Value top = pop();
  stack_.push_back(top);
  count_value();
  memo_[place] = top;
}

void Pickle::recall(uint64_t place) {
  const auto found = memo_.find(place);
  if (found == memo_.end()) bad("its pickle reads a missing value");
  push(found->second);
}

void Pickle::push_global(const std::string& name) {
  check_global(name);
  push_text(name);
  stack_.back().kind = Kind::kGlobal;
}

void Pickle::reduce() {
  const Value arguments = pop(), function = pop();
  if (function.kind != Kind::kGlobal || arguments.kind != Kind::kList) {
    bad("its pickle calls something that is not a function");
  }
  push(call(text(function), lists_[arguments.number]));  // perhaps millions of arguments
}

void Pickle::set_state(Value object, Value) {
  if (object.kind == Kind::kDict || object.kind == Kind::kCalled) return;
  bad("its pickle sets attributes on something that has none");
}

void Pickle::build() {
  const Value state = pop(), object = pop();
  set_state(object, state);
  stack_.push_back(object);
}

void Pickle::push_scalar(uint8_t opcode) {
  switch (opcode) {
    case 'N':
      return push(Kind::kNone);
    case 0x88:
    case 0x89:
      return push(Kind::kBool, opcode == 0x88);
    case 'J':
      return push(Kind::kInteger, static_cast<int32_t>(integer(4)));
    case 'K':
      return push(Kind::kInteger, static_cast<int64_t>(integer(1)));
    case 'M':
      return push(Kind::kInteger, static_cast<int64_t>(integer(2)));
    case 0x8a:
      return push_long(integer(1));
    case 0x8b:
      return push_long(integer(4));
    case 'G': {  // big-endian
      uint64_t bits = 0;
      for (const char byte : take(8)) bits = bits << 8 | static_cast<uint8_t>(byte);
      return push(Kind::kFloat, static_cast<int64_t>(bits));
    }
    case 'X':  // unicode, then Python 2's text and bytes
    case 'T':
    case 'B':
      return push_text(take(integer(4)));
    case 0x8c:
    case 'U':
    case 'C':
      return push_text(take(integer(1)));
    case 0x8d:
    case 0x8e:
      return push_text(take(integer(8)));
    default:
      return make(opcode);
  }
}

void Pickle::make(uint8_t opcode) {
  switch (opcode) {
    case ')':
    case ']':
      return push_list(Kind::kList, {});
    case '}':
      return push_list(Kind::kDict, {});
    case 0x85:
    case 0x86:
    case 0x87: {
      std::vector<Value> values(opcode - 0x84);
      for (size_t i = values.size(); i-- > 0;) values[i] = pop();
      return push_list(Kind::kList, std::move(values));
    }
    case 't':
    case 'l':
      return push_list(Kind::kList, pop_to_mark());
    case 'd': {
      std::vector<Value> items = pop_to_mark();
      push_list(Kind::kDict, {});
      return set_items(items);
    }
    case 'a':
      return append({pop()});
    case 'e':
      return append(pop_to_mark());
    case 's': {
      const Value value = pop(), key = pop();
      return set_items({key, value});
    }
    case 'u':
      return set_items(pop_to_mark());
    default:
      bad("its pickle has the instruction " + hex_of(opcode) + ", which is not known");
  }
}

void Pickle::step(uint8_t opcode) {
  switch (opcode) {
    case 0x80:
      if (integer(1) > 5) bad("its pickle is of a newer protocol");
      break;
    case 0x95:  // a frame
      take(8);
      break;
    case '(':
      count_value();
      return marks_.push_back(stack_.size());
    case '0':
      pop();
      break;
    case '1':
      pop_to_mark();
      break;
    case 'q':
      return remember(integer(1));
    case 'r':
      return remember(integer(4));
    case 0x94:
      return remember(memo_.size());
    case 'h':
      return recall(integer(1));
    case 'j':
      return recall(integer(4));
    case 'c': {
      const std::string module(line());
      return push_global(module + "." + std::string(line()));
    }
    case 0x93: {
      const Value name = pop(), module = pop();
      if (name.kind != Kind::kText || module.kind != Kind::kText)
        bad("its pickle has a wrong name");
      return push_global(text(module) + "." + text(name));
    }
    case 'Q':
      return push(load_persistent(pop()));
    case 'R':
    case 0x81:  // a class called with arguments
      return reduce();
    case 'b':
      return build();
    default:
      push_scalar(opcode);
  }
}

std::optional<Pickle::Value> Pickle::find(Value dict, std::string_view key) const {
  if (dict.kind != Kind::kDict) return std::nullopt;
  const std::vector<Value>& items = lists_[dict.number];
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].kind == Kind::kText && text(items[i]) == key) return items[i + 1];
  }
  return std::nullopt;
}

}  // namespace fleet
