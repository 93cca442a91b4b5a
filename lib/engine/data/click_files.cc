#include "data/click_files.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/thread.h"
#include "data/line_index_cache.h"
#include "data/storage.h"

namespace fleet::data {
namespace {

constexpr size_t kShown = 3;  // broken lines, and files without rows, that have a line of the log

class ClickFiles : public Source {
 public:
  ClickFiles(std::shared_ptr<const LineIndex> lines, std::unique_ptr<const ClickFormat> format,
             double read_timeout, bool labelled)
      : lines_(std::move(lines)),
        format_(std::move(format)),
        shape_(format_->shape()),
        read_timeout_(read_timeout),
        labelled_(labelled) {}
  int64_t size() const override { return lines_->rows(); }
  std::vector<Column> columns() const override { return click_columns(shape_, labelled_); }
  std::string name(int64_t index) const override { return lines_->name(index); }
  void fill(int64_t index, uint64_t /*key*/, std::span<void* const> to) const override {
    thread_local std::string scratch;
    std::string_view line;
    try {
      line = lines_->read(index, &scratch);
    } catch (const SystemError&) {  // waits for a file server that may come back
      wait_for_storage(read_timeout_, [&] { line = lines_->read(index, &scratch); });
    }
    const std::string why = format_->parse(line, click_row(shape_, labelled_, to));
    if (why.empty()) return;
    throw Error(ErrorCode::kUsage, "the file has changed since it was opened: " + why, name(index),
                "start the job again");
  }

 private:
  const std::shared_ptr<const LineIndex> lines_;
  const std::unique_ptr<const ClickFormat> format_;
  const ClickShape shape_;
  const double read_timeout_;
  const bool labelled_;
};

// Parses lines and drops their columns.
class RowCheck {
 public:
  RowCheck(std::shared_ptr<const ClickFormat> format, bool labelled) : format_(std::move(format)) {
    const ClickShape shape = format_->shape();
    numbers_.resize(1 + static_cast<size_t>(shape.dense + shape.slots * shape.longest));
    ids_.resize(static_cast<size_t>(shape.slots * shape.longest));
    row_ = {.label = labelled ? numbers_.data() : nullptr,
            .dense = numbers_.data() + 1,
            .ids = ids_.data(),
            .weights = shape.weights ? numbers_.data() + 1 + shape.dense : nullptr};
  }
  std::string parse(std::string_view line) const { return format_->parse(line, row_); }

