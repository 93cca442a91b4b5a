// Data sources: indexed access to samples with named columns; labelled images, encoded or raw, are
// the usual ones. A new source is one new file with one FLEET_SOURCE; the job file's data.source
// names it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/registry.h"
#include "tensor/column.h"

namespace fleet::data {

// One sample as provided by its source. `bytes` points into the source's own memory or into the
// scratch buffer passed to read().
struct Sample {
  std::span<const uint8_t> bytes;  // an image file, or pixels (height x width x channels)
  bool encoded = true;
  int height = 0, width = 0, channels = 0;  // raw pixels'; 0 if encoded
};

// The classes of an image's pixels, in a file.
struct MaskFile {
  std::span<const uint8_t> bytes;
  std::string name;     // for messages, safe to print on a terminal
  int64_t classes = 0;  // labels must be below this, or 255
  // Whether the labels of the whole file have been found right; null: look each time.
  std::atomic<bool>* checked = nullptr;
};

// Whether Source::read_mask() gives this column: the class of each pixel of a sample's image,
// uint8, 255 where there is none. Ragged in a source; the pipeline decodes and moves it with the
// image. Next to it a source has the column "labelled_pixels", float32, which the pipeline writes,
// too.
inline bool is_mask(const Column& column) {
  return column.name == "mask" && column.dtype == DType::kUInt8;
}
inline constexpr const char* kLabelledPixels = "labelled_pixels";
// Columns with the size of the masks and images of a batch.
inline std::vector<Column> with_mask_size(std::vector<Column> columns, int64_t height,
                                          int64_t width) {
  for (Column& column : columns) {
    if (is_mask(column)) column = {"mask", DType::kUInt8, {height, width}};
  }
  return columns;
}

// Whether Source::label() gives this column: the class of a sample. A "label" of another type is a
// column like others.
inline bool is_class_label(const Column& column) {
  return column.name == "label" && column.dtype == DType::kInt64;
}

// The tokenizer that made the tokens of a source.
struct TokenizerIdentity {
  std::string file;    // for messages; safe to print on a terminal
  uint64_t hash = 0;   // hash of the file; 0: none, or unknown
  bool words = false;  // no tokenizer: the words of these texts, in the order of their numbers
};

// Immutable after opening: every method is thread-safe.
class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t size() const = 0;

  // The columns of its samples. Labelled images by default: "image", ragged, and "label". A column
  // "image" is read with read(), decoded and augmented; "label", if int64, is label(); the others
  // are written by fill().
  virtual std::vector<Column> columns() const { return labelled_images(); }
  static std::vector<Column> labelled_images();
  // Writes sample `index`: one address per column of columns(), each with room for one sample in
  // plain layout; null for "image" and the class label. key: for the random draws of the sample
  // (RandomStream), equal on any rank and for any number of ranks. Each epoch of a training has
  // another one; in an evaluation it depends on the index alone. Throws Error if the sample cannot
  // be read. The pipeline sets a column "loss_weight" to 0 for samples that pad a batch.
  virtual void fill(int64_t index, uint64_t key, std::span<void* const> to) const;
  // The tokens of the sample, which come first in its columns by length (Column::by_length); what
  // follows them is padding. 0: as long as the columns. For batches by length (data.lengths), which
  // ask for it once for every sample.
  virtual int64_t length(int64_t /*index*/) const { return 0; }
  // The sum of the sample's weights in the loss; a text's weighted tokens. key: as for fill().
  virtual double weight(int64_t /*index*/, uint64_t /*key*/) const { return 1; }

  // For an int64 column "label". 0 by default.
  virtual int64_t label(int64_t /*index*/) const { return 0; }
  // For a column "image": sample `index`, 0 <= index < size(). `scratch` belongs to the caller, one
  // per thread. Throws Error if the sample cannot be read.
  virtual Sample read(int64_t index, std::vector<uint8_t>& scratch) const;
  // At least the first `bytes` bytes of an image file, for its header; or raw pixels, whose bytes
  // may be missing. The same errors.
  virtual Sample read_start(int64_t index, size_t /*bytes*/, std::vector<uint8_t>& scratch) const {
    return read(index, scratch);
  }
  // For a column "mask": that of sample `index`. As read().
  virtual MaskFile read_mask(int64_t index, std::vector<uint8_t>& scratch) const;
  // For messages, safe to print on a terminal: a path, or "train-images[17]".
  virtual std::string name(int64_t index) const = 0;
  // Texts of a sample that metrics need beyond numbers, by their name: a question has a "context"
  // and the right "answers". kInternal for a name that the source does not know.
  virtual std::vector<std::string> texts(int64_t index, const std::string& what) const;
  // Class names by label, safe to print on a terminal; empty if the source has only numbers.
  virtual std::vector<std::string> class_names() const { return {}; }
  // For samples of tokens.
  virtual TokenizerIdentity tokenizer() const { return {}; }
};

