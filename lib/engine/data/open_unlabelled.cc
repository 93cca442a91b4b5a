// The samples that a prediction names.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/image_files.h"
#include "data/open_source.h"
#include "data/pipeline.h"
#include "data/source.h"
#include "data/storage.h"

namespace fleet::data {

static UnlabelledSamples unlabelled_images(const std::vector<std::string>& words, bool verbose) {
  UnlabelledSamples all;
  all.names = image_paths(words, verbose);
  std::vector<ImageFile> files;
  UnlabelledSamples::Group group;
  for (const std::string& path : all.names) {
    group.samples.push_back(std::ssize(files));
    files.push_back({path, 0});
  }
  group.source = std::make_unique<ImageFiles>(std::move(files));
  all.groups.push_back(std::move(group));
  return all;
}

UnlabelledSamples open_unlabelled(const Settings& data, const std::vector<std::string>& words,
                                  const PipelineContext& context) {
  const std::string& name = data.text("source");
  const SourceType& type = sources().get(name);
  const bool verbose = context.rank == 0;
  if (!type.unlabelled && !find_column(declared_columns(data, context), "image")) {
    throw Error(ErrorCode::kUsage, "the data of the source " + name + " are not predicted",
                "predict.input",
                "set data.source to one of images, texts with labels, or files of clicks");
  }
  UnlabelledSamples all;
  wait_for_storage(data.number("read_timeout"), [&] {
    all = type.unlabelled ? type.unlabelled(words, source_context(data, false, verbose, context))
                          : unlabelled_images(words, verbose);
  });
  if (all.names.empty()) {
    throw Error(ErrorCode::kUsage, "there is nothing to predict", "predict.input",
                "name files with texts");
  }
  return all;
}

}  // namespace fleet::data
