// Traits of operations: properties that passes and backends need besides the definition, such
// as its class under mixed precision. A trait is a struct in a header of the module that gives it a
// meaning, and an operation adds it in its own file:
//   FLEET_OP(relu) { def.add_trait<MixedPrecision>().precision = Precision::kGray; }
// graph/ stores traits by type and knows none of them.
#pragma once

#include <any>
#include <map>
#include <typeindex>

namespace fleet {

// Not thread-safe while traits are added, which ends before main().
class OpTraits {
 public:
  // The trait, default-constructed by the first call.
  template <typename Trait>
  Trait& add() {
    std::any& slot = by_type_[typeid(Trait)];
    if (!slot.has_value()) slot = Trait();
    return *std::any_cast<Trait>(&slot);
  }
  // Null if the operation does not have it.
  template <typename Trait>
  const Trait* find() const {
    const auto found = by_type_.find(typeid(Trait));
    return found == by_type_.end() ? nullptr : std::any_cast<Trait>(&found->second);
  }

 private:
  std::map<std::type_index, std::any> by_type_;
};

}  // namespace fleet
