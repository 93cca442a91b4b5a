// Pipelines as the job file's "data" section configures them.
#include <algorithm>
#include <map>
#include <utility>

#include "base/env.h"
#include "base/error.h"
#include "base/thread.h"
#include "data/lengths.h"
#include "data/open_source.h"
#include "data/pipeline.h"
#include "data/reader_tuner.h"
#include "data/sample_maker.h"
#include "data/sampler.h"
#include "data/settings_checks.h"

namespace fleet::data {

bool makes_upright(const Settings& data) { return data.text("exif") == "apply"; }

namespace {

// Tuned readers begin small: threads that are not needed would take cores from the network.
constexpr int kMaxPrefetch = 8, kFewestThreads = 16;

int max_threads_of(const Settings& data) {
  if (!data.boolean("auto.threads")) return 0;
  // Threads that wait for a disk need no core.
  return std::clamp(2 * static_cast<int>(available_cores().size()), kFewestThreads,
                    kMaxReaderThreads);
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
  return std::min(static_cast<int>(available_cores().size()), kMaxReaderThreads);
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

AugmentChain chain_of(const Settings& data, bool train, const ImageShape& image,
                      const std::vector<Column>& columns) {
  AugmentChain chain{data.section(train ? "augment" : "eval"),
                     train,
                     image,
                     data.numbers("mean"),
                     data.numbers("std"),
                     interpolation_of(data, train)};
  if (std::ranges::any_of(columns, is_mask)) chain.check_masks(train);
  return chain;
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

AugmentChain evaluation_chain(const Settings& data, const ImageShape& image) {
  return chain_of(data, false, image, {});
}

std::vector<Column> declared_columns(const Settings& data, const PipelineContext& context) {
  const SourceType& type = sources().get(data.text("source"));
  if (!type.columns) return Source::labelled_images();
  return type.columns(data.section("train"), source_context(data, true, false, context));
}

std::unique_ptr<InputPipeline> make_prediction_pipeline(const Settings& data,
                                                        std::unique_ptr<Source> source,
                                                        ImageShape image,
                                                        const PipelineContext& context) {
  const bool images = find_column(source->columns(), "image") != nullptr;
  image = images ? checked_image(data, *source, image) : ImageShape{};
  AugmentChain chain = images ? chain_of(data, false, image, source->columns()) : AugmentChain();
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
  chain_of(data, true, outline.image, columns);
  if (outline.has_test) chain_of(data, false, outline.image, columns);
  return outline;
}

std::unique_ptr<InputPipeline> make_pipeline(const Settings& data, bool train,
                                             const PipelineContext& context) {
  check_image_keys(data, declared_columns(data, context));
  auto source = open_source(data, train, context);
  if (!source) return nullptr;
  const bool images = find_column(source->columns(), "image") != nullptr;
  const ImageShape image = images ? checked_image(data, *source, {}) : ImageShape{};
  AugmentChain chain = images ? chain_of(data, train, image, source->columns()) : AugmentChain();
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
