// Writes the images of a job into few large files (pack_file.h), for the source `packed`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/config.h"

namespace fleet::data {

struct PackOptions {
  bool raw = false;  // pixels; otherwise image files
  int64_t size = 0;  // larger images are resized to this shorter side; 0: kept as they are
  int quality = 90;  // of JPEGs that are made
  int threads = 0;   // 0: one for each core
  // Pixels and JPEGs that are made are upright; pack_images() takes it from data.exif.
  bool upright = false;
  // As of the training job (PipelineContext).
  uint64_t seed = 0;
  int64_t classes = 0, ignored_label = -100;
};

struct PackProgress {
  std::string split;
  int64_t done = 0, samples = 0;  // in the split
  int64_t found = 0;              // of `done`: in whole files of an earlier run
  int64_t damaged = 0;
};

struct PackResult {
  int64_t samples = 0, damaged = 0, files = 0, found_files = 0;
  uint64_t bytes = 0;  // all files together
};

// Packs the training and test split of a job's data section (data.validation_split is left to the
// training job) into the folder. Files of an earlier run that was interrupted are checked and kept.
//
// kUsage if the folder holds something else, a pack of other data or with other options, or is in
// use. data.on_damaged=fail: the first damaged image is an error. progress: called from the calling
// thread, several times a second.
PackResult pack_images(const Settings& data, const std::string& folder, const PackOptions& options,
                       const std::function<void(const PackProgress&)>& progress);

}  // namespace fleet::data
