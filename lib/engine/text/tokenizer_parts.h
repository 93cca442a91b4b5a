// The inside of a Tokenizer. tokenizer.cc reads files, encode_texts.cc encodes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/model.h"
#include "text/piece_cache.h"
#include "text/post_processor.h"
#include "text/text_splitter.h"
#include "text/tokenizer.h"

namespace fleet::text {

struct Tokenizer::Parts {
  Parts(TextSplitter text_splitter, Decoder text_decoder);

  TextSplitter splitter;
  Decoder decoder;
  std::unique_ptr<Model> model;
  std::unique_ptr<AddedTokens> added;
  PostProcessor post_processor;
  Truncation truncation;
  Padding padding;
  uint64_t owner;  // the number of this tokenizer

  void check_lengths(const std::string& where) const;
  void encode_piece(std::string_view piece, PieceCache& cache, std::vector<uint32_t>& ids) const;
  void encode_text(std::string_view text, bool specials, std::vector<uint32_t>& ids) const;
  // Calls piece(..) and token(..) in order.
  void cut(std::string_view text, bool specials, const TextSplitter::Piece& piece,
           const std::function<void(uint32_t id)>& token) const;
  void cut_aligned(std::string_view text, const TextSplitter::AlignedPiece& piece,
                   const std::function<void(uint32_t id, TextRange range)>& token) const;
  void encode_words(std::string_view text, Encoding& tokens) const;
  void encode_aligned(std::string_view text, Encoding& tokens) const;
  void trim_offsets(Encoding& encoding, std::string_view text) const;
  Encoding tokens_of(std::string_view text, int number, const EncodeOptions& options) const;
  Encoding joined(const Encoding& first, const Encoding* second,
                  const EncodeOptions& options) const;
  Encoding encode(std::string_view first_text, std::optional<std::string_view> second_text,
                  const EncodeOptions& options) const;
  std::string token_text(uint32_t id) const;
};

}  // namespace fleet::text
