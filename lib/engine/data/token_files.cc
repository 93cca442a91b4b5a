#include "data/token_files.h"

#include <algorithm>

#include "base/error.h"

namespace fleet::data {

TokenFiles::TokenFiles(const std::vector<std::string>& paths,
                       std::optional<text::TokenWidth> width) {
  FLEET_CHECK(!paths.empty(), "tokens of no file");
  int64_t at = 0;
  for (const std::string& path : paths) {
    files_.emplace_back(path, width);
    const text::TokenFile& file = files_.back();
    if (file.format() != format() || file.width() != this->width()) {
      throw Error(ErrorCode::kUsage, "the file has another format than " + files_[0].path(), path,
                  "write all files with the same program and tokenizer");
    }
    starts_.push_back(at);
    at += file.size();
  }
  starts_.push_back(at);
}

void TokenFiles::copy(int64_t begin, std::span<uint32_t> to) const {
  size_t file = std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin() - 1;
  while (!to.empty()) {
    const int64_t inside = begin - starts_[file];
    const auto count = std::min(to.size(), static_cast<size_t>(files_[file].size() - inside));
    files_[file].copy(inside, to.first(count));
    to = to.subspan(count);
    begin += static_cast<int64_t>(count);
    ++file;
  }
}

}  // namespace fleet::data
