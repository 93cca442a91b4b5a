#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <map>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "strategy/fields.h"
#include "strategy/names.h"
#include "strategy/strategy_file.h"

namespace fleet {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;
using google::protobuf::io::ErrorCollector;
using google::protobuf::io::Tokenizer;

constexpr const char* kForm = "correct the file; it is protobuf's text form of DistributedStrategy";

struct TextPosition {
  int line = 0, column = 0;  // counted from 0
};

// Keeps the first error.
class CollectedErrors : public ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (what.empty()) what = message, place = {line, column};
  }
  std::string what;
  TextPosition place;
};

class Reader {
 public:
  Reader(const std::string& text, std::string origin, Message* proto)
      : origin_(std::move(origin)),
        proto_(proto),
        stream_(text.data(), static_cast<int>(text.size())),
        tokens_(&stream_, &collected_errors_) {
    tokens_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
    tokens_.set_require_space_after_number(false);
    tokens_.set_allow_f_after_float(true);
    next();
  }

  void run() {
    while (tokens_.current().type != Tokenizer::TYPE_END) read_field("");
    if (!passed_over_.empty()) {
      spdlog::debug("strategy: {}: ignored, at their defaults: {}", origin_,
                    join(passed_over_, ", "));
    }
  }

 private:
  [[noreturn]] void fail(const TextPosition& place, const std::string& what,
                         const std::string& hint, ErrorCode code = ErrorCode::kUsage) const {
    throw Error(
        code, what,
        origin_ + ":" + std::to_string(place.line + 1) + ":" + std::to_string(place.column + 1),
        hint);
  }

  TextPosition here() { return {tokens_.current().line, tokens_.current().column}; }
  bool at(const char* symbol) { return tokens_.current().text == symbol; }
  void next() {
    tokens_.Next();
    if (!collected_errors_.what.empty())
      fail(collected_errors_.place, collected_errors_.what, kForm);
  }
  bool take(const char* symbol) {
    if (tokens_.current().type != Tokenizer::TYPE_SYMBOL || !at(symbol)) return false;
    next();
    return true;
  }
  [[noreturn]] void fail_expecting(const std::string& what) {
    const std::string& got = tokens_.current().text;
    fail(here(), "expected " + what + ", got " + (got.empty() ? "the end" : "'" + got + "'"),
         kForm);
  }

  // Reads one field of the message at `outer`, a path as typed.
  void read_field(const std::string& outer) {
    const TextPosition place = here();
    if (tokens_.current().type != Tokenizer::TYPE_IDENTIFIER) fail_expecting("a field's name");
    const std::string typed = (outer.empty() ? "" : outer + ".") + tokens_.current().text;
    next();
    const std::string path = resolve_field_name(typed);
    if (path.empty()) fail(place, "unknown field '" + typed + "'", field_suggestion(typed));
    const bool colon = take(":");
    if (find_field(path)->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      read_message(typed, path, place);
    } else if (!colon) {
      fail_expecting("':' after '" + typed + "'");
    } else {
      read_values(typed, path, place);
    }
    if (!take(";")) take(",");
  }

  void read_message(const std::string& typed, const std::string& path, const TextPosition& place) {
    const bool angle = at("<");
    if (!take("{") && !take("<")) fail_expecting("'{' after '" + typed + "'");
    if (is_opaque_message(path) && !at("}") && !at(">")) refuse_later(path, "", place);
    if ((at("}") || at(">")) && !is_unsupported_field(path)) message_of(path, true);
    while (!at("}") && !at(">")) read_field(typed);
    if (!take(angle ? ">" : "}")) fail_expecting(angle ? "'>'" : "'}'");
  }

  void read_values(const std::string& typed, const std::string& path, const TextPosition& place) {
    if (!take("[")) {
      const TextPosition at_value = here();
      set(typed, path, read_value(), place, at_value);
      return;
    }
    while (!take("]")) {
      const TextPosition at_value = here();
      set(typed, path, read_value(), place, at_value);
      if (!take(",") && !at("]")) fail_expecting("',' or ']'");
    }
  }

  std::string read_value() {
    std::string value;
    if (take("-")) value = "-";
    const auto type = tokens_.current().type;
    if (type == Tokenizer::TYPE_STRING) {
      for (; tokens_.current().type == Tokenizer::TYPE_STRING; next()) {
        value += tokens_.current().text + " ";  // protobuf joins adjacent strings
      }
      return value;
    }
    if (type == Tokenizer::TYPE_END || type == Tokenizer::TYPE_SYMBOL) fail_expecting("a value");
    value += tokens_.current().text;
    next();
    while (at(".")) {  // fluid.BuildStrategy.ReduceStrategy.Reduce
      next();
      value += "." + tokens_.current().text;
      next();
    }
    return value;
  }

  // The message that holds the field at `path`; with `itself`, the message at `path`.
  Message* message_of(const std::string& path, bool itself = false) {
    Message* message = proto_;
    const std::vector<std::string> names = split(path, '.');
    for (size_t i = 0; i + (itself ? 0 : 1) < names.size(); ++i) {
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(names[i]);
      message = message->GetReflection()->MutableMessage(message, field);
    }
    return message;
  }

  void set(const std::string& typed, const std::string& path, const std::string& value,
           const TextPosition& place, const TextPosition& at_value) {
    const FieldDescriptor& field = *find_field(path);
    check_one_name(typed, path, value, place, field);
    std::string text = value;
    if (const int number = named_value(field, value); number >= 0) text = std::to_string(number);
    std::unique_ptr<Message> apart;  // a later field has no place in the strategy
    if (is_unsupported_field(path)) {
      apart.reset(google::protobuf::MessageFactory::generated_factory()
                      ->GetPrototype(field.containing_type())
                      ->New());
    }
    Message* message = apart ? apart.get() : message_of(path);
    CollectedErrors collected_errors;
    TextFormat::Parser parser;
    parser.RecordErrorsTo(&collected_errors);
    const bool read = parser.ParseFieldValueFromString(text, &field, message);
    if (!read || !in_range(field, *message)) {
      fail(at_value, "'" + path + "' cannot be " + std::string(trim(value)),
           "it must be " + value_requirement(field));
    }
    if (!apart) return;
    if (!is_default(*apart, field)) refuse_later(path, value, place);
    passed_over_.push_back(path);
  }

  void check_one_name(const std::string& typed, const std::string& path, const std::string& value,
                      const TextPosition& place, const FieldDescriptor& field) {
    if (field.is_repeated()) return;
    const auto& [first, one] = *given_.try_emplace(path, typed, value).first;
    if (one.first != typed && one.second != value) {
      fail(place, "'" + typed + "' and '" + one.first + "' are one field, with two values",
           "remove one of them");
    }
  }

  [[noreturn]] void refuse_later(const std::string& path, const std::string& value,
                                 const TextPosition& place) const {
    fail(place,
         "'" + path + "'" + (value.empty() ? "" : " is " + std::string(trim(value))) +
             ": not supported, a field of " + first_release(path) + " that fleetrun does not have",
         "remove it, or set it to its default", ErrorCode::kUnsupported);
  }

  const std::string origin_;
  Message* proto_;
  CollectedErrors collected_errors_;
  google::protobuf::io::ArrayInputStream stream_;
  Tokenizer tokens_;
  std::map<std::string, std::pair<std::string, std::string>>
      given_;  // by path: name as typed, value
  std::vector<std::string> passed_over_;
};

}  // namespace

void read_strategy_text(const std::string& text, const std::string& origin,
                        paddle::fleet::DistributedStrategy* proto) {
  Reader(text, origin, proto).run();
}

}  // namespace fleet
