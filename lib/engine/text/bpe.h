// Byte-pair encoding: joins the pair of neighbours with the lowest rank until no pair has one.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/model.h"

namespace fleet::text {

class PartOptions;

class Bpe : public Model {
 public:
  Bpe(const PartOptions& options, bool byte_level);
  // The model of a rank file.
  Bpe(const std::vector<std::string>& tokens, const std::string& where);

  void encode(std::string_view piece, std::vector<uint32_t>& ids) const override {
    encode(piece, ids, nullptr);
  }
  void encode(std::string_view piece, std::vector<uint32_t>& ids,
              std::vector<uint32_t>& lengths) const override;
  size_t first_part(std::string_view piece) const override;

 private:
  static constexpr uint32_t kNoId = 0xFFFFFFFF;

  void read_affixes(const PartOptions& options, bool byte_level);
  void read_symbols(const PartOptions& options, bool byte_level);
  void read_merges(const PartOptions& options);
  void find_boundary();

  // lengths: the bytes of the piece's tokens alone; may be null.
  using Lengths = std::vector<uint32_t>;
  void encode(std::string_view piece, std::vector<uint32_t>& ids, Lengths* lengths) const;
  void symbols(std::string_view piece, std::vector<uint32_t>& ids, Lengths* lengths) const;
  void symbols_of_characters(std::string_view piece, std::vector<uint32_t>& ids,
                             Lengths* lengths) const;
  // Joins the ids from `begin` on.
  void merge_short(std::vector<uint32_t>& ids, size_t begin, Lengths* lengths) const;
  void merge_long(std::vector<uint32_t>& ids, size_t begin, Lengths* lengths) const;
  const Vocabulary& pieces() const { return bytes_ ? *bytes_ : vocabulary_; }

  std::optional<Vocabulary> bytes_;  // the bytes of the tokens, in a byte-level file
  MergeTable merges_{0};
  std::array<uint32_t, 256> byte_ids_;  // byte -> id, in a byte-level file
  std::array<uint32_t, 256> fallback_;  // "<0x0A>"
  bool byte_symbols_ = false, ignore_merges_ = false, byte_fallback_ = false, fuse_unk_ = false;
  uint32_t unk_ = kNoId;
  std::string prefix_, suffix_;
  std::string boundary_;
};

}  // namespace fleet::text
