// Texts to tokens: pieces, words, offsets, truncation and the post-processor's template.
#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "base/error.h"
#include "text/aligned_text.h"
#include "text/code_point_set.h"
#include "text/tokenizer_parts.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

uint64_t next_owner() {
  static std::atomic<uint64_t> count{0};
  return ++count;
}

// The cache of this thread for a tokenizer; a thread that uses more than two fills them again.
PieceCache& thread_cache(uint64_t owner) {
  thread_local std::array<PieceCache, 2> caches;
  thread_local size_t last = 0;
  if (caches[last].owner() == owner) return caches[last];
  last = 1 - last;
  if (caches[last].owner() != owner) caches[last].reset(owner);
  return caches[last];
}

}  // namespace

Tokenizer::Parts::Parts(TextSplitter text_splitter, Decoder text_decoder)
    : splitter(std::move(text_splitter)), decoder(std::move(text_decoder)), owner(next_owner()) {}

void Tokenizer::Parts::encode_piece(std::string_view piece, PieceCache& cache,
                                    std::vector<uint32_t>& ids) const {
  while (!piece.empty()) {
    const std::string_view part = piece.substr(0, model->first_part(piece));
    piece.remove_prefix(part.size());
    if (part.size() > PieceCache::kLongestPiece) {
      model->encode(part, ids);
      continue;
    }
    const uint64_t hash = hash_of(part);
    size_t count;
    if (const uint32_t* known = cache.find(part, hash, &count)) {
      ids.insert(ids.end(), known, known + count);
      continue;
    }
    const size_t before = ids.size();
    model->encode(part, ids);
    cache.add(part, hash, std::span(ids).subspan(before));
  }
}

void Tokenizer::Parts::encode_text(std::string_view text, bool specials,
                                   std::vector<uint32_t>& ids) const {
  PieceCache& cache = thread_cache(owner);
  cut(
      text, specials, [&](std::string_view piece) { encode_piece(piece, cache, ids); },
      [&](uint32_t id) { ids.push_back(id); });
}

// Added tokens of the raw text, the normalizer between them, added tokens of the normalized text,
// and pieces between those.
void Tokenizer::Parts::cut(std::string_view given, bool specials, const TextSplitter::Piece& piece,
                           const std::function<void(uint32_t id)>& token) const {
  const std::string replaced = is_valid_utf8(given) ? "" : valid_utf8(given);
  const std::string_view text = replaced.empty() ? given : replaced;
  const TokenFinder::Token push = [&](const AddedToken& found, size_t, size_t) { token(found.id); };
  const auto encode_normalized = [&](std::string_view normalized, bool first) {
    if (added->normalized().empty()) return splitter.split(normalized, piece, first);
    added->normalized().split(
        normalized, specials,
        [&](size_t begin, size_t end) {
          splitter.split(normalized.substr(begin, end - begin), piece, first && begin == 0);
        },
        push);
  };
  const auto encode_raw = [&](size_t begin, size_t end) {
    const std::string_view raw = text.substr(begin, end - begin);
    if (splitter.normalizes()) {
      encode_normalized(splitter.normalize(raw), begin == 0 && splitter.begins_input(raw));
    } else {
      encode_normalized(raw, begin == 0);
    }
  };
  if (added->raw().empty()) {
    encode_raw(0, text.size());
  } else {
    added->raw().split(text, specials, encode_raw, push);
  }
}

// Likewise for a text that remembers its source.
void Tokenizer::Parts::cut_aligned(
    std::string_view text, const TextSplitter::AlignedPiece& piece,
    const std::function<void(uint32_t id, TextRange range)>& token) const {
  const AlignedText whole(text);
  const auto found_in = [&](AlignedView view) -> TokenFinder::Token {
    return [view, &token](const AddedToken& found, size_t begin, size_t end) {
      token(found.id,
            begin < end ? TextRange{view.from[begin].begin, view.from[end - 1].end} : TextRange{});
    };
  };
  const auto encode_raw = [&](size_t begin, size_t end) {
    const AlignedView raw = whole.view().part(begin, end - begin);
    AlignedText normalized(raw);
    splitter.normalize(normalized);
    const bool first = begin == 0 && splitter.begins_input(raw.text);
    const AlignedView view = normalized.view();
    added->normalized().split(
        view.text, true,
        [&](size_t from, size_t to) {
          splitter.split(view.part(from, to - from), piece, first && from == 0);
        },
        found_in(view));
  };
  added->raw().split(whole.text(), true, encode_raw, found_in(whole.view()));
}

void Tokenizer::Parts::encode_words(std::string_view text, Encoding& tokens) const {
  PieceCache& cache = thread_cache(owner);
  auto& [ids, type_ids, words, texts, offsets, removed] = tokens;
  int32_t word = 0;
  cut(
      text, true,
      [&](std::string_view piece) {
        encode_piece(piece, cache, ids);
        words.resize(ids.size(), word++);
      },
      [&](uint32_t id) {
        ids.push_back(id);
        words.push_back(word++);
      });
}

void Tokenizer::Parts::encode_aligned(std::string_view text, Encoding& tokens) const {
  auto& [ids, type_ids, words, texts, offsets, removed] = tokens;
  std::vector<uint32_t> lengths;
  int32_t word = 0;
  cut_aligned(
      text,
      [&](AlignedView piece) {
        lengths.clear();
        model->encode(piece.text, ids, lengths);
        words.resize(ids.size(), word++);
        size_t at = 0;
        for (const uint32_t length : lengths) {
          const size_t first = std::min(at, piece.text.size() - 1);
          at = std::min(at + length, piece.text.size());
          offsets.push_back({piece.from[first].begin, piece.from[std::max(at, first + 1) - 1].end});
        }
      },
      [&](uint32_t id, TextRange range) {
        ids.push_back(id);
        words.push_back(word++);
        offsets.push_back(range);
      });
}

