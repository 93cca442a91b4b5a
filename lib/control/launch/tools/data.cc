// fleetrun data get NAME FOLDER: downloads a known data set by curl, resumes partial files,
// and checks it.
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/commands.h"
#include "base/error.h"
#include "base/file.h"
#include "base/home_folder.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "launch/planning/refuse.h"
#include "launch/tools/data_sets.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

std::string sha256_of(const std::string& path) {
  const ChildResult result = run_child({.words = {"sha256sum", "--binary", "--", path}});
  // A name with odd characters is marked by a backslash.
  const size_t at = result.output.starts_with('\\') ? 1 : 0;
  if (result.exit_code != 0 || result.output.size() < at + 64) {
    throw Error(ErrorCode::kIo, "sha256sum failed: " + std::string(trim(result.error_output)),
                path);
  }
  return result.output.substr(at, 64);
}

// Size and checksum: the reason why the file is not the wanted one; "" if it is.
std::string difference(const std::string& path, const DataFile& file) {
  std::error_code error;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (error) return error.message();
  if (bytes != file.bytes) {
    return std::to_string(bytes) + " bytes instead of " + std::to_string(file.bytes);
  }
  const std::string found = sha256_of(path);
  return found == file.sha256 ? "" : "SHA-256 " + found + " instead of " + file.sha256;
}

// A path as part of a URL.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char letter : path) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) || std::strchr("/._~-", letter)) {
      text += letter;
      continue;
    }
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", byte);
    text += code;
  }
  return text;
}

std::string url_of(const DataSet& set, const DataFile& file, const std::string& mirror) {
  if (mirror.empty()) return file.url;
  if (mirror.find("://") != std::string::npos) return mirror + "/" + set.name + "/" + file.name;
  return "file://" + escaped(fs::absolute(mirror).string() + "/" + set.name + "/" + file.name);
}

// curl reads https_proxy, http_proxy, no_proxy and all_proxy. Returns its exit code.
int download(const std::string& url, const std::string& part) {
  ChildProgram curl{.words = {"curl", "--fail", "--location", "--show-error", "--retry", "3",
                              "--retry-delay", "1", "--connect-timeout", "20", "--speed-limit", "1",
                              "--speed-time", "60", "--continue-at", "-", "--output", part}};
  curl.words.push_back(::isatty(STDERR_FILENO) ? "--progress-bar" : "--silent");
  curl.words.push_back(url);
  const pid_t pid = start_child(curl);
  if (pid < 0 && errno != ENOENT) throw_errno("cannot be started", "curl", Wanted::kProcess);
  if (pid < 0) {
    throw Error(ErrorCode::kNotFound, "curl, which downloads, was not found", "PATH",
                "install it: apt-get install curl");
  }
  return wait_for_child(pid);
}

void get_file(const DataSet& set, const DataFile& file, const std::string& folder,
              const std::string& mirror) {
  const std::string path = folder + "/" + file.name, part = path + ".part";
  if (fs::exists(path)) {
    const std::string wrong = difference(path, file);
    if (!wrong.empty()) {
      refuse("it is another file: " + wrong, path, "remove it, or give another folder");
    }
    std::printf("%s: is there already\n", shown_path(path).c_str());
    return;
  }
  const std::string url = url_of(set, file, mirror);
  std::error_code ignored;
  if (static_cast<int64_t>(fs::file_size(part, ignored)) > file.bytes && !ignored) {
    fs::remove(part);
  }
  if (!fs::exists(part) || static_cast<int64_t>(fs::file_size(part)) < file.bytes) {
    std::printf("%s: %s from %s\n", shown_path(path).c_str(), mebibytes(file.bytes).c_str(),
                shown_name(url, 300).c_str());
    std::fflush(stdout);
    constexpr int kNoRanges = 33;  // the server cannot continue in the middle of a file
    int code = download(url, part);
    if (code == kNoRanges) {
      fs::remove(part);
      code = download(url, part);
    }
    if (code != 0) {
      throw Error(ErrorCode::kIo, "curl ended with exit code " + std::to_string(code),
                  shown_name(url, 300),
                  "run the same command again: it resumes; or give --mirror URL or a folder");
    }
  }
  const std::string wrong = difference(part, file);
  if (!wrong.empty()) {
    fs::remove(part);
    throw Error(ErrorCode::kIo, "the download is damaged, or another file: " + wrong,
                shown_name(url, 300), "run the same command again, or give another --mirror");
  }
  fs::rename(part, path);
}

