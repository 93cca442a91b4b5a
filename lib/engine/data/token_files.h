// The tokens of several files, one after the other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/token_rows.h"
#include "text/token_file.h"

namespace fleet::data {

// Immutable: thread-safe. The files are mapped into memory.
class TokenFiles : public TokenSequence {
 public:
  // paths: at least one. width: of files without a header. kUsage if the files differ in format or
  // width; errors of text::TokenFile.
  TokenFiles(const std::vector<std::string>& paths, std::optional<text::TokenWidth> width);
  int64_t size() const override { return starts_.back(); }
  void copy(int64_t begin, std::span<uint32_t> to) const override;
  text::TokenFormat format() const { return files_[0].format(); }
  text::TokenWidth width() const { return files_[0].width(); }

 private:
  std::vector<text::TokenFile> files_;
  std::vector<int64_t> starts_;  // where each file begins in the sequence, and the end
};

}  // namespace fleet::data
