#include "text/part_options.h"

#include <utility>

namespace fleet::text {

PartOptions::PartOptions(const Json& json, std::string kind, std::string where)
    : json_(json), kind_(std::move(kind)), where_(std::move(where)) {
  const Json* type = json.is_object() ? json.find("type") : nullptr;
  if (!type || !type->is_string()) {
    throw Error(ErrorCode::kUsage, "the " + kind_ + " is not an object with a type", where_);
  }
  type_ = type->get<std::string>();
}

const Json* PartOptions::find(std::string_view key) const {
  const Json* found = json_.find(key);
  return found && !found->is_null() ? found : nullptr;
}

bool PartOptions::flag(std::string_view key, bool initial) const {
  const Json* found = find(key);
  if (!found) return initial;
  if (!found->is_boolean()) wrong(key, "true or false");
  return found->get<bool>();
}

std::string PartOptions::text(std::string_view key, const std::string& initial) const {
  const Json* found = find(key);
  if (!found) return initial;
  if (!found->is_string()) wrong(key, "a string");
  return found->get<std::string>();
}

std::string PartOptions::text(std::string_view key) const {
  if (!find(key)) wrong(key, "a string");
  return text(key, "");
}

int64_t PartOptions::number(std::string_view key, int64_t least) const {
  const Json* found = find(key);
  if (!found || !found->is_number_integer() || found->get<int64_t>() < least) {
    wrong(key, "a whole number of at least " + std::to_string(least));
  }
  return found->get<int64_t>();
}

int64_t PartOptions::number(std::string_view key, int64_t least, int64_t initial) const {
  return find(key) ? number(key, least) : initial;
}

const std::vector<Json>& PartOptions::list(std::string_view key) const {
  const Json* found = find(key);
  if (!found || !found->is_array()) wrong(key, "an array");
  return found->elements();
}

void PartOptions::refuse_type() const {
  throw Error(ErrorCode::kUnsupported, "the " + kind_ + " " + type_ + " is not supported", where_);
}

void PartOptions::refuse(const std::string& what) const {
  throw Error(ErrorCode::kUnsupported,
              "the " + kind_ + " " + type_ + " with " + what + " is not supported", where_);
}

void PartOptions::wrong(std::string_view key, const std::string& wanted) const {
  throw Error(
      ErrorCode::kUsage,
      "the member '" + std::string(key) + "' of the " + kind_ + " " + type_ + " must be " + wanted,
      where_);
}

}  // namespace fleet::text