 private:
  const std::shared_ptr<const ClickFormat> format_;
  std::vector<float> numbers_;
  std::vector<int64_t> ids_;
  ClickRow row_;
};

LineIndexOptions index_options(const SourceContext& context, MakeClickFormat make, bool labelled) {
  std::shared_ptr<const ClickFormat> format = make(*context.data);
  return {.header = context.data->boolean("header"),
          .make_check =
              [format, labelled] {
                return [check = std::make_shared<RowCheck>(format, labelled)](
                           std::string_view line) { return check->parse(line); };
              },
          .threads = static_cast<int>(available_cores().size())};
}

LineFileRequest request_of(const std::vector<std::string>& words, const SourceContext& context,
                           const std::string& key) {
  return {.words = words,
          .root = context.root,
          .key = key,
          .cache = context.data->text("cache_folder")};
}

// The settings that lines are checked by.
std::string identity_of(const Settings& data) {
  const std::string& source = data.text("source");
  std::string text = source;
  const Schema keys = sources().get(source).shared();
  for (const ConfigKey& key : keys.keys()) {
    if (key.path == "max_broken_lines" || key.path == "cache_folder") continue;
    text += "\n" + key.path + "=" + data.json(key.path);
  }
  return text;
}

std::shared_ptr<const LineIndex> open_index(const LineFileRequest& request,
                                            const LineIndexOptions& options,
                                            const SourceContext& context) {
  const LineIndexCache cache{.folder = request.cache,
                             .identity = identity_of(*context.data),
                             .name = context.train ? "data.train" : "data.test",
                             .verbose = context.verbose};
  return cached_line_index(find_line_files(request), options, cache);
}

[[noreturn]] void refuse_line(const LineIndex& lines, const std::string& what, std::string next) {
  const LineIndex::Broken& first = lines.broken().front();
  if (lines.is_first_of_file(first)) {
    next += "; if the line names the columns, set data.header to true";
  }
  throw Error(ErrorCode::kUsage, what, lines.name(first), next);
}

void check_broken(const LineIndex& lines, const SourceContext& context) {
  const int64_t broken = lines.broken_lines(), all = broken + lines.rows();
  if (broken == 0) return;
  const std::string& why = lines.broken().front().why;
  if (!context.replaces_damaged) {
    refuse_line(lines, why, "correct or remove the line, or set data.on_damaged to skip");
  }
  const double most = context.data->number("max_broken_lines");
  if (static_cast<double>(broken) > most * static_cast<double>(all)) {
    refuse_line(lines,
                std::to_string(broken) + " of " + std::to_string(all) +
                    " lines are broken, more than the fraction " + number_text(most) +
                    "; the first: " + why,
                "correct the lines, or raise data.max_broken_lines");
  }
  if (!context.verbose) return;
  for (size_t i = 0; i < std::min(kShown, lines.broken().size()); ++i) {
    spdlog::warn("{}: {}", lines.name(lines.broken()[i]), lines.broken()[i].why);
  }
  spdlog::warn("{}: {} of {} lines are broken and left out (data.max_broken_lines)",
               context.train ? "data.train" : "data.test", broken, all);
}

void check_rows(const LineIndex& lines, const SourceContext& context, const std::string& key) {
  const std::vector<std::string> without = lines.files_without_rows();
  if (lines.rows() == 0) {
    throw Error(ErrorCode::kUsage, "the files have no row", without.empty() ? key : without[0],
                "name files with a row on each line");
  }
  for (size_t i = 0; context.verbose && i < std::min(kShown, without.size()); ++i) {
    spdlog::warn("{}: the file has no row{}", without[i],
                 i + 1 == kShown && without.size() > kShown
                     ? ", nor have " + std::to_string(without.size() - kShown) + " others"
                     : "");
  }
}

}  // namespace

Schema click_file_keys() {
  return Schema()
      .texts("file", {},
             "Files, folders or patterns (day_*, part-{000..099}): lines, plain or compressed by "
             "gzip, or tar files of them")
      .as_path();
}

Schema click_row_keys() {
  return id_space_keys()
      .number("max_broken_lines", 0.001, 0, 1,
              "Largest fraction of lines that may be broken and are left out; more of them end the "
              "job. With data.on_damaged=fail, the first one does")
      .boolean("header", false, "The first line of each file names the columns, and is left out")
      .text("cache_folder", "",
            "Folder for the decompressed form of .gz and .tar.gz files, and for indexes of large "
            "files; \"\": ~/.cache/fleetrun")
      .as_path();
}

void describe_clicks(const Settings& split, SourceContext* context, MakeClickFormat make) {
  make(*context->data);
  check_line_files(request_of(split.texts("file"), *context,
                              context->train ? "data.train.file" : "data.test.file"));
}

std::unique_ptr<Source> open_clicks(const Settings& split, const SourceContext& context,
                                    MakeClickFormat make) {
  const std::string key = context.train ? "data.train.file" : "data.test.file";
  if (split.texts("file").empty()) return no_test_data(context, key);
  const LineFileRequest request = request_of(split.texts("file"), context, key);
  check_line_files(request);
  std::unique_ptr<const ClickFormat> format = make(*context.data);
  const auto lines = open_index(request, index_options(context, make, true), context);
  check_broken(*lines, context);
  check_rows(*lines, context, key);
  return std::make_unique<ClickFiles>(lines, std::move(format),
                                      context.data->number("read_timeout"), true);
}

UnlabelledSamples unlabelled_clicks(const std::vector<std::string>& words,
                                    const SourceContext& context, MakeClickFormat make) {
  LineFileRequest request = request_of(words, context, "predict.input");
  request.root.clear();
  check_line_files(request);
  std::unique_ptr<const ClickFormat> format = make(*context.data);
  LineIndexOptions options = index_options(context, make, false);
  options.keep_all_broken = true;
  const auto lines = open_index(request, options, context);
  UnlabelledSamples all{.unit = "row"};
  UnlabelledSamples::Group group;
  int64_t row = 0;
  const auto add_rows = [&](int64_t end) {
    for (; row < end; ++row) {
      group.samples.push_back(std::ssize(all.names));
      all.names.push_back(lines->name(row));
      all.failures.emplace_back();
    }
  };
  for (const LineIndex::Broken& broken : lines->broken()) {
    add_rows(lines->rows_before(broken));
    all.names.push_back(lines->name(broken));
    all.failures.push_back(broken.why);
  }
  add_rows(lines->rows());
  if (row == 0) return all;
  group.source = std::make_unique<ClickFiles>(lines, std::move(format),
                                              context.data->number("read_timeout"), false);
  all.groups.push_back(std::move(group));
  return all;
}

}  // namespace fleet::data
