// Click data in files of lines: a row is a line. Internal to data.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/click_columns.h"
#include "data/source.h"

namespace fleet::data {

// How a line becomes a row. Immutable: thread-safe.
class ClickFormat {
 public:
  virtual ~ClickFormat() = default;
  virtual ClickShape shape() const = 0;
  // Writes all columns of the row, with their padding. Without row.label, the line may lack a
  // label, and its label is not checked. Returns why the line is broken, then the columns are
  // undefined; "" if it is not.
  virtual std::string parse(std::string_view line, const ClickRow& row) const = 0;
};

// Makes a format from data.*; kUsage if they do not fit.
using MakeClickFormat = std::unique_ptr<const ClickFormat> (*)(const Settings& data);

// The keys of a split.
Schema click_file_keys();
// The keys of data.* that all formats of files have.
Schema click_row_keys();

// SourceType's parts. A broken line is left out, with a warning; kUsage at its place with
// data.on_damaged=fail, or if more than the fraction data.max_broken_lines of the lines are broken.
void describe_clicks(const Settings& split, SourceContext* context, MakeClickFormat make);
std::unique_ptr<Source> open_clicks(const Settings& split, const SourceContext& context,
                                    MakeClickFormat make);
UnlabelledSamples unlabelled_clicks(const std::vector<std::string>& words,
                                    const SourceContext& context, MakeClickFormat make);

// Defines what sources of such files have in common; their keys are theirs.
template <MakeClickFormat make>
void define_clicks(SourceType* def) {
  def->schema = [](bool) { return click_file_keys(); };
  def->names_data = [](const Settings& split) { return !split.texts("file").empty(); };
  def->describe = [](const Settings& split, SourceContext* context) {
    describe_clicks(split, context, make);
  };
  def->columns = [](const Settings&, const SourceContext& context) {
    return click_columns(make(*context.data)->shape(), true);
  };
  def->open = [](const Settings& split, const SourceContext& context) {
    return open_clicks(split, context, make);
  };
  def->unlabelled = [](const std::vector<std::string>& words, const SourceContext& context) {
    return unlabelled_clicks(words, context, make);
  };
  def->drops_rows = true;
}

}  // namespace fleet::data
