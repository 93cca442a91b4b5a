#include "text/normalizer.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "text/code_point_set.h"
#include "text/part_options.h"
#include "text/replacement.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace fleet::text {
namespace {

std::string without(std::string_view text, const CodePointSet& set) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t next;
    if (!set.contains(code_point_at(text, at, &next))) result.append(text, at, next - at);
    at = next;
  }
  return result;
}

void keep_others(AlignedText& text, const CodePointSet& set) {
  text.spell([&](char32_t c, std::string& out) {
    if (!set.contains(c)) append_utf8(c, out);
  });
}

// A view of the text without white space at its ends.
std::string_view without_white_space(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    size_t next;
    if (!white_space().contains(code_point_at(text, 0, &next))) break;
    text.remove_prefix(next);
  }
  while (right && !text.empty()) {
    size_t next;
    const size_t last = previous_character(text, text.size());
    if (!white_space().contains(code_point_at(text, last, &next))) break;
    text = text.substr(0, last);
  }
  return text;
}

// BertNormalizer's clean_text: controls vanish, and every kind of white space becomes a space.
std::string clean_text(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t next;
    const char32_t c = code_point_at(text, at, &next);
    if (c > 0x20 && c < 0x7F) {
      result.push_back(static_cast<char>(c));
    } else if (other_set(OtherSet::kBertControls).contains(c)) {
    } else if (white_space().contains(c)) {
      result.push_back(' ');
    } else {
      result.append(text, at, next - at);
    }
    at = next;
  }
  return result;
}

bool is_chinese_character(char32_t c) {
  static const CodePointSet chinese{{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                    {0x20000, 0x2A6DF}, {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF},
                                    {0x2F800, 0x2FA1F}};
  return c >= 0x3400 && chinese.contains(c);
}

std::string space_around_chinese(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t next;
    const bool is_chinese = is_chinese_character(code_point_at(text, at, &next));
    if (is_chinese) result.push_back(' ');
    result.append(text, at, next - at);
    if (is_chinese) result.push_back(' ');
    at = next;
  }
  return result;
}

struct BertOptions {
  bool clean, chinese, accents, lower;
};

std::string bert_text(std::string_view text, const BertOptions& options) {
  std::string result(text);
  if (options.clean) result = clean_text(result);
  if (options.chinese) result = space_around_chinese(result);
  if (options.accents) {
    result = without(normal_form(NormalForm::kNfd, result), other_set(OtherSet::kBertMarks));
  }
  if (options.lower) result = unicode_lower_case(result);
  return result;
}

void bert_text(AlignedText& text, const BertOptions& options) {
  text.spell([&](char32_t c, std::string& out) {
    if (options.clean && other_set(OtherSet::kBertControls).contains(c)) return;
    const bool is_chinese = options.chinese && is_chinese_character(c);
    if (is_chinese) out.push_back(' ');
    append_utf8(options.clean && white_space().contains(c) ? U' ' : c, out);
    if (is_chinese) out.push_back(' ');
  });
  if (options.accents) {
    text.apply(normal_form_changes(NormalForm::kNfd, text.text()));
    keep_others(text, other_set(OtherSet::kBertMarks));
  }
  if (options.lower) text.spell(append_lower_case);
}

}  // namespace

Normalizer::Normalizer(const Json& json, const std::string& where) {
  if (!json.is_null()) add(json, where, 0);
}

void Normalizer::add(const Json& json, const std::string& where, int depth) {
  const PartOptions options(json, "normalizer", where);
  const std::string& type = options.type();
  const auto form = [&](NormalForm normal) {
    steps_.push_back(
        {[normal](std::string_view text) { return normal_form(normal, text); },
         [normal](AlignedText& text) { text.apply(normal_form_changes(normal, text.text())); }});
  };
  if (type == "Sequence") {
    if (depth > 20) options.refuse("more than 20 nested sequences");
    for (const Json& part : options.list("normalizers")) add(part, where, depth + 1);
  } else if (type == "NFC") {
    form(NormalForm::kNfc);
  } else if (type == "NFD") {
    form(NormalForm::kNfd);
  } else if (type == "NFKC") {
    form(NormalForm::kNfkc);
  } else if (type == "NFKD") {
    form(NormalForm::kNfkd);
  } else if (type == "Lowercase") {
    steps_.push_back(
        {unicode_lower_case, [](AlignedText& text) { text.spell(append_lower_case); }});
  } else if (type == "StripAccents") {
    steps_.push_back(
        {[](std::string_view text) { return without(text, other_set(OtherSet::kAccents)); },
         [](AlignedText& text) { keep_others(text, other_set(OtherSet::kAccents)); }});
  } else if (type == "Strip") {
    const bool left = options.flag("strip_left", true), right = options.flag("strip_right", true);
    steps_.push_back({[left, right](std::string_view text) {
                        return std::string(without_white_space(text, left, right));
                      },
                      [left, right](AlignedText& text) {
                        const AlignedView view = text.view();
                        const auto kept = without_white_space(view.text, left, right);
                        const auto begin = static_cast<size_t>(kept.data() - view.text.data());
                        text = AlignedText(view.part(begin, kept.size()));
                      }});
  } else if (type == "Prepend") {
    const std::string prefix = options.text("prepend");
    steps_.push_back({[prefix](std::string_view text) {
                        return text.empty() ? std::string() : prefix + std::string(text);
                      },
                      [prefix](AlignedText& text) {
                        if (!text.text().empty()) text.prepend(prefix);
                      }});
  } else if (type == "Replace") {
    const Replacement replacement(options);
    steps_.push_back({[replacement](std::string_view text) { return replacement.apply(text); },
                      [replacement](AlignedText& text) { replacement.apply(text); }});
  } else if (type == "BertNormalizer") {
    BertOptions bert;
    bert.clean = options.flag("clean_text", true);
    bert.chinese = options.flag("handle_chinese_chars", true);
    bert.lower = options.flag("lowercase", true);
    bert.accents = options.flag("strip_accents", bert.lower);
    steps_.push_back({[bert](std::string_view text) { return bert_text(text, bert); },
                      [bert](AlignedText& text) { bert_text(text, bert); }});
  } else {
    options.refuse_type();
  }
}

std::string Normalizer::apply(std::string_view text) const {
  std::string result(text);
  for (const Step& step : steps_) result = step.plain(result);
  return result;
}

void Normalizer::apply(AlignedText& text) const {
  for (const Step& step : steps_) step.aligned(text);
}

}  // namespace fleet::text
