#include "launch/planning/libraries.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace fleet {
namespace {

void add_configured(const std::string& file, std::vector<std::string>* folders) {
  try {
    for (const std::string& line : split(read_file(file), '\n')) {
      if (line.starts_with('/')) folders->push_back(line);
    }
  } catch (const Error&) {  // none
  }
}

}  // namespace

std::vector<std::string> library_folders(const std::string& search, const std::string& root) {
  std::vector<std::string> folders;
  for (const std::string& folder : split(search, ':')) {
    if (!folder.empty()) folders.push_back(folder);
  }
  add_configured(root + "/etc/ld.so.conf", &folders);
  std::vector<std::string> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/etc/ld.so.conf.d", none)) {
    if (entry.path().extension() == ".conf") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) add_configured(file, &folders);
#if defined(__aarch64__)
  constexpr const char* kDebianFolders[] = {"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"};
#else
  constexpr const char* kDebianFolders[] = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"};
#endif
  for (const char* folder : kDebianFolders) folders.emplace_back(folder);
  for (const char* usual : {"/usr/lib64", "/usr/lib", "/usr/local/cuda/lib64"}) {
    folders.emplace_back(usual);
  }
  return folders;
}

std::string find_library(const std::string& name, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    std::error_code error;
    const auto path = std::filesystem::canonical(std::filesystem::path(folder) / name, error);
    if (!error) return path.string();
  }
  return {};
}

std::string version_in_name(const std::string& path) {
  const size_t at = path.rfind(".so.");
  if (at == std::string::npos) return {};
  const std::string version = path.substr(at + 4);
  const bool numbers = std::all_of(version.begin(), version.end(),
                                   [](unsigned char c) { return std::isdigit(c) || c == '.'; });
  return numbers && version.find('.') != std::string::npos ? version : std::string();
}

}  // namespace fleet
