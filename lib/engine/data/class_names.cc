#include "data/class_names.h"

#include <set>

#include "base/error.h"
#include "base/terminal_text.h"

namespace fleet::data {

static void refuse_names(const std::string& what, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, "data.class_names", next);
}

std::vector<std::string> given_class_names(const Settings& data, int64_t classes) {
  const std::vector<std::string> given = data.texts("class_names");
  if (given.empty()) return {};
  if (classes > 0 && static_cast<int64_t>(given.size()) != classes) {
    refuse_names(std::to_string(given.size()) + " names, and the model has " +
                     std::to_string(classes) + " classes",
                 "name each class once, in the order of the labels");
  }
  std::set<std::string> different;
  std::vector<std::string> names;
  for (const std::string& name : given) {
    if (name.empty()) refuse_names("a name is empty", "name each class");
    if (!different.insert(name).second) {
      refuse_names("two classes are '" + name + "'", "name each once");
    }
    names.push_back(shown_path(name));
  }
  return names;
}

std::vector<std::string> class_names(const Settings& data, const Source& source, int64_t classes) {
  const std::vector<std::string> given = data.texts("class_names");
  const std::vector<std::string> names = source.class_names();
  if (given.empty()) return names;
  if (!names.empty() && names != given) {
    refuse_names("the class folders have different names", "remove data.class_names");
  }
  return given_class_names(data, classes);
}

std::vector<int64_t> samples_by_class(const Source& source) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < source.size(); ++i) {
    const int64_t label = source.label(i);
    if (label < 0) continue;
    if (label >= static_cast<int64_t>(counts.size())) counts.resize(label + 1);
    counts[label] += 1;
  }
  return counts;
}

}  // namespace fleet::data
