// Reads the objects of a tokenizer.json: {"type": .., members..}.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace fleet::text {

// One normalizer, pre-tokenizer, decoder, ... Refuses members of a wrong type by their name.
class PartOptions {
 public:
  // kind: "normalizer", for messages. kUsage if it is not an object with a type.
  PartOptions(const Json& json, std::string kind, std::string where);

  const std::string& type() const { return type_; }
  const std::string& where() const { return where_; }
  const std::string& kind() const { return kind_; }
  const Json& json() const { return json_; }

  bool flag(std::string_view key, bool initial) const;
  std::string text(std::string_view key, const std::string& initial) const;
  std::string text(std::string_view key) const;  // kUsage if it is missing
  int64_t number(std::string_view key, int64_t least) const;
  int64_t number(std::string_view key, int64_t least, int64_t initial) const;
  // The elements of an array that must be there.
  const std::vector<Json>& list(std::string_view key) const;
  // nullptr: missing or null.
  const Json* find(std::string_view key) const;

  // kUnsupported: "the normalizer Precompiled is not supported".
  [[noreturn]] void refuse_type() const;
  // kUnsupported for one of its members.
  [[noreturn]] void refuse(const std::string& what) const;
  // kUsage: a member is not what it must be.
  [[noreturn]] void wrong(std::string_view key, const std::string& wanted) const;

 private:
  const Json& json_;
  std::string kind_, where_, type_;
};

}  // namespace fleet::text
