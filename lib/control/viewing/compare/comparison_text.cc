// A comparison for people and for programs.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "base/json.h"
#include "base/number_text.h"
#include "base/one_line.h"
#include "base/terminal_text.h"
#include "viewing/compare/comparison.h"

namespace fleet {
namespace {

constexpr size_t kMaxOfValue = 20;  // columns of a setting
constexpr size_t kMaxRunsListed = 6;

struct Column {
  std::string head;
  std::vector<std::string> cells;
  size_t width() const {
    size_t width = columns_of_text(head);
    for (const std::string& cell : cells) width = std::max(width, columns_of_text(cell));
    return width;
  }
};

// "0.883 ± 0.0031": the mean with as many decimals as the deviation.
std::string spread_text(const Spread& spread) {
  if (spread.count == 0) return "-";
  if (spread.count == 1) return number_text(spread.mean, 4);
  if (!(spread.deviation > std::abs(spread.mean) * 1e-9)) {
    return number_text(spread.mean, 4) + " \xc2\xb1 0";
  }
  const double size = spread.deviation;
  const int decimals = std::max(1 - static_cast<int>(std::floor(std::log10(size))), 0);
  if (std::abs(spread.mean) >= 1e9 || size >= 1e9 || decimals > 8) {
    return number_text(spread.mean, 4) + " \xc2\xb1 " + number_text(spread.deviation, 2);
  }
  return format_printf("%.*f \xc2\xb1 %.*f", decimals, spread.mean, decimals, spread.deviation);
}

// The last part of the key, or all of it where that is ambiguous.
std::string short_key(const std::string& key, const std::vector<std::string>& keys) {
  const auto last = [](const std::string& path) { return path.substr(path.rfind('.') + 1); };
  const auto same = std::ranges::count_if(
      keys, [&](const std::string& other) { return last(other) == last(key); });
  return same > 1 ? key : last(key);
}

// Rows of `columns`, in blocks that fit the width. Each block begins with `first`.
std::string blocks(const Column& first, const std::vector<Column>& columns, size_t width) {
  std::string text;
  const size_t left = first.width();
  for (size_t begin = 0; begin < columns.size();) {
    size_t end = begin, used = left;
    while (end < columns.size() && (end == begin || used + 2 + columns[end].width() <= width)) {
      used += 2 + columns[end++].width();
    }
    if (begin > 0) text += "\n";
    const auto line = [&](const auto& cell_of) {
      std::string row = cell_of(first);
      size_t at = left;
      for (size_t k = begin; k < end; ++k) {
        row.append(at - columns_of_text(row) + 2, ' ');
        row += cell_of(columns[k]);
        at += 2 + columns[k].width();
      }
      row.erase(row.find_last_not_of(' ') + 1);
      text += cut_to_columns(row, width) + "\n";
    };
    line([](const Column& column) { return column.head; });
    for (size_t row = 0; row < first.cells.size(); ++row) {
      line([&](const Column& column) { return column.cells[row]; });
    }
    begin = end;
  }
  return text;
}

// The folder of all runs; "" if they differ, or for a single run.
std::string common_folder(const std::vector<RunSummary>& runs) {
  const auto folder_of = [](const RunSummary& run) {
    return std::filesystem::path(run.folder).parent_path().string();
  };
  const std::string folder = runs.size() > 1 ? folder_of(runs[0]) : "";
  const bool all =
      std::ranges::all_of(runs, [&](const RunSummary& run) { return folder_of(run) == folder; });
  return all ? folder : "";
}

// The runs of each group: "1: a, b, c; seeds 1, 2, 3".
std::string legend(const Comparison& all, size_t width) {
  const std::string folder = common_folder(all.runs);
  std::string text;
  if (!folder.empty()) text += cut_to_columns("in " + one_line(folder, 4096) + ":", width) + "\n";
  for (size_t g = 0; g < all.groups.size(); ++g) {
    std::string line = std::to_string(g + 1) + ": ", seeds;
    const std::vector<size_t>& runs = all.groups[g].runs;
    for (size_t k = 0; k < std::min(runs.size(), kMaxRunsListed); ++k) {
      const RunSummary& run = all.runs[runs[k]];
      const std::string name =
          folder.empty() ? run.folder : std::filesystem::path(run.folder).filename().string();
      line += (k > 0 ? ", " : "") + one_line(name, 200);
      if (!run.complete) line += " (incomplete)";
      seeds += (k > 0 ? ", " : "") + one_line(run.seed.empty() ? "?" : run.seed, 24);
    }
    const bool more = runs.size() > kMaxRunsListed;
    if (more) line += ", and " + std::to_string(runs.size() - kMaxRunsListed) + " more";
    if (runs.size() > 1 && !more) line += "; seeds " + seeds;
    text += cut_to_columns(line, width) + "\n";
  }
  return text;
}

Json spread_json(const Spread& spread) {
  return {{"mean", spread.mean},
          {"deviation", spread.count > 0 ? Json(spread.deviation) : Json(nullptr)},
          {"runs", spread.count}};
}

// Values of config.txt are JSON; those of damaged files are texts.
Json value_json(const std::string& value) {
  if (value.empty()) return nullptr;
  return Json::try_parse(value).value_or(Json(value));
}

// A setting for people: a text without its quotes.
std::string value_text(const std::string& value) {
  if (value.empty()) return "-";
  const Json parsed = value_json(value);
  const std::string text = parsed.is_string() ? parsed.get<std::string>() : value;
  return one_line(text.empty() ? "\"\"" : text, kMaxOfValue);
}

// "" if it is not shown: a value of a headline that there is not, or of a target.
std::string name_of(const RunValue& value, const std::string& headline, bool target) {
  if (value.kind == RunValue::Kind::kPlain) return value.name;
  if (value.kind == RunValue::Kind::kTarget) return target ? value.name : "";
  return headline.empty() ? "" : value.name + headline;
}

Json run_json(const RunSummary& run, bool target) {
  Json all = {{"folder", run.folder}, {"seed", value_json(run.seed)}, {"complete", run.complete}};
  for (const RunValue& value : kRunValues) {
    const std::string name = name_of(value, run.metrics.headline, target);
    if (!name.empty()) all[name] = run.*value.of_run;
  }
  return all;
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

// Two columns for each headline, with cells for the groups that have it.
std::vector<Column> headline_columns(const std::vector<RunGroup>& groups) {
  std::vector<std::string> headlines;
  for (const RunGroup& group : groups) {
    const bool known = std::ranges::find(headlines, group.headline) != headlines.end();
    if (!known && !group.headline.empty()) headlines.push_back(group.headline);
  }
  std::vector<Column> columns;
  for (const std::string& headline : headlines) {
    const std::string name = one_line(upper(headline), 30);
    Column last{name, {}}, best{headlines.size() > 1 ? "BEST " + name : "BEST", {}};
    for (const RunGroup& group : groups) {
      const bool has = group.headline == headline;
      last.cells.push_back(has ? spread_text(group.of_headline) : "-");
      best.cells.push_back(has ? spread_text(group.best) : "-");
    }
    columns.push_back(std::move(last));
    columns.push_back(std::move(best));
  }
  return columns;
}

}  // namespace

std::string comparison_text(const Comparison& all, const ComparisonOptions& options) {
  Column number{"", {}};
  std::vector<Column> columns;
  for (const std::string& key : all.differing) {
    columns.push_back({one_line(short_key(key, all.differing), 30), {}});
  }
  Column runs{"RUNS", {}}, loss{"LOSS", {}};
  Column target{"TO " + options.target, {}}, steps{"STEPS", {}}, speed{"SPEED", {}},
      seconds{"SECONDS", {}};
  for (size_t g = 0; g < all.groups.size(); ++g) {
    const RunGroup& group = all.groups[g];
    number.cells.push_back(std::to_string(g + 1));
    for (size_t k = 0; k < group.values.size(); ++k) {
      columns[k].cells.push_back(value_text(group.values[k]));
    }
    runs.cells.push_back(std::to_string(group.runs.size()));
    loss.cells.push_back(spread_text(group.loss));
    const int reached = group.target_seconds.count;
    std::string text = reached == 0 ? "never" : spread_text(group.target_seconds) + " s";
    if (reached > 0 && static_cast<size_t>(reached) < group.runs.size()) {
      text += " (" + std::to_string(reached) + " of " + std::to_string(group.runs.size()) + ")";
    }
    target.cells.push_back(std::move(text));
    steps.cells.push_back(spread_text(group.steps));
    speed.cells.push_back(spread_text(group.speed));
    seconds.cells.push_back(spread_text(group.seconds));
  }
  for (Column* column : {&runs, &loss}) columns.push_back(std::move(*column));
  std::ranges::move(headline_columns(all.groups), std::back_inserter(columns));
  if (!options.target.empty()) columns.push_back(std::move(target));
  for (Column* column : {&seconds, &steps, &speed}) columns.push_back(std::move(*column));
  return blocks(number, columns, options.width) + "\n" + legend(all, options.width);
}

std::string comparison_json(const Comparison& all, const ComparisonOptions& options) {
  const bool target = !options.target.empty();
  Json json;
  json["target"] = target ? value_json(options.target) : Json(nullptr);
  json["differing"] = all.differing;
  json["groups"] = Json::array();
  for (const RunGroup& group : all.groups) {
    Json one;
    one["settings"] = Json::object();
    for (size_t k = 0; k < all.differing.size(); ++k) {
      one["settings"][all.differing[k]] = value_json(group.values[k]);
    }
    for (const RunValue& value : kRunValues) {
      const std::string name = name_of(value, group.headline, target);
      if (!name.empty()) one[name] = spread_json(group.*value.of_group);
    }
    one["runs"] = Json::array();
    for (const size_t run : group.runs) one["runs"].push_back(run_json(all.runs[run], target));
    json["groups"].push_back(std::move(one));
  }
  return json.dump_lossy(2) + "\n";
}

}  // namespace fleet
