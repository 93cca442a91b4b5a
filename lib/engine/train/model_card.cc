#include "train/model_card.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet {
namespace {

constexpr char kClasses[] = "classes", kImage[] = "image", kPretrained[] = "pretrained_cfg";

template <typename T>
void write_list(const std::vector<T>& list, const std::string& key,
                std::map<std::string, std::string>* metadata) {
  if (list.empty()) return;
  (*metadata)[key] = Json(list).dump_lossy();
}

template <typename T>
std::vector<T> read_list(const std::map<std::string, std::string>& metadata,
                         const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end() || found->second.starts_with("[[")) return {};
  try {
    return Json::parse(found->second).get<std::vector<T>>();
  } catch (const JsonError&) {
    return {};
  }
}

std::string class_text(const std::vector<std::string>& classes, size_t label) {
  return label < classes.size() ? "'" + shown_name(classes[label]) + "'" : "none";
}

}  // namespace

void write_card(const ModelCard& card, std::map<std::string, std::string>* metadata) {
  write_list(card.classes, kClasses, metadata);
  write_list(card.image, kImage, metadata);
  if (!card.pretrained.empty()) (*metadata)[kPretrained] = card.pretrained;
}

ModelCard read_card(const std::map<std::string, std::string>& metadata) {
  ModelCard card{read_list<std::string>(metadata, kClasses), read_list<int64_t>(metadata, kImage)};
  const bool sizes = std::all_of(card.image.begin(), card.image.end(),
                                 [](int64_t size) { return size > 0 && size <= 65536; });
  if (card.image.size() != 3 || !sizes) card.image.clear();
  const auto pretrained = metadata.find(kPretrained);
  if (pretrained != metadata.end()) card.pretrained = pretrained->second;
  return card;
}

void check_same_classes(const std::vector<std::string>& saved, const std::vector<std::string>& own,
                        const std::string& where, const std::string& next) {
  if (saved.empty() || own.empty() || saved == own) return;
  size_t label = 0;
  while (label < std::min(saved.size(), own.size()) && saved[label] == own[label]) ++label;
  std::vector<std::string> ours = own, theirs = saved;
  std::sort(ours.begin(), ours.end());
  std::sort(theirs.begin(), theirs.end());
  const std::string what = ours == theirs ? "was trained with the same classes in another order"
                                          : "was trained with other classes";
  throw Error(ErrorCode::kUsage,
              what + ": label " + std::to_string(label) + " is " + class_text(saved, label) +
                  " there and " + class_text(own, label) + " in this job (" +
                  std::to_string(saved.size()) + " and " + std::to_string(own.size()) + " classes)",
              where, next);
}

std::string class_order_text(const std::vector<std::string>& classes) {
  constexpr size_t kShown = 20;
  if (classes.empty()) return "";
  std::vector<std::string> shown;
  for (size_t label = 0; label < std::min(classes.size(), kShown); ++label) {
    shown.push_back(std::to_string(label) + " " + shown_name(classes[label]));
  }
  if (classes.size() > kShown) shown.emplace_back("...");
  return std::to_string(classes.size()) + " classes: " + join(shown, ", ");
}

}  // namespace fleet
