// Reads the model BPE. encode_bpe.cc has the encoding.
#include "text/bpe.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/part_options.h"
#include "text/text_splitter.h"

namespace fleet::text {
namespace {

constexpr std::string_view kWordMark = "\xE2\x96\x81";  // ▁, a space in SentencePiece's files

std::string fallback_name(unsigned byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte >> 4] + kDigits[byte & 15] + ">";
}

std::pair<std::string, std::string> merge_parts(const Json& merge, const PartOptions& options) {
  if (merge.is_array() && merge.size() == 2 && merge.at(size_t{0}).is_string() &&
      merge.at(1).is_string()) {
    return {merge.at(size_t{0}).get<std::string>(), merge.at(1).get<std::string>()};
  }
  if (merge.is_string()) {
    const std::string text = merge.get<std::string>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  }
  options.wrong("merges", "an array of \"a b\" or [\"a\", \"b\"]");
}

}  // namespace

Bpe::Bpe(const PartOptions& options, bool byte_level) {
  const Json* dropout = options.find("dropout");
  if (dropout && !(dropout->is_number() && dropout->get<double>() == 0)) {
    options.refuse("dropout");
  }
  vocabulary_ = vocabulary_option(options);
  ignore_merges_ = options.flag("ignore_merges", false);
  byte_fallback_ = options.flag("byte_fallback", false);
  fuse_unk_ = options.flag("fuse_unk", false);
  read_affixes(options, byte_level);
  read_symbols(options, byte_level);
  read_merges(options);
}

void Bpe::read_affixes(const PartOptions& options, bool byte_level) {
  prefix_ = options.text("continuing_subword_prefix", "");
  suffix_ = options.text("end_of_word_suffix", "");
  if (!byte_level) return;
  for (std::string* affix : {&prefix_, &suffix_}) {
    std::string bytes;
    if (!byte_level_bytes(*affix, bytes)) {
      options.refuse("an affix that is not in the byte-level alphabet");
    }
    *affix = bytes;
  }
}

void Bpe::read_symbols(const PartOptions& options, bool byte_level) {
  byte_symbols_ = byte_level;
  byte_ids_.fill(kNoId);
  fallback_.fill(kNoId);
  const std::string unk = options.text("unk_token", "");
  if (!unk.empty()) {
    const auto id = vocabulary_.find(unk);
    if (!id) options.wrong("unk_token", "in the vocabulary");
    unk_ = *id;
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (const auto id = vocabulary_.find(fallback_name(byte))) fallback_[byte] = *id;
  }
  if (!byte_level) return;
  bytes_.emplace(vocabulary_.size());
  std::string bytes;
  for (uint32_t id = 0; id < vocabulary_.size(); ++id) {
    const auto token = vocabulary_.token(id);
    if (token && byte_level_bytes(*token, bytes)) bytes_->add(bytes, id);
  }
  bool complete = true;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto id = bytes_->find(std::string(1, static_cast<char>(byte)));
    byte_ids_[byte] = id ? *id : kNoId;
    complete = complete && id;
  }
  if (byte_fallback_ && !complete) {
    options.refuse("byte_fallback and bytes that are not in its vocabulary after ByteLevel");
  }
}

void Bpe::read_merges(const PartOptions& options) {
  const std::vector<Json>& list = options.list("merges");
  merges_ = MergeTable(list.size());
  const std::string& prefix = options.text("continuing_subword_prefix", "");
  // A cut before the mark of a word is free if no merge joins it to the token before.
  bool mark_begins_tokens = !byte_symbols_ && prefix_.empty() && suffix_.empty() &&
                            !ignore_merges_ && vocabulary_.find(kWordMark);
  uint32_t rank = 0;
  for (const Json& merge : list) {
    const auto [left, right] = merge_parts(merge, options);
    const size_t skipped = std::min(prefix.size(), right.size());
    const auto left_id = vocabulary_.find(left), right_id = vocabulary_.find(right);
    const auto id = vocabulary_.find(left + right.substr(skipped));
    if (!left_id || !right_id || !id) {
      throw Error(ErrorCode::kUsage,
                  "the merge of '" + left + "' and '" + right + "' is not in the vocabulary",
                  options.where());
    }
    merges_.add(*left_id, *right_id, rank++, *id);
    if (right.starts_with(kWordMark) && !left.ends_with(kWordMark)) mark_begins_tokens = false;
  }
  if (mark_begins_tokens) boundary_ = kWordMark;
}

Bpe::Bpe(const std::vector<std::string>& tokens, const std::string& where) {
  vocabulary_ = Vocabulary(tokens.size());
  for (uint32_t rank = 0; rank < tokens.size(); ++rank) {
    if (!tokens[rank].empty()) vocabulary_.add(tokens[rank], rank);
  }
  byte_symbols_ = ignore_merges_ = true;
  fallback_.fill(kNoId);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto id = vocabulary_.find(std::string(1, static_cast<char>(byte)));
    if (!id) {
      throw Error(ErrorCode::kUsage,
                  "the rank file has no token for the byte " + std::to_string(byte), where);
    }
    byte_ids_[byte] = *id;
  }
  merges_ = MergeTable(tokens.size() * 2);
  for (uint32_t rank = 0; rank < tokens.size(); ++rank) {
    const std::string_view token = tokens[rank];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = vocabulary_.find(token.substr(0, cut));
      if (!left) continue;
      const auto right = vocabulary_.find(token.substr(cut));
      if (right) merges_.add(*left, *right, rank, rank);
    }
  }
}

size_t Bpe::first_part(std::string_view piece) const {
  if (boundary_.empty()) return piece.size();
  // The first mark after another character.
  size_t at = 0;
  while (piece.substr(at).starts_with(boundary_)) at += boundary_.size();
  at = piece.find(boundary_, at);
  return at == std::string_view::npos ? piece.size() : at;
}

std::unique_ptr<Model> make_rank_model(const std::vector<std::string>& tokens,
                                       const std::string& where) {
  return std::make_unique<Bpe>(tokens, where);
}

}  // namespace fleet::text
