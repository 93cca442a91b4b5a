// The job file's "data" section.
#include <algorithm>

#include "base/env.h"
#include "base/error.h"
#include "base/terminal_text.h"
#include "base/thread.h"
#include "data/pipeline.h"
#include "data/sample_maker.h"

namespace fleet::data {
namespace {

constexpr int kMostThreads = 64;

int threads_of(const Settings& data) {
  const auto wanted = static_cast<int>(data.integer("threads"));
  if (wanted > 0) return wanted;
  return std::min(static_cast<int>(available_cores().size()), kMostThreads);
}

bool flag(const std::string& name) {
  const std::string text = env_or(name, "0");
  if (text == "1" || text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "0" || text == "false" || text == "False" || text == "FALSE") return false;
  throw Error(ErrorCode::kUsage, "'" + text + "' is neither true nor false", "environment " + name);
}

// data.image, with what is 0 there taken from the first image.
ImageShape image_of(const Settings& data, const Source& source) {
  ImageShape image{static_cast<int>(data.integer("image.channels")),
                   static_cast<int>(data.integer("image.height")),
                   static_cast<int>(data.integer("image.width"))};
  if (image.count() > 0) return image;
  const ImageShape first = first_shape(source);
  if (image.channels == 0) image.channels = first.channels;
  if (image.height == 0) image.height = first.height;
  if (image.width == 0) image.width = first.width;
  return image;
}

std::unique_ptr<Source> open_source(const Settings& data, bool train,
                                    const PipelineContext& context) {
  const Settings train_split = data.section("train");
  const SourceContext where{.root = data.text("root"),
                            .train = train,
                            .classes = context.classes,
                            .ignored_label = context.ignored_label,
                            .seed = context.seed,
                            .channels = static_cast<int>(data.integer("image.channels")),
                            .height = static_cast<int>(data.integer("image.height")),
                            .width = static_cast<int>(data.integer("image.width")),
                            .train_split = train ? nullptr : &train_split,
                            .speaks = context.rank == 0,
                            .replaces_damaged = data.text("on_damaged") == "skip"};
  const std::string& name = data.text("source");
  auto source = sources().get(name).open(train ? train_split : data.section("test"), where);
  if (source || !train) return source;
  throw Error(
      ErrorCode::kUsage, "no training data is named", "data.train",
      "set what the source '" + name + "' needs:\n" + sources().get(name).schema(true).help());
}

}  // namespace

std::vector<std::string> class_names(const Settings& data, const Source& source, int64_t classes) {
  std::vector<std::string> names = source.class_names();
  const std::vector<std::string> given = data.texts("class_names");
  if (given.empty()) return names;
  const auto refuse = [](const std::string& what, const std::string& next) {
    throw Error(ErrorCode::kUsage, what, "data.class_names", next);
  };
  if (!names.empty() && names != given) {
    refuse("the class folders have other names", "leave data.class_names out");
  }
  if (classes > 0 && static_cast<int64_t>(given.size()) != classes) {
    refuse(std::to_string(given.size()) + " names, and the model has " + std::to_string(classes) +
               " classes",
           "name each class once, in the order of the labels");
  }
  names.clear();
  for (const std::string& name : given) names.push_back(shown_path(name));
  return names;
}

Schema data_schema(const std::string& source) {
  const SourceType& type = sources().get(source);
  Schema image;
  image.integer("channels", 0, 0, 4, "1 grey, 3 RGB; 0: as the first image")
      .integer("height", 0, 0, 65536, "Pixels; 0: as the first image")
      .integer("width", 0, 0, 65536, "Pixels; 0: as the first image");
  Schema schema;
  schema.choice("source", source, sources().names(), "Where samples come from")
      .text("root", "", "Folder that relative paths start from")
      .integer("batch_size", 32, 1, 1e6, "Samples a rank and step")
      .integer("threads", 0, 0, kMostThreads, "Worker threads a rank; 0: one for each of its cores")
      .integer("prefetch", 2, 1, 1024, "Finished batches kept ahead of training")
      .boolean("async", true,
               "Make batches ahead on worker threads; false: when they are asked for")
      .boolean("shuffle", true, "Train in a new random order each epoch")
      .choice(
          "tail", "pad", {"pad", "drop"},
          "An epoch's last, partial batch: filled up with samples that weigh nothing in metrics, "
          "or left out")
      .choice("on_damaged", "skip", {"skip", "fail"},
              "An image that is damaged or cannot be read: replaced by the one behind it, with a "
              "warning, or the job fails")
      .number("read_timeout", 60, 0, 1e6,
              "Seconds after which a file whose reading does not end counts as damaged; 0: never")
      .section("image", image)
      .choice("pixels", "auto", {"auto", "float32", "uint8"},
              "What batches bring to the device: normalised floats, or bytes that it normalises; "
              "auto: floats on the CPU, bytes on a GPU")
      .texts("class_names", {},
             "Names of the classes, by label; class folders have theirs. Checkpoints hold them")
      .numbers("mean", {0}, "Subtracted from values in [0, 1]; one, or one a channel")
      .numbers("std", {1}, "Divides after that; one, or one a channel")
      .section("augment", augment_schema(true))
      .section("eval", augment_schema(false))
      .section("train", type.schema(true))
      .section("test", type.schema(false));
  return schema;
}

std::unique_ptr<InputPipeline> make_pipeline(const Settings& data, bool train,
                                             const PipelineContext& context) {
  auto source = open_source(data, train, context);
  if (!source) return nullptr;
  const ImageShape image = image_of(data, *source);
  if (image.channels != 1 && image.channels != 3) {
    throw Error(ErrorCode::kUsage,
                "images cannot have " + std::to_string(image.channels) + " channels",
                "data.image.channels", "1 is grey, 3 is RGB");
  }
  AugmentChain chain(data.section(train ? "augment" : "eval"), train, image, data.numbers("mean"),
                     data.numbers("std"));
  InputPipeline::Options options{
      .sampler = {.samples = source->size(),
                  .batch = data.integer("batch_size"),
                  .rank = context.rank,
                  .ranks = context.ranks,
                  .seed = context.seed,
                  .shuffle = train && data.boolean("shuffle"),
                  .tail = train ? parse_tail(data.text("tail")) : Tail::kPad},
      .image = image,
      .threads = threads_of(data),
      .prefetch = static_cast<int>(data.integer("prefetch")),
      .async = data.boolean("async"),
      .fail_on_damaged = data.text("on_damaged") == "fail",
      .read_timeout = data.number("read_timeout"),
      .ignored_label = context.ignored_label,
      .evaluation = !train,
      .speed_test = train && flag("FLAGS_reader_queue_speed_test_mode"),
      .bytes = context.bytes,
      .image_memory = context.image_memory};
  return std::make_unique<InputPipeline>(std::move(source), std::move(chain), options);
}

}  // namespace fleet::data
