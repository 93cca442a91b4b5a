#include "train/pickle.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "tensor/shape.h"
#include "train/safetensors.h"

namespace fleet {
namespace {

// A state dict with ten thousand tensors has about 1 MiB.
constexpr size_t kMaxBytes = size_t{64} << 20;

std::optional<DType> dtype_of(std::string_view storage) {
  if (storage == "FloatStorage") return DType::kFloat32;
  if (storage == "DoubleStorage") return DType::kFloat64;
  if (storage == "HalfStorage") return DType::kFloat16;
  if (storage == "BFloat16Storage") return DType::kBFloat16;
  if (storage == "LongStorage") return DType::kInt64;
  if (storage == "IntStorage") return DType::kInt32;
  if (storage == "ByteStorage") return DType::kUInt8;
  return std::nullopt;
}

bool is_storage(const std::string& name) {
  static const std::set<std::string> kOthers = {"torch.ShortStorage", "torch.CharStorage",
                                                "torch.BoolStorage", "torch.ComplexFloatStorage",
                                                "torch.ComplexDoubleStorage"};
  return name.starts_with("torch.") && (dtype_of(name.substr(6)) || kOthers.contains(name));
}

constexpr char kDict[] = "collections.OrderedDict", kTensor[] = "torch._utils._rebuild_tensor_v2",
               kParameter[] = "torch._utils._rebuild_parameter", kSize[] = "torch.Size",
               kDevice[] = "torch.device";

bool is_known(const std::string& name) {
  static const std::set<std::string> kKnown = {kDict, kTensor, kParameter, kSize, kDevice};
  return kKnown.contains(name) || is_storage(name);
}

std::string hex_of(uint8_t opcode) { return "0x" + hex({reinterpret_cast<char*>(&opcode), 1}); }

}  // namespace

Pickle::Pickle(std::string_view bytes, const std::string& path) : path_(path) {
  if (bytes.size() > kMaxBytes) bytes = bytes.substr(0, kMaxBytes);
  run(bytes);
}

void Pickle::bad(const std::string& what) const {
  throw DamagedFile(what, path_, "it is damaged, or not what torch.save() writes; use another one");
}

void Pickle::run(std::string_view bytes) {
  bytes_ = bytes;
  while (step(static_cast<uint8_t>(take(1)[0]))) {
  }
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
  memo_[place] = top;
}

void Pickle::recall(uint64_t place) {
  const auto found = memo_.find(place);
  if (found == memo_.end()) bad("its pickle reads a missing value");
  stack_.push_back(found->second);
}

void Pickle::push_global(const std::string& name) {
  if (!is_known(name)) {
    throw Error(
        ErrorCode::kUsage,
        "asks for '" + shown_name(name) + "', which weights do not need and is not executed", path_,
        "save the weights alone: torch.save(model.state_dict(), FILE), or as safetensors");
  }
  push_text(name);
  stack_.back().kind = Kind::kGlobal;
}

// ("storage", type, key, place, elements[, None])
void Pickle::load_persistent() {
  const Value id = pop();
  if (id.kind != Kind::kList) bad("its pickle refers to something that is not a storage");
  const std::vector<Value>& parts = lists_[id.number];
  const bool fits = (parts.size() == 5 || (parts.size() == 6 && parts[5].kind == Kind::kNone)) &&
                    parts[0].kind == Kind::kText && text(parts[0]) == "storage" &&
                    parts[1].kind == Kind::kGlobal && is_storage(text(parts[1])) &&
                    parts[2].kind == Kind::kText && parts[4].kind == Kind::kInteger &&
                    parts[4].number >= 0;
  if (!fits) bad("its pickle refers to something that is not a storage");
  const std::string type = text(parts[1]).substr(6);
  push(Kind::kStorage, static_cast<int64_t>(storages_.size()));
  storages_.push_back({type, dtype_of(type), text(parts[2]), parts[4].number});
}

std::vector<int64_t> Pickle::integers(Value value) const {
  if (value.kind != Kind::kList) bad("a tensor has no size");
  if (lists_[value.number].size() > Shape::kMaxRank) bad("a tensor has too many dimensions");
  std::vector<int64_t> all;
  for (const Value& one : lists_[value.number]) {
    if (one.kind != Kind::kInteger || one.number < 0) bad("a tensor has an invalid size");
    all.push_back(one.number);
  }
  return all;
}

Pickle::Value Pickle::rebuilt_tensor(const std::vector<Value>& arguments) {
  if (arguments.size() < 4 || arguments[0].kind != Kind::kStorage ||
      arguments[1].kind != Kind::kInteger || arguments[1].number < 0) {
    bad("a tensor is not described as torch does");
  }
  Tensor tensor{static_cast<size_t>(arguments[0].number), arguments[1].number,
                integers(arguments[2]), integers(arguments[3])};
  if (tensor.shape.size() != tensor.strides.size()) bad("a tensor has an invalid size");
  tensors_.push_back(std::move(tensor));
  return {Kind::kTensor, static_cast<int64_t>(tensors_.size()) - 1};
}

// Calls that torch makes when it loads: recreated here without calling anything.
void Pickle::reduce() {
  const Value given = pop(), function = pop();
  if (function.kind != Kind::kGlobal || given.kind != Kind::kList) {
    bad("its pickle calls something that is not a function");
  }
  const std::string name = text(function);
  const std::vector<Value>& arguments = lists_[given.number];  // perhaps millions
  if (name == kTensor) return stack_.push_back(rebuilt_tensor(arguments));
  if (name == kParameter && !arguments.empty() && arguments[0].kind == Kind::kTensor) {
    return stack_.push_back(arguments[0]);
  }
  if (name == kDict && arguments.empty()) return push_list(Kind::kDict, {});
  if (name == kSize && arguments.size() == 1 && arguments[0].kind == Kind::kList) {
    return stack_.push_back(arguments[0]);
  }
  if (name == kDevice) return push(Kind::kOther);
  bad("its pickle calls " + name + " with invalid arguments");
}

// The attributes of a dict (a module's versions) are not needed.
void Pickle::build() {
  pop();
  const Value object = pop();
  if (object.kind != Kind::kDict && object.kind != Kind::kTensor) {
    bad("its pickle sets attributes on something that has none");
  }
  stack_.push_back(object);
}

bool Pickle::read_number(uint8_t opcode) {
  switch (opcode) {
    case 'N':
      push(Kind::kNone);
      return true;
    case 0x88:
    case 0x89:
      push(Kind::kBool, opcode == 0x88);
      return true;
    case 'J':
      push(Kind::kInteger, static_cast<int32_t>(integer(4)));
      return true;
    case 'K':
      push(Kind::kInteger, static_cast<int64_t>(integer(1)));
      return true;
    case 'M':
      push(Kind::kInteger, static_cast<int64_t>(integer(2)));
      return true;
    case 0x8a:
      push_long(integer(1));
      return true;
    case 0x8b:
      push_long(integer(4));
      return true;
    case 'G':
      take(8);
      push(Kind::kFloat);
      return true;
    default:
      return false;
  }
}

bool Pickle::read_text(uint8_t opcode) {
  switch (opcode) {
    case 'X':  // unicode, then Python 2's text and bytes
    case 'T':
    case 'B':
      push_text(take(integer(4)));
      return true;
    case 0x8c:
    case 'U':
    case 'C':
      push_text(take(integer(1)));
      return true;
    case 0x8d:
    case 0x8e:
      push_text(take(integer(8)));
      return true;
    default:
      return false;
  }
}

bool Pickle::make(uint8_t opcode) {
  switch (opcode) {
    case ')':
    case ']':
      push_list(Kind::kList, {});
      return true;
    case '}':
      push_list(Kind::kDict, {});
      return true;
    case 0x85:
    case 0x86:
    case 0x87: {
      std::vector<Value> values(opcode - 0x84);
      for (size_t i = values.size(); i-- > 0;) values[i] = pop();
      push_list(Kind::kList, std::move(values));
      return true;
    }
    case 't':
    case 'l':
      push_list(Kind::kList, pop_to_mark());
      return true;
    case 'd': {
      std::vector<Value> items = pop_to_mark();
      push_list(Kind::kDict, {});
      set_items(items);
      return true;
    }
    case 'a':
      append({pop()});
      return true;
    case 'e':
      append(pop_to_mark());
      return true;
    case 's': {
      const Value value = pop(), key = pop();
      set_items({key, value});
      return true;
    }
    case 'u':
      set_items(pop_to_mark());
      return true;
    default:
      return false;
  }
}

bool Pickle::step(uint8_t opcode) {
  if (read_number(opcode) || read_text(opcode) || make(opcode)) return true;
  switch (opcode) {
    case '.':
      return false;
    case 0x80:
      if (integer(1) > 5) bad("its pickle is of a newer protocol");
      return true;
    case 0x95:  // a frame
      take(8);
      return true;
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case '0':
      pop();
      return true;
    case '1':
      pop_to_mark();
      return true;
    case 'q':
      remember(integer(1));
      return true;
    case 'r':
      remember(integer(4));
      return true;
    case 0x94:
      remember(memo_.size());
      return true;
    case 'h':
      recall(integer(1));
      return true;
    case 'j':
      recall(integer(4));
      return true;
    case 'c': {
      const std::string module(line());
      push_global(module + "." + std::string(line()));
      return true;
    }
    case 0x93: {
      const Value name = pop(), module = pop();
      if (name.kind != Kind::kText || module.kind != Kind::kText)
        bad("its pickle has a wrong name");
      push_global(text(module) + "." + text(name));
      return true;
    }
    case 'Q':
      load_persistent();
      return true;
    case 'R':
      reduce();
      return true;
    case 'b':
      build();
      return true;
    default:
      bad("its pickle has the instruction " + hex_of(opcode) + ", which weights do not need");
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
