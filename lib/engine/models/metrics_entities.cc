#include "models/metrics_entities.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "text/utf8.h"

namespace fleet {
namespace {

bool is_one_of(char32_t mark, std::u32string_view marks) {
  return marks.find(mark) != std::u32string_view::npos;
}

// seqeval's end_of_chunk(): whether an entity ends between two tags.
bool ends_between(const EntityTag& before, const EntityTag& tag) {
  if (is_one_of(before.mark, U"ES")) return true;
  if (is_one_of(before.mark, U"BI") && is_one_of(tag.mark, U"BSO")) return true;
  return !is_one_of(before.mark, U"O.") && before.type != tag.type;
}

// seqeval's start_of_chunk(): whether one begins with the second.
bool starts_at(const EntityTag& before, const EntityTag& tag) {
  if (is_one_of(tag.mark, U"BS")) return true;
  if (is_one_of(before.mark, U"ESO") && is_one_of(tag.mark, U"EI")) return true;
  return !is_one_of(tag.mark, U"O.") && before.type != tag.type;
}

double ratio(double part, double of) { return of > 0 ? part / of : 0; }

}  // namespace

EntityTag entity_tag(const std::string& tag) {
  if (tag.empty()) return {.mark = 0};
  const std::string valid = text::valid_utf8(tag);
  size_t next = 0;
  const char32_t mark = text::code_point_at(valid, 0, &next);
  std::string type = valid.substr(next);
  if (const size_t dash = type.find('-'); dash != std::string::npos) type.erase(0, dash + 1);
  return {mark, type.empty() ? "_" : type};
}

std::vector<Entity> entities_of(std::span<const EntityTag> tags) {
  std::vector<Entity> entities;
  const EntityTag outside;
  EntityTag before{.mark = 'O', .type = ""};
  int64_t first = 0;
  for (size_t i = 0; i <= tags.size(); ++i) {
    const EntityTag& tag = i < tags.size() ? tags[i] : outside;
    const auto at = static_cast<int64_t>(i);
    if (ends_between(before, tag)) entities.push_back({before.type, first, at - 1});
    if (starts_at(before, tag)) first = at;
    before = tag;
  }
  return entities;
}

void add_entities(std::span<const EntityTag> expected, std::span<const EntityTag> predicted,
                  EntityCounts* counts) {
  FLEET_CHECK(expected.size() == predicted.size(), "tags of texts of two lengths");
  std::vector<Entity> own = entities_of(expected), found = entities_of(predicted);
  counts->expected += static_cast<double>(own.size());
  counts->predicted += static_cast<double>(found.size());
  std::ranges::sort(own);
  std::ranges::sort(found);
  std::vector<Entity> both;
  std::ranges::set_intersection(own, found, std::back_inserter(both));
  counts->correct += static_cast<double>(both.size());
  counts->tags += static_cast<double>(expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    counts->correct_tags += expected[i] == predicted[i] ? 1 : 0;
  }
}

double entity_precision(const EntityCounts& counts) {
  return ratio(counts.correct, counts.predicted);
}

double entity_recall(const EntityCounts& counts) { return ratio(counts.correct, counts.expected); }

double entity_f1(const EntityCounts& counts) {
  return ratio(2 * counts.correct, counts.predicted + counts.expected);
}

FLEET_METRIC(entity_f1) {
  def.help = "F1 of tagged entities, all types together (seqeval's default mode)";
  def.of_entities = entity_f1;
}

FLEET_METRIC(entity_precision) {
  def.help = "part of the predicted entities that are right";
  def.of_entities = entity_precision;
}

FLEET_METRIC(entity_recall) {
  def.help = "part of the entities that are found";
  def.of_entities = entity_recall;
}

}  // namespace fleet
