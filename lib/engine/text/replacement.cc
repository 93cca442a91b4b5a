#include "text/replacement.h"

#include <utility>

namespace fleet::text {
namespace {

const Json& only_member(const PartOptions& options, bool* is_regex) {
  const Json* pattern = options.find("pattern");
  if (pattern && pattern->is_object()) {
    for (const char* key : {"String", "Regex"}) {
      const Json* text = pattern->find(key);
      if (text && text->is_string() && pattern->size() == 1) {
        if (text->get<std::string>().empty()) options.refuse("an empty pattern");
        *is_regex = key[0] == 'R';
        return *text;
      }
    }
  }
  options.wrong("pattern", "{\"String\": \"..\"} or {\"Regex\": \"..\"}");
}

}  // namespace

SplitPattern pattern_option(const PartOptions& options) {
  bool is_regex;
  const std::string text = only_member(options, &is_regex).get<std::string>();
  return is_regex ? SplitPattern(text, options.where())
                  : SplitPattern::literal(text, options.where());
}

Replacement::Replacement(const PartOptions& options) : content_(options.text("content")) {
  bool is_regex;
  const std::string text = only_member(options, &is_regex).get<std::string>();
  if (is_regex) {
    pattern_ = std::make_shared<const SplitPattern>(text, options.where());
  } else {
    literal_ = text;
  }
}

bool Replacement::find(std::string_view text, size_t at, size_t* begin, size_t* end) const {
  if (at >= text.size()) return false;
  if (pattern_) {
    *end = pattern_->find(text, at, begin);
    return *end != SplitPattern::kNone;
  }
  *begin = text.find(literal_, at);
  *end = *begin + literal_.size();
  return *begin != std::string_view::npos;
}

std::string Replacement::apply(std::string_view text) const {
  std::string result;
  result.reserve(text.size());
  size_t at = 0, begin, end;
  while (find(text, at, &begin, &end)) {
    result.append(text, at, begin - at);
    result += content_;
    at = end;
  }
  result.append(text, at, text.size() - at);
  return result;
}

void Replacement::apply(AlignedText& text) const {
  const AlignedView view = text.view();
  AlignedText result;
  size_t at = 0, begin, end;
  while (find(view.text, at, &begin, &end)) {
    result.append_replaced(view.part(at, begin - at), content_, view.from[end - 1]);
    at = end;
  }
  result.append_replaced(view.part(at, view.text.size() - at), "", {});
  text = std::move(result);
}

}  // namespace fleet::text
