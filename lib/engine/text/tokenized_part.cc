#include "text/tokenized_part.h"

#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/number_text.h"
#include "text/text_cutter.h"

namespace fleet::text {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNamedLines = 10;  // the log names this many damaged lines

Json part_identity(const CorpusFile& file, const CorpusPart& part) {
  return {{"file", file.path},
          {"index", static_cast<uint64_t>(part.file)},
          {"bytes", file.bytes},
          {"modified", file.modified},
          {"begin", part.begin}};
}

// Whether chance gives the document at this place to the validation.
bool is_validation(const TokenizeOptions& options, size_t file, int64_t position) {
  if (options.validation <= 0) return false;
  const uint64_t place[] = {file, static_cast<uint64_t>(position)};
  // SplitMix64's last steps: hash_bytes() alone is not uniform.
  uint64_t bits = hash_bytes(place, sizeof place, options.seed);
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  bits ^= bits >> 31;
  return static_cast<double>(bits >> 11) * 0x1p-53 < options.validation;
}

}  // namespace

PartFiles::PartFiles(const std::string& folder, size_t number)
    : stem_(folder + "/" + format_printf("%08zu", number)) {}

std::optional<PartSummary> PartFiles::find(const CorpusFile& file, const CorpusPart& part,
                                           TokenWidth width) const {
  if (!fs::exists(summary())) return std::nullopt;
  try {
    const Json json = Json::parse(read_file(summary()));
    if (json.at("part") != part_identity(file, part)) return std::nullopt;
    const PartSummary found{.documents = json.at("documents").get<int64_t>(),
                            .tokens = json.at("tokens").get<int64_t>(),
                            .validation_tokens = json.at("validation_tokens").get<int64_t>(),
                            .damaged = json.at("damaged").get<int64_t>()};
    for (const bool validation : {false, true}) {
      const int64_t count = validation ? found.validation_tokens : found.tokens;
      if (count > 0 && TokenFile(tokens(validation), width).size() != count) return std::nullopt;
    }
    return found;
  } catch (const JsonError&) {
    return std::nullopt;
  } catch (const Error&) {  // a file is missing or cut off
    return std::nullopt;
  }
}

void PartFiles::remove() const {
  fs::remove(summary());  // first: the part is not finished from now on
  for (const bool validation : {false, true}) fs::remove(tokens(validation));
}

void PartFiles::finish(const CorpusFile& file, const CorpusPart& part,
                       const PartSummary& summary) const {
  const Json json = {{"part", part_identity(file, part)},
                     {"documents", summary.documents},
                     {"tokens", summary.tokens},
                     {"validation_tokens", summary.validation_tokens},
                     {"damaged", summary.damaged}};
  write_file_atomically(this->summary(), json.dump_lossy() + "\n");
}

// The token files of a part that is being encoded.
class PartEncoder::Output {
 public:
  Output(const PartFiles& files, TokenWidth width) : files_(files), width_(width) {}
  void add(bool validation, std::span<const uint32_t> ids) {
    if (ids.empty()) return;
    std::unique_ptr<TokenWriter>& writer = writers_[validation];
    if (!writer) {
      writer =
          std::make_unique<TokenWriter>(files_.tokens(validation), TokenFormat::kNanoGpt, width_);
    }
    writer->add(ids);
  }
  int64_t size(bool validation) const {
    return writers_[validation] ? writers_[validation]->size() : 0;
  }
  void finish() {
    for (const auto& writer : writers_) {
      if (writer) writer->finish();
    }
  }

 private:
  const PartFiles& files_;
  const TokenWidth width_;
  std::unique_ptr<TokenWriter> writers_[2];
};

