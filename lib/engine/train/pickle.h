// The part of Python's pickle format that PyTorch's state dicts need, read without executing
// anything: numbers, strings, lists, tuples, dicts, and tensors as torch.save() describes them.
// Opcodes: Python's Lib/pickletools.py. Their use by torch: torch/_utils.py and
// torch/serialization.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/dtype.h"

namespace fleet {

class Pickle {
 public:
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInteger,
    kFloat,  // the value is not kept
    kText,   // also bytes
    kList,   // also a tuple
    kDict,
    kGlobal,
    kStorage,
    kTensor,
    kOther,  // known, but not needed
  };
  // Refers to memory of this Pickle: values are never nested in memory, however deep they are in
  // the file.
  struct Value {
    Kind kind = Kind::kNone;
    int64_t number = 0;  // the value of a bool or integer; else an index
  };
  struct Storage {
    std::string type;            // "FloatStorage"
    std::optional<DType> dtype;  // nullopt: a type that no parameter here has
    std::string key;
    int64_t elements = 0;
  };
  // A view of a storage's elements; its numbers are not checked yet.
  struct Tensor {
    size_t storage = 0;
    int64_t offset = 0;
    std::vector<int64_t> shape, strides;
  };

  // Reads the pickle at the start of `bytes`. DamagedFile naming the path if there is none; kUsage
  // if the pickle asks for anything other than tensors; the message names it.
  Pickle(std::string_view bytes, const std::string& path);

  Value root() const { return root_; }
  size_t size() const { return size_; }  // size of the pickle in bytes
  const std::string& text(Value value) const { return texts_[value.number]; }
  const std::vector<Value>& list(Value value) const { return lists_[value.number]; }
  const std::vector<Value>& dict(Value value) const {
    return lists_[value.number];
  }  // key, value...
  const Tensor& tensor(Value value) const { return tensors_[value.number]; }
  const Storage& storage(size_t index) const { return storages_[index]; }
  const std::vector<Storage>& storages() const { return storages_; }
  // The value of a string key of a dict; nullopt if there is none.
  std::optional<Value> find(Value dict, std::string_view key) const;

 private:
  [[noreturn]] void bad(const std::string& what) const;
  void run(std::string_view bytes);
  bool step(uint8_t opcode);  // false: the end
  bool read_number(uint8_t opcode);
  bool read_text(uint8_t opcode);
  bool make(uint8_t opcode);
  std::string_view take(uint64_t count);
  uint64_t integer(size_t bytes);
  std::string_view line();
  void push(Kind kind, int64_t number = 0) { stack_.push_back({kind, number}); }
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
  void load_persistent();
  void reduce();
  void build();
  Value rebuilt_tensor(const std::vector<Value>& arguments);
  std::vector<int64_t> integers(Value list) const;

  const std::string path_;
  std::string_view bytes_;  // the remaining bytes
  size_t size_ = 0;
  Value root_;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, Value> memo_;
  std::vector<std::string> texts_;
  std::vector<std::vector<Value>> lists_;
  std::vector<Tensor> tensors_;
  std::vector<Storage> storages_;
};

}  // namespace fleet
