// The job file's "data" section.
#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/thread.h"
#include "data/image_files.h"
#include "data/lengths.h"
#include "data/pipeline.h"
#include "data/sample_maker.h"
#include "data/sampler.h"
#include "data/storage.h"

namespace fleet::data {

namespace {

SourceContext source_context(const Settings& data, bool train, bool verbose,
                             const PipelineContext& context) {
  return {.root = data.text("root"),
          .train = train,
          .classes = context.classes,
          .ignored_label = context.ignored_label,
          .vocabulary = context.vocabulary,
          .seed = context.seed,
          .channels = static_cast<int>(data.integer("image.channels")),
          .height = static_cast<int>(data.integer("image.height")),
          .width = static_cast<int>(data.integer("image.width")),
          .verbose = verbose,
          .replaces_damaged = data.text("on_damaged") == "skip",
          .data = &data};
}

bool names_data(const Settings& data, bool train) {
  const SourceType& type = sources().get(data.text("source"));
  return !type.names_data || type.names_data(data.section(train ? "train" : "test"));
}

[[noreturn]] void refuse_missing_data(const Settings& data) {
  const std::string& name = data.text("source");
  throw Error(
      ErrorCode::kUsage, "there are no training data", "data.train",
      "set what the source '" + name + "' needs:\n" + sources().get(name).schema(true).help());
}

}  // namespace

bool makes_upright(const Settings& data) { return data.text("exif") == "apply"; }

bool names_test_data(const Settings& data) { return names_data(data, false); }

static std::unique_ptr<Source> open_split(const Settings& data, bool train, bool verbose,
                                          const PipelineContext& context,
                                          const ValidationPart& part) {
  const Settings train_split = data.section("train");
  SourceContext where = source_context(data, train, verbose, context);
  if (!train) where.train_split = &train_split;
  where.validation = part;
  const SourceType& type = sources().get(data.text("source"));
  std::unique_ptr<Source> source;
  wait_for_storage(data.number("read_timeout"),
                   [&] { source = type.open(train ? train_split : data.section("test"), where); });
  if (!source && train) refuse_missing_data(data);
  return source;
}

std::unique_ptr<Source> open_split(const Settings& data, bool train, bool verbose,
                                   const PipelineContext& context) {
  return open_split(data, train, verbose, context, {});
}

namespace {

constexpr int kMaxThreads = 64;

// Tuned readers begin small: threads that are not needed would take cores from the network.
constexpr int kMaxPrefetch = 8, kFewestThreads = 16;

int max_threads_of(const Settings& data) {
  if (!data.boolean("auto.threads")) return 0;
  // Threads that wait for a disk need no core.
  return std::clamp(2 * static_cast<int>(available_cores().size()), kFewestThreads, kMaxThreads);
}

size_t cache_bytes_of(const Settings& data, const PipelineContext& context) {
  if (data.text("cache") == "none") return 0;
  const auto wanted = static_cast<size_t>(data.integer("cache_memory")) << 20;
  return wanted > 0 ? wanted : context.cache_bytes;
}

int threads_of(const Settings& data) {
  if (data.boolean("auto.threads")) return 1;
  const auto wanted = static_cast<int>(data.integer("threads"));
  if (wanted > 0) return wanted;
  return std::min(static_cast<int>(available_cores().size()), kMaxThreads);
}

bool flag(const std::string& name) {
  const std::string text = env_or(name, "0");
  if (text == "1" || text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "0" || text == "false" || text == "False" || text == "FALSE") return false;
  throw Error(ErrorCode::kUsage, "'" + text + "' is neither true nor false", "environment " + name);
}

// data.image; dimensions that are 0 are taken from the first image.
ImageShape image_of(const Settings& data, const Source& source) {
  ImageShape image{static_cast<int>(data.integer("image.channels")),
                   static_cast<int>(data.integer("image.height")),
                   static_cast<int>(data.integer("image.width"))};
  if (image.count() > 0) return image;
  const ImageShape first = first_shape(source, makes_upright(data));
  if (image.channels == 0) image.channels = first.channels;
  if (image.height == 0) image.height = first.height;
  if (image.width == 0) image.width = first.width;
  return image;
}

void check_validation_split(const Settings& data) {
  if (data.number("validation_split") == 0) return;
  const Schema test = sources().get(data.text("source")).schema(false);
  for (const ConfigKey& key : test.keys()) {
    if (!data.given("test." + key.path)) continue;
    throw Error(ErrorCode::kUsage, "there are test data already (data.test." + key.path + ")",
                "data.validation_split", "set only one of them");
  }
}

// Implements data.validation_split: the test split is a part of the training data.
std::unique_ptr<Source> open_part(const Settings& data, bool train,
                                  const PipelineContext& context) {
  check_validation_split(data);
  const auto seed = static_cast<uint64_t>(data.integer("validation_seed"));
  if (sources().get(data.text("source")).divides) {
    return open_split(data, true, train && context.rank == 0, context,
                      {data.number("validation_split"), seed, !train});
  }
  auto all = open_split(data, true, train && context.rank == 0, context);
  Split split = split_by_class(*all, data.number("validation_split"), seed);
  return subset_of(std::move(all), std::move(train ? split.train : split.validation));
}

std::unique_ptr<Source> open_source(const Settings& data, bool train,
                                    const PipelineContext& context) {
  if (data.number("validation_split") > 0) return open_part(data, train, context);
  return open_split(data, train, context.rank == 0, context);
}

void check_sampling(const Settings& data) {
  if (data.text("sampling") != "balanced" || data.boolean("shuffle")) return;
  throw Error(ErrorCode::kUsage, "balanced sampling always shuffles", "data.shuffle",
              "leave it true, or set data.sampling to \"all\"");
}

// Implements data.sampling.
std::shared_ptr<const std::vector<std::vector<int64_t>>> classes_to_draw(
    const Settings& data, const Source& source, const PipelineContext& context) {
  check_sampling(data);
  if (data.text("sampling") != "balanced") return nullptr;
  std::map<int64_t, std::vector<int64_t>> by_label;
  for (int64_t i = 0; i < source.size(); ++i) {
    const int64_t label = source.label(i);
    if (label != context.ignored_label) by_label[label].push_back(i);
  }
  if (by_label.empty()) {
    throw Error(ErrorCode::kUsage, "no sample has a class", "data.sampling",
                "set it to \"all\", or label the data");
  }
  auto classes = std::make_shared<std::vector<std::vector<int64_t>>>();
  for (auto& [label, samples] : by_label) classes->push_back(std::move(samples));
  return classes;
}

// Warns of classes without images, which no network can learn; a list may have an error. Classes
// above the highest label are reported elsewhere.
void warn_of_empty_classes(const Source& source, const PipelineContext& context) {
  constexpr size_t kShown = 10;
  constexpr int64_t kMostSamples = 100'000'000;  // synthetic data may claim more
  if (source.size() > kMostSamples) return;
  std::vector<bool> has_images(static_cast<size_t>(context.classes));
  int64_t highest = -1;
  for (int64_t i = 0; i < source.size(); ++i) {
    const int64_t label = source.label(i);
    if (label < 0 || label >= context.classes || label == context.ignored_label) continue;
    has_images[static_cast<size_t>(label)] = true;
    highest = std::max(highest, label);
  }
  std::vector<std::string> empty;
  for (int64_t label = 0; label < highest; ++label) {
    if (label == context.ignored_label || has_images[static_cast<size_t>(label)]) continue;
    empty.push_back(std::to_string(label));
  }
  if (empty.empty()) return;
  const size_t shown = std::min(empty.size(), kShown);
  spdlog::warn("data.train: {} of the classes 0 to {} without an image: {}{}", empty.size(),
               highest, join(std::span(empty).first(shown), ", "),
               shown < empty.size() ? ", ..." : "");
}

void check_repeats(const Settings& data, const PipelineContext& context) {
  const int64_t repeats = data.integer("repeats");
  if (repeats == 1) return;
  if (!data.boolean("shuffle")) {
    throw Error(ErrorCode::kUsage,
                "without data.shuffle, each epoch would have the same first part of the images",
                "data.repeats", "set it to 1");
  }
  if (context.rank == 0 && mixes_labels(data.section("augment"))) {
    spdlog::warn(
        "data.repeats {}: mixup and cutmix mix {} of {} images with another copy of themselves",
        repeats, repeats - 1, repeats);
  }
}

// mixup and cutmix mix an image with another one of its global batch.
void check_mixing(const Settings& data, int64_t samples, const PipelineContext& context) {
  if (context.rank != 0 || !mixes_labels(data.section("augment"))) return;
  const bool one_image = data.integer("batch_size") * context.ranks == 1;
  if (!one_image && samples > 1) return;
  spdlog::warn(
      "data.augment: mixup and cutmix mix each image with itself, because {} has one image; {}",
      one_image ? "the global batch" : "the training set",
      one_image ? "raise data.batch_size to 2 or more" : "set their alpha to 0");
}

void check_channels(int channels) {
  if (channels == 1 || channels == 3) return;
  throw Error(ErrorCode::kUsage, "images cannot have " + std::to_string(channels) + " channels",
              "data.image.channels", "1 is grey, 3 is RGB");
}

ImageShape checked_image(const Settings& data, const Source& source, ImageShape image) {
  if (image.count() == 0) image = image_of(data, source);
  check_channels(image.channels);
  return image;
}

// Of data.interpolation and, for training, data.augment.interpolation.
Interpolation interpolation_of(const Settings& data, bool train) {
  std::string filter = data.text("interpolation");
  const std::string own = train ? data.text("augment.interpolation") : "same";
  Interpolation interpolation;
  interpolation.random = own == "random";
  if (own != "same" && !interpolation.random) filter = own;
  interpolation.filter = filter_named(filter);
  if (data.text("pass_order") == "pillow12") interpolation.passes = PassOrder::kPillow12;
  return interpolation;
}

AugmentChain chain_of(const Settings& data, bool train, const ImageShape& image) {
  return {data.section(train ? "augment" : "eval"),
          train,
          image,
          data.numbers("mean"),
          data.numbers("std"),
          interpolation_of(data, train)};
}

// The dimensions of the samples of a split, as far as the settings tell them.
ImageShape outline_of(const Settings& data, bool train, const PipelineContext& context) {
  SourceContext where = source_context(data, train, false, context);
  const SourceType& type = sources().get(data.text("source"));
  if (type.describe) type.describe(data.section(train ? "train" : "test"), &where);
  if (where.channels > 0) check_channels(where.channels);
  return {where.channels, where.height, where.width};
}

// The options common to all pipelines of these settings.
InputPipeline::Options options_of(const Settings& data, const ImageShape& image,
                                  const PipelineContext& context) {
  return {.sampler = {.batch = data.integer("batch_size"),
                      .rank = context.rank,
                      .ranks = context.ranks,
                      .seed = context.seed,
                      .shuffle = false,
                      .tail = Tail::kPad},
          .image = image,
          .threads = threads_of(data),
          .prefetch = static_cast<int>(data.integer("prefetch")),
          .max_threads = max_threads_of(data),
          .max_prefetch = data.boolean("auto.prefetch") ? kMaxPrefetch : 0,
          .cache_bytes = cache_bytes_of(data, context),
          .async = data.boolean("async"),
          .read_timeout = data.number("read_timeout"),
          .ignored_label = context.ignored_label,
          .evaluation = true,
          .bytes = context.bytes,
          .upright = makes_upright(data),
          .image_memory = context.image_memory};
}

}  // namespace

std::vector<Column> declared_columns(const Settings& data, const PipelineContext& context) {
  const SourceType& type = sources().get(data.text("source"));
  if (!type.columns) return Source::labelled_images();
  return type.columns(data.section("train"), source_context(data, true, false, context));
}

static void refuse_names(const std::string& what, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, "data.class_names", next);
}

