#include "data/squad_file.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/regular_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "text/utf8.h"

namespace fleet::data {
namespace {

constexpr int64_t kMost = int64_t{4} << 30;

constexpr char kForm[] = "give a file of SQuAD's form: data, paragraphs, context, qas";
constexpr char kLine[] = R"(write {"id": ..., "question": ..., "context": ...})";

[[noreturn]] void refuse(const std::string& what, const std::string& where,
                         const std::string& next = kForm) {
  throw Error(ErrorCode::kUsage, what, where, next);
}

const Json& member(const Json& object, const std::string& key, const std::string& where,
                   const std::string& next = kForm) {
  const Json* found = object.is_object() ? object.find(key) : nullptr;
  if (!found) refuse("there is no '" + key + "'", where, next);
  return *found;
}

const Json& list(const Json& object, const std::string& key, const std::string& where) {
  const Json& found = member(object, key, where);
  if (!found.is_array()) refuse("'" + key + "' is not a list", where);
  return found;
}

std::string text(const Json& object, const std::string& key, const std::string& where,
                 const std::string& next = kForm) {
  const Json& found = member(object, key, where, next);
  if (!found.is_string()) refuse("'" + key + "' is not a text", where, next);
  return found.get<std::string>();
}

// The byte at which this code point begins; npos behind the end.
size_t byte_of(const std::string& context, int64_t code_point) {
  size_t at = 0;
  for (int64_t i = 0; i < code_point; ++i) {
    if (at >= context.size()) return std::string::npos;
    text::code_point_at(context, at, &at);
  }
  return at;
}

SquadAnswer read_answer(const Json& json, const std::string& context, const std::string& where) {
  SquadAnswer answer{.text = text(json, "text", where)};
  const Json& start = member(json, "answer_start", where);
  if (!start.is_number_integer()) refuse("'answer_start' is not a whole number", where);
  answer.begin = byte_of(context, start.get<int64_t>());
  const bool fits = answer.begin != std::string::npos &&
                    context.compare(answer.begin, answer.text.size(), answer.text) == 0;
  if (!fits || start.get<int64_t>() < 0) {
    refuse("the answer '" + shown_name(answer.text, 100) + "' is not at answer_start " +
               std::to_string(start.get<int64_t>()) + " of the context",
           where, "correct answer_start: it counts characters from 0");
  }
  return answer;
}

void read_paragraph(const Json& paragraph, const std::string& where, bool answered,
                    SquadFile* all) {
  const std::string context = text::valid_utf8(text(paragraph, "context", where));
  for (const Json& json : list(paragraph, "qas", where).elements()) {
    SquadQuestion question{.id = text(json, "id", where), .context = all->contexts.size()};
    const std::string place = where + ", question " + shown_name(question.id, 60);
    question.question = text(json, "question", place);
    const Json* impossible = json.find("is_impossible");
    if (impossible) all->may_have_none = true;
    const bool none = impossible && impossible->is_boolean() && impossible->get<bool>();
    if (answered && !none) {
      for (const Json& answer : list(json, "answers", place).elements()) {
        question.answers.push_back(read_answer(answer, context, place));
      }
    }
    all->questions.push_back(std::move(question));
  }
  all->contexts.push_back(context);
}

void read_whole_file(const std::string& path, bool answered, SquadFile* all) {
  const std::string where = shown_path(path);
  try {
    const Json file = Json::parse(read_regular_file(path, kMost));
    for (const Json& article : list(file, "data", where).elements()) {
      for (const Json& paragraph : list(article, "paragraphs", where).elements()) {
        read_paragraph(paragraph, where, answered, all);
      }
    }
  } catch (const JsonError& error) {
    // The parser's message begins with "[number of the error] ".
    const std::string message = error.what();
    refuse("the file is not JSON: " + message.substr(message.find(' ') + 1), where);
  }
}

}  // namespace

void read_squad_file(const std::string& path, SquadFile* all) { read_whole_file(path, true, all); }

void read_unanswered(const std::string& path, SquadFile* all) {
  if (!path.ends_with(".jsonl") && !path.ends_with(".ndjson")) {
    return read_whole_file(path, false, all);
  }
  int64_t number = 0;
  const std::string content = read_regular_file(path, kMost);
  for (std::string_view rest = content; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trim(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string where = shown_path(path) + ":" + std::to_string(++number);
    if (line.empty()) continue;
    const std::optional<Json> json = Json::try_parse(line);
    if (!json || !json->is_object()) refuse("the line is not a JSON object", where, kLine);
    SquadQuestion question{.question = text(*json, "question", where, kLine),
                           .context = all->contexts.size()};
    question.id = json->contains("id") ? text(*json, "id", where, kLine) : where;
    all->contexts.push_back(text::valid_utf8(text(*json, "context", where, kLine)));
    all->questions.push_back(std::move(question));
  }
}

}  // namespace fleet::data
