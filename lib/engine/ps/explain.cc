#include "ps/explain.h"

#include "base/counted.h"
#include "base/text.h"
#include "ps/dense_payload.h"
#include "ps/mode_limits.h"
#include "ps/served_model.h"
#include "strategy/served_tables.h"

namespace fleet::ps {

std::string HeldBlock::text() const {
  if (whole) return parameter;
  return parameter + " [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

std::string HeldTable::text() const {
  std::string text = "table " + name + ": dim " + std::to_string(dim) + ", " + rule + ", " +
                     std::to_string(row_bytes) + " bytes a row";
  if (storage == "memory") return text + " in memory";
  return text + " in " + storage + ", " + counted(cached_rows, "row") + " in memory";
}

namespace {

// As TableClient sends them: a pull has ids and occurrences; a push ids, shows, clicks, gradients.
HeldTable held_table(const TableSettings& settings, const ServedTable& served, int servers) {
  const size_t row = sizeof(float) * static_cast<size_t>(settings.dim);
  HeldTable held{.name = settings.name,
                 .rule = settings.rule.text("name"),
                 .storage = settings.storage,
                 .dim = settings.dim,
                 .row_bytes = sizeof(float) * settings.layout().floats(),
                 .cached_rows = settings.cached_rows(shards_of_server(0, servers).count()),
                 .most_ids = served.most,
                 .pushed_bytes = 2 * sizeof(uint64_t) + sizeof(uint32_t) + 2 * sizeof(float) + row,
                 .pulled_bytes = row};
  for (int s = 0; s < servers; ++s) held.shards.push_back(shards_of_server(s, servers));
  return held;
}

}  // namespace

ServersExplained servers_explained(const Program& program, int servers,
                                   const std::vector<TableSettings>& tables, ServerMode mode) {
  const ServedModel model = served_model(program);
  const Placement placement = place(model, servers);
  check_mode(mode, model, placement, tables);
  const bool geo = mode == ServerMode::kGeo;
  const std::string text =
      text_of(placement, model.placed_parameters(), model.placed_vars(), /*updates=*/!geo);
  const std::vector<std::string_view> lines = lines_of(text);
  ServersExplained all;
  for (int s = 0; s < servers; ++s) {
    HeldByServer held{.line = std::string(lines[static_cast<size_t>(s)])};
    held.bytes = bytes_of(segments_of(model, placement, s, kValueSection));
    for (const int b : placement.blocks_of(s)) {
      const Block& block = placement.blocks[b];
      const ServedParameter& parameter = model.parameters[block.parameter];
      held.blocks.push_back({.parameter = parameter.name,
                             .begin = block.begin,
                             .end = block.end,
                             .whole = block.elements() == parameter.elements});
    }
    for (size_t i = 0; i < model.kept.size(); ++i) {
      if (placement.kept[i] == s) held.kept.push_back(model.kept[i].name);
    }
    all.pulled_bytes += held.bytes;
    const Sections pushed = geo ? kValueSection : kGradientSection;
    all.pushed_bytes += bytes_of(segments_of(model, placement, s, pushed));
    all.servers.push_back(std::move(held));
  }
  const std::vector<ServedTable> served = served_tables(program);
  for (size_t t = 0; t < tables.size(); ++t) {
    FLEET_CHECK(t < served.size() && served[t].name == tables[t].name, "tables of another model");
    all.tables.push_back(held_table(tables[t], served[t], servers));
  }
  return all;
}

}  // namespace fleet::ps
