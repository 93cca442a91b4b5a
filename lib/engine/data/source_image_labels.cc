// Images with several labels each: a text file with one "path label,label,..." per line. The column
// "targets" has 1 for each class that the image shows, and 0 for the others.
#include <filesystem>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/images_with_labels.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

// "path 3,17", or a path alone for an image that shows none of the classes.
void parse_labels(std::string_view line, const SourceContext& context, const std::string& where,
                  LabelledFiles* all) {
  const size_t blank = line.find_last_of(" \t");
  const std::string_view path = trim(line.substr(0, blank));
  const std::string_view labels = blank == line.npos ? "" : line.substr(blank + 1);
  for (const std::string& text : split(std::string(labels), ',')) {
    long long label = 0;  // NOLINT(runtime/int): type of parse_int()
    if (text.empty() && labels.empty()) break;
    if (!parse_int(text, &label)) {
      throw Error(ErrorCode::kUsage, "'" + shown_name(line, 200) + "' is not \"path label,label\"",
                  where, "write the image's path, a blank and the numbers of its classes from 0");
    }
    if (label < 0 || label >= context.classes) check_label(label, context, where);
    all->labels.push_back(label);
  }
  all->files.push_back({under_root(context.root, std::string(path)), 0});
  all->begins.push_back(all->labels.size());
}

std::unique_ptr<Source> open_labels(const Settings& split, const SourceContext& given) {
  std::string list = split.text("list");
  if (list.empty()) return no_test_data(given, "data.test.list");
  std::error_code ignored;  // such as a name that is too long
  if (!fs::exists(list, ignored)) list = under_root(given.root, list);
  SourceContext context = given;
  context.ignored_label = -1;  // each label must be a class
  if (given.root.empty()) context.root = fs::path(list).parent_path().string();
  LabelledFiles all{.files = {}, .labels = {}, .begins = {0}};
  int64_t number = 0;
  for_each_line(list, [&](std::string_view line) {
    const std::string where = list + ":" + std::to_string(++number);
    if (!trim(line).empty()) parse_labels(trim(line), context, where, &all);
  });
  if (all.files.empty()) {
    throw Error(ErrorCode::kUsage, "the list contains no image", list,
                "write \"path label,label\" lines");
  }
  return std::make_unique<ImagesWithLabels>(std::move(all), context.classes);
}

}  // namespace

FLEET_SOURCE(image_labels) {
  def.schema = [](bool) {
    return Schema()
        .text(
            "list", "",
            "Text file with \"path label,label,...\" lines, for images with several labels; paths "
            "are relative to data.root, or to the list's folder if that is not set")
        .as_path();
  };
  def.names_data = [](const Settings& split) { return !split.text("list").empty(); };
  def.columns = [](const Settings&, const SourceContext& context) {
    return ImagesWithLabels::columns_of(context.classes);
  };
  def.open = open_labels;
}

}  // namespace fleet::data
