#include "text/bert_vocabulary.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/bert_template.h"

namespace fleet::text {
namespace {

// A name, or {"content": name, ..}.
std::string name_option(const Json& config, const char* key, const char* initial) {
  const Json* value = config.find(key);
  if (value && value->is_object()) value = value->find("content");
  return value && value->is_string() ? value->get<std::string>() : initial;
}

bool flag_option(const Json& config, const char* key, bool initial, const std::string& where) {
  const Json* value = config.find(key);
  if (!value || value->is_null()) return initial;
  if (!value->is_boolean()) {
    throw Error(ErrorCode::kUsage,
                std::string("'") + key + "' in tokenizer_config.json must be true or false", where);
  }
  return value->get<bool>();
}

}  // namespace

Json bert_tokenizer(std::string_view vocabulary, const Json& config, const std::string& where) {
  std::vector<std::string> tokens;
  std::vector<Json> ids;
  std::unordered_map<std::string, int64_t> id_of;
  while (!vocabulary.empty()) {
    const size_t end = std::min(vocabulary.find('\n'), vocabulary.size());
    std::string_view line = vocabulary.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto id = static_cast<int64_t>(tokens.size());
    id_of[std::string(line)] = id;
    tokens.emplace_back(line);
    ids.emplace_back(id);
    vocabulary.remove_prefix(std::min(end + 1, vocabulary.size()));
  }
  const std::string unk = name_option(config, "unk_token", "[UNK]");
  const std::string cls = name_option(config, "cls_token", "[CLS]");
  const std::string sep = name_option(config, "sep_token", "[SEP]");
  for (const std::string& name : {unk, cls, sep}) {
    if (!id_of.contains(name)) {
      throw Error(ErrorCode::kUsage, "the vocabulary has no line '" + name + "'", where,
                  "name BERT's special tokens in tokenizer_config.json next to it");
    }
  }
  std::vector<Json> added;
  for (const std::string& name : {name_option(config, "pad_token", "[PAD]"), unk, cls, sep,
                                  name_option(config, "mask_token", "[MASK]")}) {
    if (!id_of.contains(name)) continue;
    added.push_back(Json({{"id", id_of.at(name)}, {"content", name}, {"special", true}}));
  }
  const bool lower = flag_option(config, "do_lower_case", true, where);
  Json normalizer(
      {{"type", "BertNormalizer"},
       {"clean_text", true},
       {"handle_chinese_chars", flag_option(config, "tokenize_chinese_chars", true, where)},
       {"strip_accents", flag_option(config, "strip_accents", lower, where)},
       {"lowercase", lower}});
  Json model({{"type", "WordPiece"},
              {"unk_token", unk},
              {"continuing_subword_prefix", "##"},
              {"max_input_chars_per_word", 100}});
  model["vocab"] = Json::object(std::move(tokens), std::move(ids));
  Json file({{"version", "1.0"}, {"normalizer", std::move(normalizer)}});
  file["added_tokens"] = Json::array(std::move(added));
  file["pre_tokenizer"] = Json({{"type", "BertPreTokenizer"}});
  file["post_processor"] = bert_template({cls, id_of.at(cls)}, {sep, id_of.at(sep)});
  file["decoder"] = Json({{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}});
  file["model"] = std::move(model);
  return file;
}

}  // namespace fleet::text
