// The models WordPiece and WordLevel, and the choice of a model.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/bpe.h"
#include "text/model.h"
#include "text/part_options.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

// The longest token that the rest of a word begins with, again and again; a word that has none at
// some place is unknown as a whole.
class WordPiece : public Model {
 public:
  explicit WordPiece(const PartOptions& options)
      : prefix_(options.text("continuing_subword_prefix", "##")),
        most_characters_(static_cast<size_t>(options.number("max_input_chars_per_word", 0, 100))) {
    vocabulary_ = vocabulary_option(options);
    const auto unk = vocabulary_.find(options.text("unk_token", "[UNK]"));
    if (!unk) options.wrong("unk_token", "in the vocabulary");
    unk_ = *unk;
  }

  void encode(std::string_view piece, std::vector<uint32_t>& ids) const override {
    encode(piece, ids, nullptr);
  }
  void encode(std::string_view piece, std::vector<uint32_t>& ids,
              std::vector<uint32_t>& lengths) const override {
    encode(piece, ids, &lengths);
  }

 private:
  static size_t characters(std::string_view piece) {
    return static_cast<size_t>(std::count_if(piece.begin(), piece.end(), [](char byte) {
      return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
    }));
  }

  void encode(std::string_view piece, std::vector<uint32_t>& ids,
              std::vector<uint32_t>* lengths) const {
    const size_t before = ids.size(), lengths_before = lengths ? lengths->size() : 0;
    if (characters(piece) <= most_characters_ && split(piece, ids, lengths)) return;
    ids.resize(before);
    ids.push_back(unk_);
    if (!lengths) return;
    lengths->resize(lengths_before);
    lengths->push_back(static_cast<uint32_t>(piece.size()));
  }

  bool split(std::string_view piece, std::vector<uint32_t>& ids,
             std::vector<uint32_t>* lengths) const {
    std::string candidate;
    for (size_t at = 0; at < piece.size();) {
      candidate = at > 0 ? prefix_ : "";
      const size_t affix = candidate.size();
      candidate += piece.substr(at);
      bool found = false;
      while (candidate.size() > affix) {
        if (const auto id = vocabulary_.find(candidate)) {
          ids.push_back(*id);
          if (lengths) lengths->push_back(static_cast<uint32_t>(candidate.size() - affix));
          found = true;
          break;
        }
        candidate.resize(previous_character(candidate, candidate.size()));
      }
      if (!found) return false;
      at += candidate.size() - affix;
    }
    return true;
  }

  std::string prefix_;
  size_t most_characters_;
  uint32_t unk_;
};

class WordLevel : public Model {
 public:
  explicit WordLevel(const PartOptions& options) {
    vocabulary_ = vocabulary_option(options);
    unk_ = vocabulary_.find(options.text("unk_token", "<unk>"));
  }
  void encode(std::string_view piece, std::vector<uint32_t>& ids) const override {
    const auto id = vocabulary_.find(piece);
    if (!id && !unk_) {
      throw Error(ErrorCode::kUsage,
                  "the word '" + std::string(piece.substr(0, 40)) +
                      "' is not in the vocabulary of the model WordLevel, which has no unknown "
                      "token");
    }
    ids.push_back(id ? *id : *unk_);
  }
  void encode(std::string_view piece, std::vector<uint32_t>& ids,
              std::vector<uint32_t>& lengths) const override {
    encode(piece, ids);
    lengths.push_back(static_cast<uint32_t>(piece.size()));
  }

 private:
  std::optional<uint32_t> unk_;
};

}  // namespace

Vocabulary vocabulary_option(const PartOptions& options) {
  const Json* json = options.find("vocab");
  if (!json || !json->is_object()) options.wrong("vocab", "an object of tokens and ids");
  Vocabulary vocabulary(json->keys().size());
  const Json* id = json->begin();
  for (const std::string& token : json->keys()) {
    if (!id->is_number_integer() || id->get<int64_t>() < 0 || id->get<int64_t>() >= kMostIds) {
      options.wrong("vocab", "an object of tokens and ids below " + std::to_string(kMostIds));
    }
    vocabulary.add(token, static_cast<uint32_t>(id->get<int64_t>()));
    ++id;
  }
  return vocabulary;
}

std::unique_ptr<Model> make_model(const Json& json, bool byte_level, const std::string& where) {
  const Json* type = json.is_object() ? json.find("type") : nullptr;
  Json typed;
  if (json.is_object() && !type) {
    // Old files: only BPE has merges, and only WordPiece a limit of characters.
    typed = json;
    typed["type"] = json.contains("merges")                     ? "BPE"
                    : json.contains("max_input_chars_per_word") ? "WordPiece"
                                                                : "WordLevel";
  }
  const PartOptions options(type ? json : typed.is_null() ? json : typed, "model", where);
  if (options.type() == "BPE") return std::make_unique<Bpe>(options, byte_level);
  if (byte_level && (options.type() == "WordPiece" || options.type() == "WordLevel")) {
    options.refuse("the pre-tokenizer ByteLevel");
  }
  if (options.type() == "WordPiece") return std::make_unique<WordPiece>(options);
  if (options.type() == "WordLevel") return std::make_unique<WordLevel>(options);
  options.refuse_type();
}

}  // namespace fleet::text