std::string Tokenizer::Parts::token_text(uint32_t id) const {
  if (const AddedToken* token = added->find(id)) return token->content;
  const auto token = model->vocabulary().token(id);
  return token ? std::string(*token) : std::string();
}

// process_offsets() in tokenizers/src/pre_tokenizers/byte_level.rs of Hugging Face's tokenizers.
void Tokenizer::Parts::trim_offsets(Encoding& encoding, std::string_view text) const {
  const auto is_space = [](char32_t c) {
    return c == byte_level_code_point(' ') || white_space().contains(c);
  };
  for (const OffsetTrimming& trimming : post_processor.trimmings) {
    for (size_t i = 0; i < encoding.size(); ++i) {
      const std::u32string token = code_points_of(valid_utf8(token_text(encoding.ids[i])));
      const auto first = std::find_if_not(token.begin(), token.end(), is_space);
      const auto last = std::find_if_not(token.rbegin(), token.rend(), is_space);
      auto leading = first - token.begin(), trailing = last - token.rbegin();
      TextRange& range = encoding.offsets[i];
      if ((i == 0 || range.begin == 0) && trimming.add_prefix_space && leading == 1) leading = 0;
      // White space of one character each; it may have several bytes.
      for (; leading > 0 && range.begin < range.end; --leading) {
        size_t bad;
        const size_t bytes = valid_character(text, range.begin, &bad);
        range.begin += static_cast<uint32_t>(bytes > 0 ? bytes : bad);
      }
      for (; trailing > 0 && range.begin < range.end; --trailing) {
        range.end = static_cast<uint32_t>(previous_character(text, range.end));
      }
    }
  }
}

Encoding Tokenizer::Parts::tokens_of(std::string_view text, int number,
                                     const EncodeOptions& options) const {
  Encoding tokens;
  options.offsets ? encode_aligned(text, tokens) : encode_words(text, tokens);
  tokens.texts.assign(tokens.size(), static_cast<int8_t>(number));
  tokens.type_ids.assign(tokens.size(), static_cast<uint32_t>(number));
  return tokens;
}

namespace {

void keep(Encoding& encoding, size_t kept, bool left) {
  const size_t removed = encoding.size() - kept;
  const auto cut = [&](auto& values) {
    if (values.empty()) return;
    if (left) values.erase(values.begin(), values.begin() + static_cast<ptrdiff_t>(removed));
    values.resize(kept);
  };
  cut(encoding.ids);
  cut(encoding.type_ids);
  cut(encoding.words);
  cut(encoding.texts);
  cut(encoding.offsets);
  encoding.removed += removed;
}

void append(Encoding& to, const Encoding& text, const TemplatePiece& piece) {
  const auto add = [](auto& values, const auto& more) {
    values.insert(values.end(), more.begin(), more.end());
  };
  add(to.ids, text.ids);
  add(to.words, text.words);
  add(to.offsets, text.offsets);
  to.type_ids.resize(to.ids.size(), piece.type);
  to.texts.resize(to.ids.size(), static_cast<int8_t>(piece.text));
  to.removed += text.removed;
}

}  // namespace

Encoding Tokenizer::Parts::joined(const Encoding& first, const Encoding* second,
                                  const EncodeOptions& options) const {
  Encoding all;
  for (const TemplatePiece& piece : post_processor.of(second != nullptr)) {
    if (piece.text >= 0) {
      append(all, piece.text == 0 ? first : *second, piece);
    } else if (options.special_tokens) {
      all.ids.push_back(piece.id);
      all.type_ids.push_back(piece.type);
      all.words.push_back(-1);
      all.texts.push_back(-1);
      if (options.offsets) all.offsets.emplace_back();
    }
  }
  return all;
}

Encoding Tokenizer::Parts::encode(std::string_view first_text,
                                  std::optional<std::string_view> second_text,
                                  const EncodeOptions& options) const {
  Encoding first = tokens_of(first_text, 0, options), other;
  if (second_text) other = tokens_of(*second_text, 1, options);
  Encoding* second = second_text ? &other : nullptr;
  const auto& to = options.truncation ? options.truncation
                   : truncation.on    ? std::optional(truncation.to)
                                      : std::nullopt;
  if (to) {
    const size_t around =
        options.special_tokens ? PostProcessor::added(post_processor.of(second != nullptr)) : 0;
    if (to->most < around) {
      throw Error(ErrorCode::kUsage, "truncation to " + std::to_string(to->most) +
                                         " tokens is shorter than the " + std::to_string(around) +
                                         " that the post-processor adds");
    }
    const KeptTokens kept = kept_tokens(first.size(), second ? second->size() : 0,
                                        to->most - around, to->rule, second != nullptr);
    keep(first, kept.first, to->left);
    if (second) keep(*second, kept.second, to->left);
  }
  if (options.offsets) {  // after truncation: the first token that is left is a special case
    trim_offsets(first, first_text);
    if (second) trim_offsets(other, *second_text);
  }
  return joined(first, second, options);
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return parts_->encode(text, std::nullopt, options);
}

Encoding Tokenizer::encode(std::string_view first, std::string_view second,
                           const EncodeOptions& options) const {
  return parts_->encode(first, second, options);
}

Encoding Tokenizer::joined(const Encoding& first, const Encoding* second) const {
  EncodeOptions options;
  options.offsets = !first.offsets.empty() || (second && !second->offsets.empty());
  return parts_->joined(first, second, options);
}

size_t Tokenizer::special_tokens(bool is_pair) const {
  return PostProcessor::added(parts_->post_processor.of(is_pair));
}

}  // namespace fleet::text
