#include "data/token_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "base/cache_file.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/regular_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "text/tokenize_corpus.h"

namespace fleet::data {
namespace {

constexpr int kVersion = 1;  // increase it to invalidate all caches
constexpr double kProgressSeconds = 10;

// Size, time, and the content at some places: reading all of a large corpus would take minutes.
uint64_t hash_corpus_file(const text::CorpusFile& file, uint64_t hash) {
  constexpr int64_t kPieces = 16, kPiece = 1 << 16;
  hash = hash_bytes(&file.bytes, sizeof file.bytes, hash);
  hash = hash_bytes(&file.modified, sizeof file.modified, hash);
  const RegularFile open = open_regular_file(file.path);
  std::vector<char> piece(kPiece);
  for (int64_t i = 0; i < kPieces; ++i) {
    const int64_t at = std::max<int64_t>(open.size - kPiece, 0) * i / (kPieces - 1);
    const size_t got = read_at(open.fd, piece.data(), piece.size(), at, file.path);
    hash = hash_bytes(piece.data(), got, hash);
    if (open.size <= kPiece) break;
  }
  return hash;
}

uint64_t key_of(const TokenCacheRequest& request) {
  const auto tokenizer = hash_file(request.tokenizer_path);
  if (!tokenizer) {
    throw Error(ErrorCode::kIo, "cannot read the tokenizer", request.tokenizer_path,
                "check data.tokenizer");
  }
  uint64_t hash = hash_bytes(&*tokenizer, sizeof *tokenizer, kVersion);
  hash = hash_text(request.text_key, hash);
  hash = hash_text(request.parse_special ? "special" : "plain", hash);
  hash = hash_text(request.mark ? std::to_string(*request.mark) : "none", hash);
  for (const text::CorpusFile& file : request.files) {
    hash = hash_text(file.json_lines ? "lines" : "text", hash);
    hash = hash_corpus_file(file, hash);
  }
  return hash;
}

std::string path_of(const TokenCacheRequest& request) {
  const std::string name =
      format_printf("tokens-%016llx.bin", static_cast<unsigned long long>(key_of(request)));
  const std::string path = request.folder.empty() ? cache_file(name) : request.folder + "/" + name;
  if (!path.empty()) return path;
  throw Error(ErrorCode::kUsage, "no folder for the tokens is known: HOME is not set",
              "data.token_cache", "set it to a folder");
}

// The maker keeps this file locked, and writes its progress into it.
class MakerLock {
 public:
  explicit MakerLock(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
    if (!file_) throw_errno("cannot write into the folder of the tokens", path);
  }
  // Whether this process is the maker now. Without locks (an old NFS) there may be several makers:
  // each writes its own file, and the last rename wins.
  bool take() {
    while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return false;
      spdlog::info("{}: {}; other ranks may make the same tokens", shown_path(path_),
                   std::generic_category().message(errno));
      return true;
    }
    return true;
  }
  void publish(const std::string& progress) {
    const std::string line = progress + "\n";
    if (::ftruncate(file_.get(), 0) != 0) return;
    if (::pwrite(file_.get(), line.data(), line.size(), 0) < 0) return;  // only for messages
  }
  std::string progress() const {
    std::array<char, 256> text{};
    const ssize_t got = ::pread(file_.get(), text.data(), text.size(), 0);
    return got <= 0 ? "" : std::string(trim(std::string_view(text.data(), got)));
  }
  // Processes that wait have the file open, and find the tokens.
  void remove() { ::unlink(path_.c_str()); }

 private:
  const std::string path_;
  UniqueFd file_;
};

void wait_for_maker(MakerLock& lock, const TokenCacheRequest& request) {
  double said = -kProgressSeconds;
  while (!lock.take()) {
    if (monotonic_seconds() - said >= kProgressSeconds) {
      said = monotonic_seconds();
      const std::string progress = lock.progress();
      spdlog::info("waiting for another process, which tokenizes {}{}", request.name,
                   progress.empty() ? "" : ": " + shown_name(progress));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void make_tokens(const std::string& path, const TokenCacheRequest& request,
                 const text::Tokenizer& tokenizer, MakerLock& lock) {
  spdlog::info("tokenizing {} into {}", request.name, shown_path(path));
  const double begun = monotonic_seconds();
  double said = begun;
  const auto progress = [&](const text::TokenizeProgress& at) {
    const double now = monotonic_seconds();
    if (now - said < kProgressSeconds) return;
    said = now;
    // Parts of an earlier, interrupted run cost no time.
    const double speed = static_cast<double>(at.bytes - at.found) / (now - begun);
    const double left = static_cast<double>(at.total - at.bytes) / std::max(speed, 1.0);
    const std::string text =
        format_printf("%.0f %% of %s, %.1f MB/s, ", 100.0 * double(at.bytes) / double(at.total),
                      mebibytes(at.total).c_str(), speed / 1e6) +
        format_duration(left) + " left";
    lock.publish(text);
    spdlog::info("tokenizing {}: {}", request.name, text);
  };
  text::TokenizeOptions options{.tokenizer = request.tokenizer_path,
                                .output = path,
                                .width = cached_width(tokenizer),
                                .text_key = request.text_key,
                                .eos = text::EosPlace::kNone,
                                .parse_special = request.parse_special,
                                .skip_advice =
                                    "tokenize the texts with `fleetrun tokenize "
                                    "--on_damaged skip` and use the source tokens",
                                .threads = static_cast<int>(request.threads)};
  if (request.mark) {
    options.eos = text::EosPlace::kAppend;
    options.eos_token = tokenizer.token(*request.mark).value_or("");
  }
  const text::TokenizeResult made = text::tokenize_corpus(request.files, options, progress);
  spdlog::info("tokenized {}: {} documents, {} tokens, {}", request.name, made.documents,
               made.tokens, format_duration(monotonic_seconds() - begun));
}

}  // namespace

text::TokenWidth cached_width(const text::Tokenizer& tokenizer) {
  return text::token_width_for(tokenizer.vocabulary_size());
}

std::string cached_tokens(const TokenCacheRequest& request, const text::Tokenizer& tokenizer) {
  const std::string path = path_of(request);
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown)) return path;
  make_directories(std::filesystem::path(path).parent_path().string());
  MakerLock lock(path + ".lock");
  wait_for_maker(lock, request);
  if (std::filesystem::exists(path, unknown)) return path;
  make_tokens(path, request, tokenizer, lock);
  lock.remove();
  return path;
}

}  // namespace fleet::data
