// Python's pickle format, read without executing anything: numbers, strings, lists, tuples, dicts.
// A pickle may also name classes and functions and ask to call them; a subclass says which it
// knows, and recreates what they would make. Opcodes: Python's Lib/pickletools.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fleet {

class Pickle {
 public:
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInteger,
    kFloat,  // number: the bits of the double
    kText,   // also bytes
    kList,   // also a tuple
    kDict,
    kGlobal,      // the name of a class or function
    kPersistent,  // from load_persistent()
    kCalled,      // from call()
    kOther,       // known, but not needed
  };
  // Refers to memory of this Pickle: values are never nested in memory, however deep they are in
  // the file. A list may contain itself.
  struct Value {
    Kind kind = Kind::kNone;
    int64_t number = 0;  // the value of a bool or integer, the bits of a float; else an index
  };
  struct Limits {
    size_t bytes = size_t{64} << 20;   // a longer pickle counts as cut off
    size_t values = size_t{64} << 20;  // all, also those that are dropped again; each takes memory
  };

  // path: for messages.
  Pickle(std::string path, Limits limits) : path_(std::move(path)), limits_(limits) {}
  virtual ~Pickle() = default;
  // Reads the pickle at the start of `bytes`; once. kUsage naming the path if it has none, or if
  // it asks for something that is not known; the message names it.
  void read(std::string_view bytes);

  Value root() const { return root_; }
  size_t size() const { return size_; }  // size of the pickle in bytes
  const std::string& text(Value value) const { return texts_[value.number]; }
  const std::vector<Value>& list(Value value) const { return lists_[value.number]; }
  const std::vector<Value>& dict(Value value) const {
    return lists_[value.number];
  }  // key, value...
  // The value of a string key of a dict; nullopt if absent.
  std::optional<Value> find(Value dict, std::string_view key) const;

 protected:
  // Throws that the pickle is damaged: kUsage without a subclass.
  virtual void throw_damaged(const std::string& what) const;
  [[noreturn]] void bad(const std::string& what) const;
  // Returns if this class or function is known; else throws, as without a subclass.
  virtual void check_global(const std::string& name) const;
  // The object that the pickle names by `id`, with kind kPersistent. Throws without a subclass.
  virtual Value load_persistent(Value id);
  // The function's result: with kind kCalled, or another value. Throws without a subclass.
  virtual Value call(const std::string& function, const std::vector<Value>& arguments);

  // Sets attributes of an object: a dict's (a module's versions) are not needed, and nothing else
  // has some without a subclass.
  virtual void set_state(Value object, Value state);

  const std::string& path() const { return path_; }
  Value new_dict();
  std::vector<Value>& items_of(Value dict) { return lists_[dict.number]; }

 private:
  // Each passes on what it does not know.
  void step(uint8_t opcode);
  void push_scalar(uint8_t opcode);
  void make(uint8_t opcode);
  std::string_view take(uint64_t count);
  uint64_t integer(size_t bytes);
  std::string_view line();
  void count_value();
  void push(Value value);
  void push(Kind kind, int64_t number = 0) { push(Value{kind, number}); }
  void push_text(std::string_view text);
  void push_list(Kind kind, std::vector<Value> values);
  void push_long(uint64_t bytes);
  Value pop();
  std::vector<Value> pop_to_mark();
  void append(std::vector<Value> values);
  void set_items(const std::vector<Value>& values);
  void remember(uint64_t place);
  void recall(uint64_t place);
  void push_global(const std::string& name);
  void reduce();
  void build();

  const std::string path_;
  const Limits limits_;
  size_t values_ = 0;       // so far
  std::string_view bytes_;  // the remaining bytes
  size_t size_ = 0;
  Value root_;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value> memo_;
  std::vector<std::string> texts_;
  std::vector<std::vector<Value>> lists_;
};

}  // namespace fleet
