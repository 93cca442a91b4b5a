#include "text/post_processor.h"

#include <algorithm>
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

// {"SpecialToken": {"id": "[CLS]", "type_id": 0}} or {"Sequence": {"id": "A", "type_id": 0}}
uint32_t type_of(const PartOptions& options, std::string_view key, const Json& piece) {
  const Json* type = piece.find("type_id");
  return type ? checked_id(*type, options, key) : 0;
}

int text_of(const PartOptions& options, std::string_view key, const Json& piece) {
  const Json* id = piece.find("id");
  const std::string name = id && id->is_string() ? id->get<std::string>() : "";
  if (name != "A" && name != "B") options.wrong(key, "a list of SpecialToken and Sequence A or B");
  return name == "A" ? 0 : 1;
}

Template template_option(const PartOptions& options, std::string_view key, int texts) {
  Template pieces;
  int seen[2] = {};
  for (const Json& part : options.list(key)) {
    if (const Json* special = part.find("SpecialToken")) {
      for (const uint32_t id : template_ids(options, *special)) {
        pieces.push_back({-1, id, type_of(options, key, *special)});
      }
    } else if (const Json* text = part.find("Sequence")) {
      pieces.push_back({text_of(options, key, *text), 0, type_of(options, key, *text)});
      ++seen[pieces.back().text];
    } else {
      options.wrong(key, "a list of SpecialToken and Sequence");
    }
  }
  if (seen[0] != 1 || seen[1] != texts - 1) {
    options.refuse("a template that does not have each text exactly once");
  }
  return pieces;
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

PostProcessor::PostProcessor() : single{{0, 0, 0}}, pair{{0, 0, 0}, {1, 0, 1}} {}

PostProcessor::PostProcessor(const Json& json, const std::string& where) : PostProcessor() {
  if (!json.is_null()) add(json, where, 0);
}

size_t PostProcessor::added(const Template& pieces) {
  return static_cast<size_t>(std::count_if(pieces.begin(), pieces.end(),
                                           [](const auto& piece) { return piece.text < 0; }));
}

void PostProcessor::set(Template one, Template two, const PartOptions& options) {
  if (has_template_) options.refuse("another one that adds tokens");
  has_template_ = true;
  single = std::move(one);
  pair = std::move(two);
}

void PostProcessor::add(const Json& json, const std::string& where, int depth) {
  const PartOptions options(json, "post-processor", where);
  const std::string& type = options.type();
  const auto trim = [&] {
    if (!options.flag("trim_offsets", true)) return;
    trimmings.push_back({options.flag("add_prefix_space", true)});
  };
  if (type == "Sequence") {
    if (depth > 20) options.refuse("more than 20 nested sequences");
    for (const Json& part : options.list("processors")) add(part, where, depth + 1);
  } else if (type == "TemplateProcessing") {
    Template two = options.find("pair") ? template_option(options, "pair", 2) : pair;
    set(template_option(options, "single", 1), std::move(two), options);
  } else if (type == "BertProcessing") {
    const uint32_t cls = pair_id(options, "cls"), sep = pair_id(options, "sep");
    set({{-1, cls, 0}, {0, 0, 0}, {-1, sep, 0}},
        {{-1, cls, 0}, {0, 0, 0}, {-1, sep, 0}, {1, 0, 1}, {-1, sep, 1}}, options);
  } else if (type == "RobertaProcessing") {  // all of it is one segment
    const uint32_t cls = pair_id(options, "cls"), sep = pair_id(options, "sep");
    trim();
    set({{-1, cls, 0}, {0, 0, 0}, {-1, sep, 0}},
        {{-1, cls, 0}, {0, 0, 0}, {-1, sep, 0}, {-1, sep, 0}, {1, 0, 0}, {-1, sep, 0}}, options);
  } else if (type == "ByteLevel") {
    trim();
  } else {
    options.refuse_type();
  }
}

std::optional<TruncationRule> truncation_rule(std::string_view name) {
  if (name == "longest_first") return TruncationRule::kLongestFirst;
  if (name == "only_first") return TruncationRule::kOnlyFirst;
  if (name == "only_second") return TruncationRule::kOnlySecond;
  return std::nullopt;
}

// truncate_encodings() in tokenizers/src/utils/truncation.rs of Hugging Face's tokenizers.
KeptTokens kept_tokens(size_t first, size_t second, size_t most, TruncationRule rule,
                       bool is_pair) {
  if (first + second <= most) return {first, second};
  if (most == 0) return {0, 0};
  const size_t excess = first + second - most;
  if (rule != TruncationRule::kLongestFirst) {
    const bool cuts_first = rule == TruncationRule::kOnlyFirst;
    if (!cuts_first && !is_pair) {
      throw Error(ErrorCode::kUsage, "the truncation only_second needs a second text");
    }
    if ((cuts_first ? first : second) <= excess) {
      throw Error(ErrorCode::kUsage, std::string("the text is too long: the truncation ") +
                                         (cuts_first ? "only_first" : "only_second") +
                                         " would leave nothing of its text");
    }
    return cuts_first ? KeptTokens{first - excess, second} : KeptTokens{first, second - excess};
  }
  if (!is_pair) return {most, 0};
  size_t shorter = std::min(first, second);
  size_t longer = shorter > most ? shorter : std::max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = most - shorter;
  }
  return first > second ? KeptTokens{longer, shorter} : KeptTokens{shorter, longer};
}

Truncation::Truncation(const Json& json, const std::string& where) {
  if (json.is_null()) return;
  const Json typed = with_type(json, "truncation", where);
  const PartOptions options(typed, "section", where);
  on = true;
  to.most = static_cast<size_t>(options.number("max_length", 0));
  to.left = is_left(options);
  const std::string strategy = options.text("strategy", "LongestFirst");
  if (strategy == "OnlyFirst") {
    to.rule = TruncationRule::kOnlyFirst;
  } else if (strategy == "OnlySecond") {
    to.rule = TruncationRule::kOnlySecond;
  } else if (strategy != "LongestFirst") {
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