// data.validation_split, for a source that divides its data itself.
struct ValidationPart {
  double part = 0;  // fraction of the data for validation; 0: no division
  uint64_t seed = 0;
  bool validates = false;  // open the part for validation; else the rest
};

struct SourceContext {
  std::string root;                         // data.root: base of relative paths
  bool train = true;                        // the split, for messages
  int64_t classes = 0;                      // labels must be below this; 0: not checked
  int64_t ignored_label = -100;             // this label is allowed in addition
  int64_t vocabulary = 0;                   // tokens must be below this; 0: not checked
  uint64_t seed = 0;                        // the job's
  int channels = 0, height = 0, width = 0;  // data.image.*; 0 if not given
  const Settings* train_split = nullptr;    // data.train.*, for opening the test split
  bool verbose = true;                      // whether to log what is skipped
  bool replaces_damaged = true;             // data.on_damaged: an unreadable file is not an error
  const Settings* data = nullptr;           // data.*, for the keys of SourceType::shared
  ValidationPart validation = {};           // if SourceType::divides
};

// Samples to predict.
struct UnlabelledSamples {
  const char* unit = "image";           // what a sample is
  std::vector<std::string> names = {};  // by sample, as a prediction calls it
  // By sample: why it cannot be used; "" or no element: it can.
  std::vector<std::string> failures = {};
  // Texts of a sample that its prediction is written with, by their name. Null: none.
  std::function<std::vector<std::string>(int64_t sample, const std::string& what)> texts = nullptr;
  // Those that can be used, in groups of rows whose columns have the same shapes. A sample may have
  // several rows, such as windows of a long text.
  struct Group {
    std::vector<int64_t> samples;  // the number above, for each row of the source
    std::unique_ptr<Source> source;
  };
  std::vector<Group> groups = {};
};

struct SourceType {
  // Keys of one split, data.train.* or data.test.* (their defaults may differ).
  Schema (*schema)(bool train) = nullptr;
  // Keys of both splits, data.*. Null: none.
  Schema (*shared)() = nullptr;
  // Its samples have classes without being images: data.class_names names them.
  bool has_classes = false;
  // open() applies SourceContext::validation itself. Else the samples of each class are divided.
  bool divides = false;
  // Whether the settings of a split name any data: false if its list or folder is "". Null: always.
  bool (*names_data)(const Settings& split) = nullptr;
  // For samples that the settings alone describe: sets the dimensions of the context that are 0.
  // kUsage if the settings are invalid. Null: only the data tell.
  void (*describe)(const Settings& split, SourceContext* context) = nullptr;
  // The columns that its samples will have, as far as settings and context tell; called without
  // opening data. Null: labelled images. Equal to Source::columns().
  std::vector<Column> (*columns)(const Settings& split, const SourceContext& context) = nullptr;
  // Keys of data.* that decide which columns these are, for a message. Null: none.
  const char* column_keys = nullptr;
  // For --predict: the samples that words of predict.input name, without labels. Null: images, if
  // the samples have any; else the source's data are not predicted. context: as for
  // open() without `train`. kUsage if the words name none.
  UnlabelledSamples (*unlabelled)(const std::vector<std::string>& words,
                                  const SourceContext& context) = nullptr;
  // Opens one split. Null if the settings name none ("" for its list or folder), or if no test data
  // lie where they are by default; then no_test_data() says so. kUsage if they are invalid.
  std::unique_ptr<Source> (*open)(const Settings& split, const SourceContext& context) = nullptr;
  // open() leaves out rows that cannot be used, or refuses the first, by data.on_damaged.
  bool drops_rows = false;
};

Registry<SourceType>& sources();

// FLEET_SOURCE(idx) { def.schema = schema; def.open = open; } in lib/engine/data/source_idx.cc.
#define FLEET_SOURCE(name)                                                                       \
  FLEET_REGISTER(source_##name, ::fleet::data::SourceType& def, ::fleet::data::sources().define, \
                 #name)

// Common to all sources: root + "/" + path unless path is absolute or root empty.
std::string under_root(const std::string& root, const std::string& path);
// For open(): returns null. Unless the split is for training, logs, if context.verbose, that there
// are no test data, and which key (of data.test) could name some. why: " (photos/test does not
// exist)", or "". found: folders that may hold test data.
std::unique_ptr<Source> no_test_data(const SourceContext& context, const std::string& key,
                                     const std::string& why = "",
                                     const std::vector<std::string>& found = {});
// Throws kUsage, at `where`, unless 0 <= label < classes (classes 0: any label from 0), or the
// label is the one that the loss ignores.
void check_label(int64_t label, const SourceContext& context, const std::string& where);

}  // namespace fleet::data
