// Finds the files of a corpus.
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/file_status.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "text/corpus.h"

namespace fleet::text {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNeither[] = {".parquet", ".json", ".arrow", ".zst", ".xz",
                                    ".bz2",     ".lz4",  ".zip",   ".tar", ".csv"};

bool ends_in(const std::string& name, std::string_view ending) {
  return lower_case(name).ends_with(ending);
}

// The two bytes with which every .gz begins. Their name may be another: dictzip's .dz, for example.
bool begins_as_gzip(const std::string& path) {
  const RegularFile file = open_regular_file(path);
  unsigned char bytes[2] = {};
  if (::pread(file.fd.get(), bytes, sizeof bytes, 0) < 0) throw_errno("cannot read the file", path);
  return bytes[0] == 0x1F && bytes[1] == 0x8B;
}

bool is_json_lines_name(const std::string& name) {
  return ends_in(name, ".jsonl") || ends_in(name, ".ndjson");
}

// The name without the ending that says how the file is compressed.
std::string name_of_content(const CorpusFile& file) {
  const fs::path path(file.path);
  if (!file.compressed || is_json_lines_name(file.path)) return file.path;
  return (path.parent_path() / path.stem()).string();
}

CorpusFile describe_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    throw SystemError(absent ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot open the file", errno,
                      path);
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kUsage,
                std::string("it is ") + kind_of_file(status.st_mode) + ", not a file", path,
                "give a regular file");
  }
  CorpusFile file{
      .path = path,
      .compressed = begins_as_gzip(path),
      .bytes = static_cast<int64_t>(status.st_size),
      .modified = status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
  if (ends_in(path, ".gz") && !file.compressed && file.bytes > 0) {
    throw Error(ErrorCode::kUsage, "not a gzip file, in spite of its name", path,
                "rename it, or get it again");
  }
  const std::string name = name_of_content(file);
  file.json_lines = is_json_lines_name(name);
  for (const char* ending : kNeither) {
    if (!ends_in(name, ending)) continue;
    throw Error(ErrorCode::kUsage, std::string("files that end in ") + ending + " are not read",
                path, "convert it to text, or to JSON lines (.jsonl)");
  }
  return file;
}

bool is_corpus_name(std::string name) {
  if (ends_in(name, ".gz")) name.resize(name.size() - 3);
  return ends_in(name, ".txt") || ends_in(name, ".jsonl") || ends_in(name, ".ndjson");
}

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::follow_directory_symlink,
                                      error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (is_corpus_name(at->path().filename().string()) && !at->is_directory()) {
      paths.push_back(at->path().string());
    }
  }
  if (error) throw SystemError(ErrorCode::kIo, "cannot list the folder", error.value(), folder);
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) {
    throw Error(ErrorCode::kUsage, "the folder has no .txt, .jsonl or .ndjson file", folder,
                "give a folder of texts, or name the files");
  }
  return paths;
}

std::vector<std::string> files_of_pattern(const std::string& pattern) {
  glob_t found = {};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (status == 0 && !paths.empty()) return paths;
  throw Error(ErrorCode::kNotFound, "no file fits this pattern", pattern, "correct the pattern");
}

}  // namespace

std::vector<CorpusFile> find_corpus(const std::vector<std::string>& words) {
  std::vector<CorpusFile> files;
  for (const std::string& word : words) {
    if (word == "-") {
      throw Error(ErrorCode::kUsage, "texts are not read from standard input", word,
                  "write them into a file (.txt or .jsonl), and name it");
    }
    const bool exists = path_exists(word);
    std::vector<std::string> paths = {word};
    if (exists && is_folder(word)) paths = files_below(word);
    if (!exists && word.find_first_of("*?[") != std::string::npos) paths = files_of_pattern(word);
    for (const std::string& path : paths) files.push_back(describe_file(path));
  }
  std::set<std::string> seen;
  for (const CorpusFile& file : files) {
    if (seen.insert(fs::weakly_canonical(file.path).string()).second) continue;
    throw Error(ErrorCode::kUsage, "the file is given twice", file.path, "name it once");
  }
  return files;
}

}  // namespace fleet::text
