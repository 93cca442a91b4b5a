// Tagged spans of texts, as seqeval reads them in its default mode (seqeval.metrics.get_entities,
// compatible with conlleval). Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/named_metrics.h"

namespace fleet {

// A tag as "B-PER": the first character, and the type behind the first '-' ("_" without one).
struct EntityTag {
  char32_t mark = 'O';  // B, I, E, S, O; a tag without them starts with any other character
  std::string type = "_";
  bool operator==(const EntityTag&) const = default;
};
EntityTag entity_tag(const std::string& tag);

struct Entity {
  std::string type;
  int64_t first = 0, last = 0;  // its tags, inclusive
  auto operator<=>(const Entity&) const = default;
};

// The entities of one text, in order. IOB1, IOB2, IOE and IOBES are all read: an I or E that
// continues no entity of its type begins one.
std::vector<Entity> entities_of(std::span<const EntityTag> tags);

// Adds the entities and the tags of one text; both spans have a tag for each word. An entity is
// correct if type, first and last are equal.
void add_entities(std::span<const EntityTag> expected, std::span<const EntityTag> predicted,
                  EntityCounts* counts);

// Over all types together (average="micro"); 0 where seqeval divides by 0.
double entity_precision(const EntityCounts& counts);
double entity_recall(const EntityCounts& counts);
double entity_f1(const EntityCounts& counts);

}  // namespace fleet
