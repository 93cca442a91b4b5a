// Where samples come from: indexed access to labelled images, encoded or raw. A new source is one
// new file with one FLEET_REGISTER_SOURCE; the job file's data.source names it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/registry.h"

namespace fleet::data {

// One sample as its source gives it. `bytes` lies in the source's own memory or in the scratch
// handed to read().
struct Sample {
  std::span<const uint8_t> bytes;  // an image file, or pixels (height x width x channels)
  bool encoded = true;
  int height = 0, width = 0, channels = 0;  // of raw pixels; 0 where encoded
};

// Immutable once opened: every method may be called from any thread.
class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t size() const = 0;
  virtual int64_t label(int64_t index) const = 0;
  // Sample `index`, 0 <= index < size(). `scratch` is the caller's, one a thread. An Error where it
  // cannot be read.
  virtual Sample read(int64_t index, std::vector<uint8_t>& scratch) const = 0;
  // For messages, as text that a terminal may get: a path, or "train-images[17]".
  virtual std::string name(int64_t index) const = 0;
  // Names of the classes by label, as text that a terminal may get; none where the source has only
  // numbers.
  virtual std::vector<std::string> class_names() const { return {}; }
};

struct SourceContext {
  std::string root;                         // data.root: relative paths start here
  bool train = true;                        // which split, for messages
  int64_t classes = 0;                      // labels must be below; 0: not checked
  int64_t ignored_label = -100;             // but for this one
  uint64_t seed = 0;                        // the job's
  int channels = 0, height = 0, width = 0;  // data.image.*; 0 where not given
  const Settings* train_split = nullptr;    // data.train.*, when the test split is opened
  bool speaks = true;                       // whether lines of the log tell what is left out
  bool replaces_damaged = true;  // data.on_damaged: what cannot be read is no reason to end
};

struct SourceType {
  // Keys of one split, data.train.* or data.test.* (their defaults may differ).
  Schema (*schema)(bool train);
  // Opens one split. Null where the settings name none ("" for its list or folder). kUsage where
  // they are wrong.
  std::unique_ptr<Source> (*open)(const Settings& split, const SourceContext& context);
};

Registry<SourceType>& sources();

#define FLEET_REGISTER_SOURCE(name, schema, open)                                \
  namespace {                                                                    \
  [[maybe_unused]] const bool fleet_source_registered = [] {                     \
    ::fleet::data::sources().add(name, ::fleet::data::SourceType{schema, open}); \
    return true;                                                                 \
  }();                                                                           \
  }

// Shared by sources: root + "/" + path unless path is absolute or root empty.
std::string under_root(const std::string& root, const std::string& path);
// kUsage, at `where`, unless 0 <= label < classes (classes 0: any label from 0), or it is the label
// of samples that the loss leaves out.
void check_label(int64_t label, const SourceContext& context, const std::string& where);

}  // namespace fleet::data
