// The pickle of a file of torch.save(): a state dict with tensors, read without executing anything.
// An argparse.Namespace next to it, as timm's training saves its options, is a dict here.
// What torch writes: torch/_utils.py and torch/serialization.py.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/pickle.h"
#include "tensor/dtype.h"

namespace fleet {

class WeightsPickle final : public Pickle {
 public:
  static constexpr Kind kStorage = Kind::kPersistent, kTensor = Kind::kCalled;

  struct Storage {
    std::string type;            // "FloatStorage"
    std::optional<DType> dtype;  // nullopt: a type that no parameter here has
    std::string key;
    int64_t elements = 0;
    size_t width = 0;  // bytes of an element
  };
  // A view of a storage's elements; its numbers are not checked yet.
  struct Tensor {
    size_t storage = 0;
    int64_t offset = 0;
    std::vector<int64_t> shape, strides;
  };

  // Reads the pickle at the start of `bytes`. DamagedFile naming the path if it has none; kUsage
  // if the pickle asks for anything other than tensors; the message names it.
  WeightsPickle(std::string_view bytes, const std::string& path);

  const Tensor& tensor(Value value) const { return tensors_[value.number]; }
  const Storage& storage(size_t index) const { return storages_[index]; }
  const std::vector<Storage>& storages() const { return storages_; }

 private:
  void throw_damaged(const std::string& what) const override;
  void check_global(const std::string& name) const override;
  Value load_persistent(Value id) override;
  Value call(const std::string& function, const std::vector<Value>& arguments) override;
  void set_state(Value object, Value state) override;
  Value rebuilt_tensor(const std::vector<Value>& arguments);
  std::vector<int64_t> integers(Value list) const;

  std::vector<Tensor> tensors_;
  std::vector<Storage> storages_;
  std::set<int64_t> namespaces_;  // indices of their dicts
};

}  // namespace fleet
