// fuzz_corpus_tests CORPUS [NAME]: gives every file of CORPUS/NAME/ to the target NAME, as well as
// nothing and each file's first half; without NAME, to every target. Needs no libFuzzer. Ends with
// 1 if a target throws anything but fleet::Error or has no files, or a folder has no target. A
// crash, or a file that takes longer than kSeconds, ends it: the last line names the file.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <set>
#include <string>

#include "base/file.h"
#include "base/log.h"
#include "tests/fuzz/fuzz.h"

namespace fleet::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kSeconds = 60;

// Sanitizers reserve terabytes of addresses.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void bound_memory() {
  constexpr rlim_t kMost = rlim_t{4} << 30;
  const rlimit limit = {kMost, kMost};
  ::setrlimit(RLIMIT_AS, &limit);
}
#else
void bound_memory() {}
#endif

bool run(const Target& target, const std::string& what, std::string_view bytes) {
  std::printf("%s: %s\n", target.name, what.c_str());
  std::fflush(stdout);
  ::alarm(kSeconds);
  try {
    attempt([&] { target.run(bytes); });
    return true;
  } catch (const std::exception& error) {
    std::printf("%s: %s: FAILED: threw %s\n", target.name, what.c_str(), error.what());
    return false;
  }
}

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> files;
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    files.insert(entry.path().filename().string());
  }
  return files;
}

bool replay(const Target& target, const fs::path& folder) {
  const std::set<std::string> files = files_in(folder);
  bool good = !files.empty();
  if (!good) std::printf("%s: FAILED: no files in %s\n", target.name, folder.c_str());
  good &= run(target, "nothing", {});
  for (const std::string& file : files) {
    const std::string bytes = read_file(folder / file);
    good &= run(target, file, bytes);
    good &=
        run(target, "first half of " + file, std::string_view(bytes).substr(0, bytes.size() / 2));
  }
  return good;
}

int replay_all(const fs::path& corpus) {
  std::set<std::string> folders = files_in(corpus);
  bool good = true;
  for (const Target& target : targets()) {
    good &= replay(target, corpus / target.name);
    folders.erase(target.name);
  }
  for (const std::string& folder : folders) {
    std::printf("FAILED: %s has no target\n", (corpus / folder).c_str());
  }
  return good && folders.empty() ? 0 : 1;
}

int replay_one(const fs::path& corpus, const std::string& name) {
  for (const Target& target : targets()) {
    if (target.name == name) return replay(target, corpus / name) ? 0 : 1;
  }
  std::printf("FAILED: no target '%s'\n", name.c_str());
  return 1;
}

}  // namespace
}  // namespace fleet::fuzz

int main(int count, char** arguments) {
  if (count != 2 && count != 3) {
    std::fprintf(stderr, "usage: %s CORPUS [NAME]\n", arguments[0]);
    return 2;
  }
  spdlog::set_level(spdlog::level::off);
  fleet::fuzz::bound_memory();
  try {
    return count == 3 ? fleet::fuzz::replay_one(arguments[1], arguments[2])
                      : fleet::fuzz::replay_all(arguments[1]);
  } catch (const fleet::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