std::vector<std::string> given_class_names(const Settings& data, int64_t classes) {
  const std::vector<std::string> given = data.texts("class_names");
  if (given.empty()) return {};
  if (classes > 0 && static_cast<int64_t>(given.size()) != classes) {
    refuse_names(std::to_string(given.size()) + " names, and the model has " +
                     std::to_string(classes) + " classes",
                 "name each class once, in the order of the labels");
  }
  std::set<std::string> different;
  std::vector<std::string> names;
  for (const std::string& name : given) {
    if (name.empty()) refuse_names("a name is empty", "name each class");
    if (!different.insert(name).second) {
      refuse_names("two classes are '" + name + "'", "name each once");
    }
    names.push_back(shown_path(name));
  }
  return names;
}

std::vector<std::string> class_names(const Settings& data, const Source& source, int64_t classes) {
  const std::vector<std::string> given = data.texts("class_names");
  const std::vector<std::string> names = source.class_names();
  if (given.empty()) return names;
  if (!names.empty() && names != given) {
    refuse_names("the class folders have different names", "remove data.class_names");
  }
  return given_class_names(data, classes);
}

Schema data_schema(const std::string& source) {
  const SourceType& type = sources().get(source);
  Schema image;
  image
      .integer("channels", 0, 0, 4,
               "Number of channels: 1 for grey, 3 for RGB; 0: that of the first image, but 3 for "
               "encoded images (PNG, JPEG), grey ones too")
      .integer("height", 0, 0, 65536, "Height in pixels; 0: that of the first image")
      .integer("width", 0, 0, 65536, "Width in pixels; 0: that of the first image");
  Schema schema;
  schema.choice("source", source, sources().names(), "Source of the samples")
      .text("root", "", "Base folder of relative paths")
      .as_path()
      .integer("batch_size", 32, 1, 1e6, "Samples per rank and step")
      .integer(
          "global_batch_size", 0, 0, 1e9,
          "Samples of all ranks per step, instead of data.batch_size; each rank takes its share, "
          "so that results do not depend on the number of ranks; 0: use data.batch_size")
      .integer("threads", 0, 0, kMaxThreads,
               "Worker threads per rank; 0: one for each of its cores")
      .integer("prefetch", 2, 1, 1024, "Number of batches to prepare ahead of training")
      .boolean("auto.threads", false,
               "Start with one thread and add more while training waits for input, if that makes "
               "it faster; data.threads=auto is the short form")
      .boolean("auto.prefetch", false,
               "Prepare more batches ahead, up to 8, while training waits for input, if that makes "
               "it faster; data.prefetch=auto is the short form")
      .boolean("async", true,
               "Prepare batches ahead of time on worker threads; false: on demand. "
               "data.reader=async and data.reader=sync mean the same")
      .choice("cache", "none", {"none", "decoded"},
              "Keep decoded images in memory, as many as fit. Each image is then decoded as a "
              "whole and at full size: the first epoch is slower, and pixels of large JPEGs differ "
              "slightly")
      .integer("cache_memory", 0, 0, 1e9,
               "MiB of this cache per rank, for training images and again for test images; 0: a "
               "third of the free memory, divided by the ranks of the node")
      .boolean("shuffle", true, "Train in a new random order in each epoch")
      .choice(
          "sampling", "all", {"all", "balanced"},
          "Samples of an epoch: every sample once, or the same number of draws with replacement, "
          "with equal probability for each class")
      .number("validation_split", 0, 0, 0.9,
              "Fraction of each class's training samples, or of the documents of a text, used for "
              "evaluation instead of training; 0: none")
      .integer("validation_seed", 1, 0, 9e15,
               "Seed for choosing the samples of data.validation_split")
      .integer("repeats", 1, 1, 1000,
               "Repeated augmentation: number of consecutive copies of each sample, each augmented "
               "differently (usual: 3). An epoch keeps its length: with x copies, it has 1/x of "
               "the samples, each x times")
      .integers("lengths", {},
                "Lengths of rows of tokens, ascending to data.sequence_length: batches of similar "
                "samples have the shortest rows that all samples of the global batch fit into; "
                "each length has a plan of its own. Without data.shuffle, and in evaluation, "
                "samples come in the order of these lengths. []: all rows have "
                "data.sequence_length tokens")
      .choice("tail", "pad", {"pad", "drop"},
              "Treatment of an epoch's last, partial batch: pad it with samples of weight 0 in "
              "metrics, or drop it")
      .choice("on_damaged", "skip", {"skip", "fail"},
              "Action for an image that is damaged or cannot be read: replace it with the next one "
              "and log a warning, or end the job. An image of another size always ends it. Rows of "
              "labelled texts and of clicks that cannot be used are left out, or end the job")
      .number(
          "read_timeout", 60, 0, 1e6,
          "Seconds after which a file that is still being read counts as damaged, and for which a "
          "job waits for data that cannot be read any longer; 0: without limit")
      .section("image", image)
      .choice("pixels", "auto", {"auto", "float32", "uint8"},
              "Format of batches for the device: normalised floats, or bytes that the device "
              "normalises; auto: floats on the CPU, bytes on a GPU")
      .choice("interpolation", "float_bilinear", filter_names(),
              "Filter that resizes images. 'float_bilinear' keeps fractions of pixel values; the "
              "others have the pixels of Pillow, bit for bit: torchvision's and timm's "
              "preprocessing on images")
      .choice(
          "pass_order", "pillow13", {"pillow13", "pillow12"},
          "Which Pillow the exact filters follow: from 13.0 on, much of a tall image is resized "
          "down before across, which changes a few pixels")
      .choice("exif", "ignore", {"ignore", "apply"},
              "Whether to turn and mirror a JPEG as its camera has noted (EXIF orientation); "
              "torchvision and timm ignore the note")
      .texts("class_names", {},
             "Names of the classes, in the order of their labels; class folders define their own. "
             "Checkpoints store them")
      .numbers("mean", {0},
               "Mean to subtract from pixel values in [0, 1]; one value, or one per channel")
      .numbers("std", {1},
               "Standard deviation to divide by after that; one value, or one per channel")
      .section("augment", augment_schema(true))
      .section("eval", augment_schema(false))
      .section("", type.shared ? type.shared() : Schema())
      .section("train", type.schema(true))
      .section("test", type.schema(false));
  return schema;
}

