#include "text/output_file.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "base/file_status.h"
#include "base/regular_file.h"

namespace fleet::text {

void check_output_file(const std::string& output, const std::vector<std::string>& inputs) {
  const auto refuse = [&](const std::string& what, const std::string& where,
                          const std::string& next) {
    throw Error(ErrorCode::kUsage, what, where, next);
  };
  if (output == "-") {
    refuse("the result cannot go to standard output", "--output -",
           "give a file, such as -o train.bin or -o tokenizer.json");
  }
  const std::string folder = std::filesystem::path(output).parent_path().string();
  if (!folder.empty() && !is_folder(folder)) {
    refuse("the folder does not exist", folder, "create it, or give another --output");
  }
  check_replaceable(output);
  struct stat written {};
  if (::stat(output.c_str(), &written) != 0) return;
  for (const std::string& input : inputs) {
    struct stat read {};
    if (::stat(input.c_str(), &read) != 0) continue;
    if (read.st_dev != written.st_dev || read.st_ino != written.st_ino) continue;
    refuse("the result would replace a file that the command reads" +
               (input == output ? std::string() : ": " + input),
           output, "give another --output");
  }
}

}  // namespace fleet::text
