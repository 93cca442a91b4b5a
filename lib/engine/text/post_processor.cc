#include "text/post_processor.h"

#include <utility>

#include "base/error.h"
#include "text/part_options.h"
#include "text/vocabulary.h"

namespace fleet::text {
namespace {

constexpr int64_t kMostLength = int64_t{1} << 24;

uint32_t checked_id(const Json& json, const PartOptions& options, std::string_view key) {
  if (!json.is_number_integer() || json.get<int64_t>() < 0 || json.get<int64_t>() >= kMostIds) {
    options.wrong(key, "a token and its id");
  }
  return static_cast<uint32_t>(json.get<int64_t>());
}

// ["[SEP]", 102]
uint32_t pair_id(const PartOptions& options, std::string_view key) {
  const std::vector<Json>& pair = options.list(key);
  if (pair.size() != 2) options.wrong(key, "a token and its id");
  return checked_id(pair[1], options, key);
}

// {"special_tokens": {"[CLS]": {"ids": [101], ..}}}
std::vector<uint32_t> template_ids(const PartOptions& options, const Json& special) {
  const Json* name = special.find("id");
  const Json* tokens = options.find("special_tokens");
  const Json* token =
      name && name->is_string() && tokens ? tokens->find(name->get<std::string>()) : nullptr;
  const Json* ids = token ? token->find("ids") : nullptr;
  if (!ids || !ids->is_array()) options.wrong("special_tokens", "the ids of all special tokens");
  std::vector<uint32_t> result;
  for (const Json& id : ids->elements()) {
    result.push_back(checked_id(id, options, "special_tokens"));
  }
  return result;
}

struct TemplateParts {
  std::vector<uint32_t> before, after;
};

TemplateParts template_parts(const PartOptions& options) {
  TemplateParts parts;
  int sequences = 0;
  for (const Json& part : options.list("single")) {
    if (const Json* special = part.find("SpecialToken")) {
      for (const uint32_t id : template_ids(options, *special)) {
        (sequences == 0 ? parts.before : parts.after).push_back(id);
      }
    } else if (part.find("Sequence")) {
      ++sequences;
    } else {
      options.wrong("single", "a list of SpecialToken and Sequence");
    }
  }
  if (sequences != 1) options.refuse("a template that does not have the text exactly once");
  return parts;
}

// "Left" or "Right"
bool is_left(const PartOptions& options) {
  const std::string direction = options.text("direction", "Right");
  if (direction != "Left" && direction != "Right") options.wrong("direction", "Left or Right");
  return direction == "Left";
}

// Truncation and padding have no type.
Json with_type(const Json& json, const char* type, const std::string& where) {
  if (!json.is_object()) {
    throw Error(ErrorCode::kUsage, std::string("'") + type + "' must be an object", where);
  }
  Json typed = json;
  typed["type"] = type;
  return typed;
}

}  // namespace

PostProcessor::PostProcessor(const Json& json, const std::string& where) {
  if (!json.is_null()) add(json, where, 0);
}

void PostProcessor::add(const Json& json, const std::string& where, int depth) {
  const PartOptions options(json, "post-processor", where);
  const std::string& type = options.type();
  TemplateParts parts;
  if (type == "Sequence") {
    if (depth > 20) options.refuse("more than 20 nested sequences");
    for (const Json& part : options.list("processors")) add(part, where, depth + 1);
  } else if (type == "TemplateProcessing") {
    parts = template_parts(options);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    parts.before.push_back(pair_id(options, "cls"));
    parts.after.push_back(pair_id(options, "sep"));
  } else if (type != "ByteLevel") {  // it moves offsets only
    options.refuse_type();
  }
  before.insert(before.begin(), parts.before.begin(), parts.before.end());
  after.insert(after.end(), parts.after.begin(), parts.after.end());
}

Truncation::Truncation(const Json& json, const std::string& where) {
  if (json.is_null()) return;
  const Json typed = with_type(json, "truncation", where);
  const PartOptions options(typed, "section", where);
  on = true;
  most = static_cast<size_t>(options.number("max_length", 0));
  left = is_left(options);
  const std::string strategy = options.text("strategy", "LongestFirst");
  if (strategy != "LongestFirst" && strategy != "OnlyFirst") {
    options.refuse("the strategy " + strategy);
  }
}

Padding::Padding(const Json& json, const std::string& where) {
  if (json.is_null()) return;
  const Json typed = with_type(json, "padding", where);
  const PartOptions options(typed, "section", where);
  on = true;
  left = is_left(options);
  id = static_cast<uint32_t>(options.number("pad_id", 0, 0));
  if (id >= kMostIds) options.wrong("pad_id", "an id");
  multiple = static_cast<size_t>(options.number("pad_to_multiple_of", 0, 0));
  const Json* strategy = options.find("strategy");
  const Json* fixed = strategy ? strategy->find("Fixed") : nullptr;
  if (fixed && fixed->is_number_integer() && fixed->get<int64_t>() >= 0 &&
      fixed->get<int64_t>() <= kMostLength) {
    length = static_cast<size_t>(fixed->get<int64_t>());
  } else if (!strategy || !strategy->is_string() ||
             strategy->get<std::string>() != "BatchLongest") {
    options.wrong("strategy", "BatchLongest or {\"Fixed\": length}");
  }
  if (multiple > static_cast<size_t>(kMostLength)) options.wrong("pad_to_multiple_of", "smaller");
}

}  // namespace fleet::text