std::vector<int64_t> samples_by_class(const Source& source) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < source.size(); ++i) {
    const int64_t label = source.label(i);
    if (label < 0) continue;
    if (label >= static_cast<int64_t>(counts.size())) counts.resize(label + 1);
    counts[label] += 1;
  }
  return counts;
}

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

std::unique_ptr<InputPipeline> make_prediction_pipeline(const Settings& data,
                                                        std::unique_ptr<Source> source,
                                                        ImageShape image,
                                                        const PipelineContext& context) {
  const bool images = find_column(source->columns(), "image") != nullptr;
  image = images ? checked_image(data, *source, image) : ImageShape{};
  AugmentChain chain = images ? chain_of(data, false, image) : AugmentChain();
  InputPipeline::Options options = options_of(data, image, context);
  options.reports_damaged = true;
  options.sampler.batch = std::min(options.sampler.batch, source->size());
  return std::make_unique<InputPipeline>(std::move(source), std::move(chain), options);
}

DataOutline check_data_settings(const Settings& data, const PipelineContext& context) {
  check_validation_split(data);
  check_sampling(data);
  check_repeats(data, context);
  given_class_names(data, context.classes);
  if (!names_data(data, true)) refuse_missing_data(data);
  const bool splits = data.number("validation_split") > 0;
  const std::vector<Column> columns = declared_columns(data, context);
  check_image_keys(data, columns);
  DataOutline outline{.image = outline_of(data, true, context),
                      .lengths = batch_lengths(data, columns),
                      .columns = columns,
                      .has_test = splits || names_data(data, false)};
  if (outline.has_test && !splits) outline_of(data, false, context);
  if (!find_column(columns, "image")) return outline;
  if (outline.image.count() == 0) return outline;
  chain_of(data, true, outline.image);
  if (outline.has_test) chain_of(data, false, outline.image);
  return outline;
}

