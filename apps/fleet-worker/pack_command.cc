#include "pack_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/terminal_width.h"
#include "base/text.h"
#include "data/pack_images.h"
#include "observe/progress.h"
#include "train/job.h"
#include "train/job_task.h"

namespace fleet {
namespace {

void write_to_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

data::PackOptions options_of(const WorkerArguments& arguments, const Job& job) {
  if (arguments.pack_raw && arguments.pack_jpeg) {
    throw Error(ErrorCode::kUsage, "--raw and --jpeg contradict each other", "--pack",
                "give only one of them");
  }
  if (arguments.pack_raw && arguments.pack_quality > 0) {
    throw Error(ErrorCode::kUsage, "raw pixels have no quality", "--quality",
                "remove it, or pack as JPEG");
  }
  data::PackOptions options{.raw = arguments.pack_raw,
                            .size = arguments.pack_size,
                            .threads = arguments.pack_threads,
                            .seed = static_cast<uint64_t>(job.train.integer("seed")),
                            .classes = classes_of(job),
                            .ignored_label = ignored_label(job)};
  if (arguments.pack_quality > 0) options.quality = arguments.pack_quality;
  return options;
}

}  // namespace

void pack_job(const WorkerArguments& arguments, const ConfigTree& tree) {
  const Job job = make_job(tree);
  const int width = terminal_width(STDERR_FILENO);
  Progress progress({.width = width, .write = write_to_error});
  std::string split;
  const data::PackResult result = data::pack_images(
      job.data, arguments.pack, options_of(arguments, job), [&](const data::PackProgress& now) {
        if (now.split != split) {
          if (!split.empty()) progress.finish();
          split = now.split;
          progress.start("pack " + split, now.samples, now.found);
        }
        progress.update(now.done, now.damaged > 0 ? std::to_string(now.damaged) + " damaged" : "");
      });
  progress.finish();
  std::string line = std::to_string(result.samples) + " images, " + std::to_string(result.files) +
                     " files, " + mebibytes(static_cast<int64_t>(result.bytes));
  if (result.damaged > 0) line += ", " + std::to_string(result.damaged) + " damaged";
  if (result.found_files > 0) {
    line += "; " + std::to_string(result.found_files) + " files were there already";
  }
  std::printf("%s: %s\n", shown_path(arguments.pack).c_str(), line.c_str());
  std::printf("train from it with: --set data.source=packed --set data.root=%s\n",
              shown_path(arguments.pack).c_str());
}

}  // namespace fleet