void unpack(const DataSet& set, const std::string& folder) {
  if (set.unpacking == DataUnpacking::kNone) return;
  const bool cifar = set.unpacking != DataUnpacking::kTar;
  const std::string into = cifar ? folder + "/unpacked" : folder;
  make_directories(into);
  for (const DataFile& file : set.files) {
    const ChildResult tar =
        run_child({.words = {"tar", "--force-local", "-xf", folder + "/" + file.name, "-C", into}});
    if (tar.exit_code != 0) {
      throw Error(ErrorCode::kIo, "cannot be unpacked: " + std::string(trim(tar.error_output)),
                  folder + "/" + file.name);
    }
  }
  if (!cifar) return;
  std::vector<std::string> train, test;
  int labels = 1;
  if (set.unpacking == DataUnpacking::kCifar10) {
    for (int i = 1; i <= 5; ++i) {
      train.push_back(into + "/cifar-10-batches-bin/data_batch_" + std::to_string(i) + ".bin");
    }
    test = {into + "/cifar-10-batches-bin/test_batch.bin"};
  } else {
    labels = 2;  // of 20 classes, then of 100
    train = {into + "/cifar-100-binary/train.bin"};
    test = {into + "/cifar-100-binary/test.bin"};
  }
  // Under the names that the source idx expects.
  for (const bool trains : {true, false}) {
    const std::string start = folder + (trains ? "/train" : "/t10k");
    const std::string images = start + "-images-idx3-ubyte", classes = start + "-labels-idx1-ubyte";
    cifar_to_idx(trains ? train : test, labels, images, classes);
    const ChildResult gzip = run_child({.words = {"gzip", "-1", "-f", images, classes}});
    if (gzip.exit_code != 0) {
      throw Error(ErrorCode::kIo, "gzip failed: " + std::string(trim(gzip.error_output)), images);
    }
  }
  fs::remove_all(into);
}

void print_sets(const std::vector<DataSet>& sets) {
  for (const DataSet& set : sets) {
    int64_t bytes = 0;
    for (const DataFile& file : set.files) bytes += file.bytes;
    std::printf("%-15s %10s  %s\n", set.name.c_str(), mebibytes(bytes).c_str(), set.about.c_str());
  }
}

int run_data(const CommandLine& line) {
  const std::string list = line.settings.text("list");
  const std::vector<DataSet> sets = list.empty() ? known_data_sets() : read_data_sets(list);
  if (line.words[0] == "list" && line.words.size() == 1) {
    print_sets(sets);
    return 0;
  }
  if (line.words[0] != "get" || line.words.size() != 3) {
    refuse("unknown words", "data",
           "write `fleetrun data list` or `fleetrun data get NAME FOLDER`");
  }
  const std::string& name = line.words[1];
  const std::string folder = line.words[2];
  const std::string mirror = expand_home(line.settings.text("mirror"), "--mirror");
  std::vector<std::string> names;
  for (const DataSet& set : sets) {
    names.push_back(set.name);
    if (set.name != name) continue;
    make_directories(folder);
    for (const DataFile& file : set.files) {
      get_file(set, file, folder, mirror);
    }
    unpack(set, folder);
    const std::string root = set.folder.empty() ? folder : folder + "/" + set.folder;
    std::printf("train with: --set data.root=%s%s%s\n", shown_path(root).c_str(),
                set.use.empty() ? "" : " --set ", set.use.c_str());
    return 0;
  }
  refuse("unknown data set '" + name + "'", "fleetrun data get", suggestion(name, names));
}

}  // namespace

FLEET_COMMAND(data) {
  def.syntax = {.program = "fleetrun data",
                .words = "get NAME FOLDER | list",
                .about =
                    "download a known data set, and check it\n"
                    "If a download was interrupted, the same command resumes it. Downloads use "
                    "curl,\nwhich reads https_proxy.",
                .least = 1,
                .most = 3,
                .missing_word = "write `fleetrun data list`, or `fleetrun data get NAME FOLDER`"};
  def.syntax.options
      .text({.key = "mirror", .value = "URL|DIR", .optional = true}, "",
            "get the files from URL/NAME/FILE, or from DIR/NAME/FILE of a local folder")
      .text({.key = "list", .value = "FILE", .optional = true}, "",
            "read the list of data sets from this JSON file instead of the built-in list");
  def.run = run_data;
}

}  // namespace fleet
