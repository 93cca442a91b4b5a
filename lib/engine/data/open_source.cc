#include "data/open_source.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "data/settings_checks.h"
#include "data/storage.h"

namespace fleet::data {

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

// Implements data.validation_split: the test split is a part of the training data.
static std::unique_ptr<Source> open_part(const Settings& data, bool train,
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

}  // namespace fleet::data
