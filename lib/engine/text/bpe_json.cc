// tokenizer.json of a trained vocabulary: members and their order equal those of Hugging Face's
// serializer (tokenizers 0.23).
#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "text/bert_template.h"
#include "text/bpe_trainer.h"

namespace fleet::text {
namespace {

struct KnownStyle {
  const char* name;
  const char* normalizer;
  const char* pattern;  // nullptr: the one that ByteLevel has built in
};

// Of Llama-3 and of Qwen2, as their own tokenizer.json have them.
constexpr char kLlama3Pattern[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr char kQwen2Pattern[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr KnownStyle kStyles[] = {
    {"gpt2", "null", nullptr},
    {"llama3", "null", kLlama3Pattern},
    {"qwen2", R"({"type": "NFC"})", kQwen2Pattern},
};

Json byte_level(bool prefix_space, bool regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix_space},
          {"trim_offsets", true},
          {"use_regex", regex}};
}

Json pre_tokenizer_of(const KnownStyle& style) {
  if (!style.pattern) return byte_level(false, true);
  Json split = {{"type", "Split"},
                {"pattern", Json(std::map<std::string, std::string>{{"Regex", style.pattern}})},
                {"behavior", "Isolated"},
                {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level(false, false)})}};
}

Json post_processor_of(const BpeTrainerSettings& settings) {
  if (settings.cls_token.empty()) return nullptr;
  const auto named = [&](const std::string& token) {
    return NamedToken{
        token, std::ranges::find(settings.special_tokens, token) - settings.special_tokens.begin()};
  };
  return bert_template(named(settings.cls_token), named(settings.sep_token));
}

Json vocabulary_of(const TrainedBpe& bpe) {
  std::vector<Json> ids;
  ids.reserve(bpe.tokens.size());
  for (size_t id = 0; id < bpe.tokens.size(); ++id) ids.emplace_back(static_cast<uint64_t>(id));
  return Json::object(bpe.tokens, std::move(ids));
}

}  // namespace

std::vector<std::string> split_style_names() {
  std::vector<std::string> names;
  for (const KnownStyle& style : kStyles) names.emplace_back(style.name);
  return names;
}

SplitStyle split_style(const std::string& name) {
  for (const KnownStyle& style : kStyles) {
    if (name == style.name) return {style.normalizer, pre_tokenizer_of(style).dump()};
  }
  throw Error(ErrorCode::kUsage, "unknown style of splitting '" + name + "'", {},
              suggestion(name, split_style_names()));
}

std::string tokenizer_json(const TrainedBpe& bpe, const BpeTrainerSettings& settings,
                           const SplitStyle& style) {
  Json added = Json::array();
  for (size_t id = 0; id < settings.special_tokens.size(); ++id) {
    added.push_back({{"id", static_cast<uint64_t>(id)},
                     {"content", settings.special_tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  std::vector<Json> merges;
  merges.reserve(bpe.merges.size());
  for (const auto& [first, second] : bpe.merges) {
    merges.push_back(Json::array({bpe.tokens[first], bpe.tokens[second]}));
  }
  const Json json = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", std::move(added)},
                     {"normalizer", Json::parse(style.normalizer)},
                     {"pre_tokenizer", Json::parse(style.pre_tokenizer)},
                     {"post_processor", post_processor_of(settings)},
                     {"decoder", byte_level(true, true)},
                     {"model", Json{{"type", "BPE"},
                                    {"dropout", nullptr},
                                    {"unk_token", nullptr},
                                    {"continuing_subword_prefix", nullptr},
                                    {"end_of_word_suffix", nullptr},
                                    {"fuse_unk", false},
                                    {"byte_fallback", false},
                                    {"ignore_merges", false},
                                    {"vocab", vocabulary_of(bpe)},
                                    {"merges", Json::array(std::move(merges))}}}};
  return json.dump(2);
}

}  // namespace fleet::text