PartSummary PartEncoder::encode(const CorpusFile& file, const CorpusPart& part,
                                const PartFiles& files) {
  summary_ = {};
  files.remove();
  Output output(files, width_);
  if (file.json_lines) {
    encode_lines(file, part, &output);
  } else if (options_.sentences != SentenceForm::kNone) {
    encode_sentences(file, part, &output);
  } else {
    encode_text(file, part, &output);
  }
  summary_.tokens = output.size(false);
  summary_.validation_tokens = output.size(true);
  output.finish();
  files.finish(file, part, summary_);
  return summary_;
}

void PartEncoder::add_text(std::string_view text) {
  if (options_.sentences != SentenceForm::kNone) {
    SentenceEncoder encoder(tokenizer_, options_.sentences);
    encoder.add(text, ids_);
    encoder.end_document(ids_);
    return;
  }
  if (options_.parse_special) {
    tokenizer_.encode_ordinary(text, ids_);
  } else {
    tokenizer_.encode_as_text(text, ids_);
  }
}

void PartEncoder::damaged(const std::string& what, const std::string& where,
                          const std::string& next) {
  if (!options_.skip_damaged) {
    throw Error(ErrorCode::kUsage, what, where, next + ", or " + options_.skip_advice);
  }
  const int64_t named = ++counters_->named;
  if (named <= kNamedLines) spdlog::warn("{}: {}; the line is left out", where, what);
  if (named == kNamedLines + 1) spdlog::warn("more damaged lines are left out; they are counted");
  if (!summary_.first_damage) {
    summary_.first_damage = Error(ErrorCode::kUsage, what, where, next);
  }
  ++summary_.damaged;
  ++counters_->damaged;
}

void PartEncoder::encode_lines(const CorpusFile& file, const CorpusPart& part, Output* output) {
  LineReader lines(file, part);
  int64_t reported = 0;
  for (std::string_view line; lines.next(&line);) {
    std::optional<std::string> text;
    try {
      text = json_line_text(line, options_.text_key, {});
    } catch (const Error& error) {
      damaged(error.failure(), lines.where(), error.next());
    }
    if (text && !text->empty()) {
      ids_.clear();
      if (options_.eos == EosPlace::kPrepend) ids_.push_back(eos_);
      add_text(*text);
      if (options_.eos == EosPlace::kAppend) ids_.push_back(eos_);
      output->add(is_validation(options_, part.file, lines.position()), ids_);
      ++summary_.documents;
      counters_->tokens += static_cast<int64_t>(ids_.size());
    }
    const int64_t now = lines.done();
    counters_->bytes += now - reported;
    reported = now;
  }
  counters_->bytes += part.end - part.begin - reported;
}

// Where the validation's share of a text file begins: at a line.
size_t PartEncoder::validation_begin(std::string_view text, size_t first) const {
  if (options_.validation <= 0) return text.size();
  const auto share = static_cast<double>(text.size() - first) * options_.validation;
  const size_t at = text.size() - static_cast<size_t>(share);
  if (at <= first) return first;
  const size_t found = text.find('\n', at - 1);
  return found == std::string_view::npos ? text.size() : found + 1;
}

void PartEncoder::encode_text(const CorpusFile& file, const CorpusPart& part, Output* output) {
  const CorpusText whole(file);
  const std::string_view text = whole.bytes();
  const auto slot_bytes = static_cast<size_t>(options_.part_bytes);
  const TextCutter cutter(tokenizer_, text, whole.mark(), slot_bytes);
  // A part of a plain file is a slot; a compressed file is one part, of all slots of its text.
  const size_t first = file.compressed ? 0 : static_cast<size_t>(part.begin) / slot_bytes;
  const size_t last = file.compressed ? cutter.slots() : first + 1;
  const size_t split = validation_begin(text, whole.mark());
  for (size_t slot = first; slot < last; ++slot) {
    const std::optional<size_t> begin = cutter.cut(slot);
    if (!begin) continue;  // it is in the piece of a slot before
    const size_t end = cutter.next_cut(slot + 1);
    for (const bool validation : {false, true}) {
      const size_t from = validation ? std::max(*begin, split) : *begin;
      const size_t to = validation ? end : std::min(end, split);
      if (from >= to) continue;
      const bool starts = from == (validation ? split : whole.mark());
      const bool ends = to == (validation ? text.size() : split);
      ids_.clear();
      if (starts) ++summary_.documents;
      if (starts && options_.eos == EosPlace::kPrepend) ids_.push_back(eos_);
      std::string kept;
      add_text(without_damage(file, text, from, to, &kept));
      if (ends && options_.eos == EosPlace::kAppend) ids_.push_back(eos_);
      output->add(validation, ids_);
      counters_->tokens += static_cast<int64_t>(ids_.size());
    }
  }
  counters_->bytes += part.end - part.begin;
}