std::unique_ptr<InputPipeline> make_pipeline(const Settings& data, bool train,
                                             const PipelineContext& context) {
  check_image_keys(data, declared_columns(data, context));
  auto source = open_source(data, train, context);
  if (!source) return nullptr;
  const bool images = find_column(source->columns(), "image") != nullptr;
  const ImageShape image = images ? checked_image(data, *source, {}) : ImageShape{};
  AugmentChain chain = images ? chain_of(data, train, image) : AugmentChain();
  InputPipeline::Options options = options_of(data, image, context);
  options.lengths = batch_lengths(data, source->columns());
  options.fail_on_damaged = data.text("on_damaged") == "fail";
  if (train) {
    if (context.rank == 0 && std::ranges::any_of(source->columns(), is_class_label)) {
      warn_of_empty_classes(*source, context);
    }
    options.evaluation = false;
    options.sampler.shuffle = data.boolean("shuffle");
    check_repeats(data, context);
    if (images) check_mixing(data, source->size(), context);
    options.sampler.repeats = data.integer("repeats");
    options.sampler.tail = parse_tail(data.text("tail"));
    options.sampler.classes = classes_to_draw(data, *source, context);
    options.speed_test = flag("FLAGS_reader_queue_speed_test_mode");
  }
  return std::make_unique<InputPipeline>(std::move(source), std::move(chain), options);
}

}  // namespace fleet::data
