#include <algorithm>

#include "daemon/job_store.h"

namespace fleet {

void ConsoleLog::add(bool error, std::string_view text) {
  constexpr size_t kChunkBytes = 4096;  // small pieces are merged to limit their overhead
  const bool joins = !chunks_.empty() && chunks_.back().error == error &&
                     chunks_.back().text.size() + text.size() <= kChunkBytes;
  if (joins) {
    chunks_.back().text += text;
  } else {
    chunks_.push_back({error, std::string(text)});
  }
  end_ += text.size();
  // A small chunk still costs the size of a Chunk.
  const auto too_much = [this] {
    return end_ - begin_ > limit_ || chunks_.size() > limit_ / sizeof(Chunk) + 1;
  };
  while (chunks_.size() > 1 && too_much()) {
    begin_ += chunks_.front().text.size();
    chunks_.pop_front();
  }
}

ConsoleLog::Chunk ConsoleLog::next(uint64_t* at, size_t max_bytes) const {
  *at = std::max(*at, begin_);
  uint64_t start = begin_;
  for (const Chunk& chunk : chunks_) {
    if (*at < start + chunk.text.size()) {
      Chunk found{chunk.error, chunk.text.substr(*at - start, max_bytes)};
      *at += found.text.size();
      return found;
    }
    start += chunk.text.size();
  }
  return {};
}

}  // namespace fleet
