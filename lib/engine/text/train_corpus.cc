#include "text/train_corpus.h"

#include <atomic>

#include "base/error.h"
#include "text/part_workers.h"

namespace fleet::text {
namespace {

// A table of this size is added to the shared one: it fits into the caches of a core.
constexpr size_t kMostWords = 1 << 15;

class PartCounter {
 public:
  PartCounter(const TextSplitter& splitter, const std::string& text_key, WordCounts* counts)
      : splitter_(splitter), text_key_(text_key), counts_(counts) {}

  // Returns whether the part has a word.
  bool count(const CorpusFile& file, const CorpusPart& part, std::atomic<int64_t>* bytes) {
    any_ = false;
    LineReader lines(file, part);
    int64_t reported = 0;
    for (std::string_view line; lines.next(&line);) {
      if (file.json_lines) {
        count_json(line, lines);
      } else {
        count_line(line, lines);
      }
      if (table_.size() >= kMostWords) flush();
      const int64_t now = lines.done();
      bytes->fetch_add(now - reported, std::memory_order_relaxed);
      reported = now;
    }
    flush();
    return any_;
  }

 private:
  void count_json(std::string_view line, const LineReader& lines) {
    std::optional<std::string> text;
    try {
      text = json_line_text(line, text_key_, {});
    } catch (const Error& error) {
      throw Error(error.code(), error.failure(), lines.where(), error.next());
    }
    if (text) count_text(*text);
  }

  void count_line(std::string_view line, const LineReader& lines) {
    if (first_bad_byte(line)) {
      throw Error(ErrorCode::kUsage, "the line is not UTF-8", lines.where(),
                  "correct or remove the line");
    }
    count_text(line);
  }

  void count_text(std::string_view text) {
    splitter_.pieces(text, [&](std::string_view piece) { table_.add(piece); });
  }

  void flush() {
    any_ |= table_.size() > 0;
    counts_->add(table_);
    table_.clear();
  }

  const TextSplitter& splitter_;
  const std::string& text_key_;
  WordCounts* counts_;
  WordTable table_;
  bool any_ = false;
};

}  // namespace

void count_corpus(std::span<const CorpusFile> files, const TextSplitter& splitter,
                  const CountOptions& options, WordCounts* counts,
                  const std::function<void(int64_t bytes)>& progress) {
  const std::vector<CorpusPart> parts = corpus_parts(files, options.part_bytes);
  std::atomic<int64_t> bytes = 0;
  std::atomic<bool> any = false;
  const auto make_worker = [&] {
    const auto counter = std::make_shared<PartCounter>(splitter, options.text_key, counts);
    return [&, counter](size_t part) {
      if (counter->count(files[parts[part].file], parts[part], &bytes)) any = true;
    };
  };
  PartWorkers::run(parts.size(), options.threads, make_worker, [&] {
    if (progress) progress(bytes.load(std::memory_order_relaxed));
  });
  if (any) return;
  throw Error(ErrorCode::kUsage, "the corpus has no text", files.empty() ? "" : files[0].path,
              "give files with texts");
}

}  // namespace fleet::text