void PartEncoder::write_ids(Output* output) {
  output->add(false, ids_);
  counters_->tokens += static_cast<int64_t>(ids_.size());
  ids_.clear();
}

// starts: no sentence of the file is before it. ends: it is the end of the file.
void PartEncoder::encode_paragraphs(std::string_view text, bool starts, bool ends, Output* output) {
  constexpr size_t kWritten = 1 << 16;  // ids that are kept before they are written
  const bool lines = options_.sentences == SentenceForm::kLines;
  SentenceEncoder encoder(tokenizer_, options_.sentences);
  if (!lines && !starts) encoder.continue_document();
  for (size_t at = 0; at < text.size();) {
    // A paragraph, with the empty line behind it.
    size_t end = at;
    bool empty = false;
    while (end < text.size() && !empty) {
      const size_t next = std::min(text.find('\n', end), text.size() - 1) + 1;
      empty = is_empty_line(text.substr(end, next - end));
      end = next;
    }
    encoder.add(text.substr(at, end - at), ids_);
    if (lines && empty) summary_.documents += encoder.end_document(ids_) ? 1 : 0;
    if (ids_.size() >= kWritten) write_ids(output);
    at = end;
  }
  if (ends) summary_.documents += encoder.end_document(ids_) ? 1 : 0;
  write_ids(output);
}

void PartEncoder::encode_sentences(const CorpusFile& file, const CorpusPart& part, Output* output) {
  const CorpusText whole(file);
  const std::string_view text = whole.bytes();
  const auto slot_bytes = static_cast<size_t>(options_.part_bytes);
  const ParagraphCutter cutter(text, whole.mark(), slot_bytes);
  const size_t first = file.compressed ? 0 : static_cast<size_t>(part.begin) / slot_bytes;
  const size_t last = file.compressed ? cutter.slots() : first + 1;
  for (size_t slot = first; slot < last; ++slot) {
    const std::optional<size_t> begin = cutter.cut(slot);
    if (!begin) continue;  // it is in the piece of a slot before
    const size_t end = cutter.next_cut(slot + 1);
    ids_.clear();
    std::string kept;
    const bool starts = is_empty_line(text.substr(whole.mark(), *begin - whole.mark()));
    encode_paragraphs(without_damage(file, text, *begin, end, &kept), starts, end == text.size(),
                      output);
  }
  counters_->bytes += part.end - part.begin;
}

std::string_view PartEncoder::without_damage(const CorpusFile& file, std::string_view text,
                                             size_t begin, size_t end, std::string* kept) {
  const std::string_view piece = text.substr(begin, end - begin);
  if (!first_bad_byte(piece)) return piece;
  for (size_t at = 0; at < piece.size();) {
    const size_t found = piece.find('\n', at);
    const size_t next = found == std::string_view::npos ? piece.size() : found + 1;
    const std::string_view line = piece.substr(at, next - at);
    if (first_bad_byte(line)) {
      damaged("the line is not UTF-8", place_of_byte(file.path, text, begin + at),
              "correct or remove the line");
    } else {
      *kept += line;
    }
    at = next;
  }
  return *kept;
}

}  // namespace fleet::text
