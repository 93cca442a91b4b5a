#include "ps/tables/missing_rows.h"

namespace fleet::ps {

std::string text_of(const MissingRows& missing, const std::string& table, const std::string& of) {
  const auto these = [](int64_t count, const std::string& what) {
    return std::to_string(count) + (count == 1 ? " takes " : " take ") + what;
  };
  std::string text = "table " + table + ": " + std::to_string(missing.all()) + " of " + of +
                     (missing.all() == 1 ? " has no row: " : " have no row: ");
  if (missing.initial > 0) text += these(missing.initial, "the initial one");
  if (missing.not_admitted == 0) return text;
  if (missing.initial > 0) text += ", ";
  return text + these(missing.not_admitted, "zeros") + " (not admitted by tables." + table +
         ".entry)";
}

}  // namespace fleet::ps
