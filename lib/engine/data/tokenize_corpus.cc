#include "data/tokenize_corpus.h"

#include <algorithm>
#include <exception>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"

namespace fleet::data {
namespace {

constexpr int64_t kPartBytes = 1 << 20;

// A file of plain text is one document, and so one part.
std::vector<text::CorpusPart> document_parts(std::span<const text::CorpusFile> files) {
  std::vector<text::CorpusPart> parts;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!files[i].json_lines) {
      if (files[i].bytes > 0) parts.push_back({.file = i, .begin = 0, .end = files[i].bytes});
      continue;
    }
    for (text::CorpusPart part : text::corpus_parts(files.subspan(i, 1), kPartBytes)) {
      part.file = i;
      parts.push_back(part);
    }
  }
  return parts;
}

struct PartTokens {
  std::vector<uint32_t> ids;
  int64_t documents = 0;
  std::exception_ptr error;
};

// Makes parts on several threads, and gives them out in order.
class PartTokenizer {
 public:
  PartTokenizer(std::span<const text::CorpusFile> files, const text::Tokenizer& tokenizer,
                const TokenizeOptions& options)
      : files_(files), tokenizer_(tokenizer), options_(options), parts_(document_parts(files)) {
    threads_ =
        start_threads(std::clamp<size_t>(options.threads, 1, std::max<size_t>(parts_.size(), 1)),
                      "tokenize", [this] { work(); });
  }
  ~PartTokenizer() {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
    }
    room_.notify_all();
    threads_.clear();  // joins
  }
  PartTokenizer(const PartTokenizer&) = delete;

  const std::vector<text::CorpusPart>& parts() const { return parts_; }
  // The next part. Rethrows what a thread threw in it: the error of the first part that fails.
  PartTokens next() {
    const MutexLock lock(mutex_);
    while (!made_.contains(given_)) ready_.wait(mutex_);
    PartTokens part = std::move(made_.extract(given_).mapped());
    ++given_;
    room_.notify_all();
    if (part.error) std::rethrow_exception(part.error);
    return part;
  }

 private:
  void work() {
    size_t index = 0;
    while (take(&index)) {
      PartTokens part;
      try {
        part = make(parts_[index]);
      } catch (...) {
        part.error = std::current_exception();
      }
      const MutexLock lock(mutex_);
      made_.emplace(index, std::move(part));
      ready_.notify_all();
    }
  }

  // Threads run ahead by a few parts only: tokens that are not written take memory.
  bool take(size_t* index) {
    const MutexLock lock(mutex_);
    const size_t ahead = 4 * options_.threads + 4;
    while (!stopped_ && taken_ < parts_.size() && taken_ >= given_ + ahead) room_.wait(mutex_);
    if (stopped_ || taken_ == parts_.size()) return false;
    *index = taken_++;
    return true;
  }

  PartTokens make(const text::CorpusPart& part) const {
    const text::CorpusFile& file = files_[part.file];
    PartTokens made;
    if (!file.json_lines) {
      const text::CorpusText whole(file);
      add(whole.bytes().substr(whole.mark()), &made);
      return made;
    }
    text::LineReader reader(file, part);
    std::string_view line;
    while (reader.next(&line)) {
      const auto document = text_of_line(reader, line);
      if (document) add(*document, &made);
    }
    return made;
  }

  // Finding the number of a line takes time: only for errors.
  std::optional<std::string> text_of_line(const text::LineReader& reader,
                                          std::string_view line) const {
    try {
      return text::json_line_text(line, options_.text_key, "");
    } catch (const Error&) {
      return text::json_line_text(line, options_.text_key, reader.where());
    }
  }

  void add(std::string_view document, PartTokens* made) const {
    if (document.empty()) return;
    const std::vector<uint32_t> ids = tokenizer_.encode(document, true);
    if (ids.empty()) return;
    made->ids.insert(made->ids.end(), ids.begin(), ids.end());
    if (options_.mark && ids.back() != *options_.mark) made->ids.push_back(*options_.mark);
    ++made->documents;
  }

  const std::span<const text::CorpusFile> files_;
  const text::Tokenizer& tokenizer_;
  const TokenizeOptions& options_;
  const std::vector<text::CorpusPart> parts_;
  Mutex mutex_;
  CondVar ready_, room_;
  std::map<size_t, PartTokens> made_ FLEET_GUARDED_BY(mutex_);
  size_t taken_ FLEET_GUARDED_BY(mutex_) = 0, given_ FLEET_GUARDED_BY(mutex_) = 0;
  bool stopped_ FLEET_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;  // use all of the above
};

}  // namespace

int64_t tokenize_corpus(std::span<const text::CorpusFile> files, const text::Tokenizer& tokenizer,
                        const TokenizeOptions& options, text::TokenWriter& writer) {
  PartTokenizer tokens(files, tokenizer, options);
  int64_t documents = 0, done = 0, all = 0;
  for (const text::CorpusPart& part : tokens.parts()) all += part.end - part.begin;
  for (const text::CorpusPart& part : tokens.parts()) {
    const PartTokens made = tokens.next();
    writer.add(made.ids);
    documents += made.documents;
    done += part.end - part.begin;
    if (options.progress) options.progress(done, all);
  }
  return documents;
}

}  // namespace fleet::data
