#include "strategy/strategy_file.h"

#include <google/protobuf/text_format.h>

#include <limits>

#include "base/error.h"
#include "base/home_folder.h"
#include "base/text.h"
#include "base/text_file.h"
#include "strategy/names.h"

namespace fleet {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Messages that are not keys of a job file.
bool is_left_out(const FieldDescriptor& field) {
  return field.message_type() && field.options().GetExtension(paddle::fleet::later);
}

// --- the schema ------------------------------------------------------------------------------

void add_list(const FieldDescriptor& field, const std::string& path, Schema* schema) {
  const bool own = field.options().GetExtension(paddle::fleet::own);
  const std::string help = own ? "fleetrun's own list" : "Paddle's list of this name";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      schema->integers(path, {}, help);
      return;
    case FieldDescriptor::CPPTYPE_FLOAT:
      schema->numbers(path, {}, help);
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      schema->texts(path, {}, help);
      return;
    default:
      FLEET_CHECK(false, "strategy.proto: no schema for the list " + field.full_name());
  }
}

template <typename Extension>
double bound(const google::protobuf::FieldOptions& options, const Extension& which,
             double otherwise) {
  return options.HasExtension(which) ? options.GetExtension(which) : otherwise;
}

void add_scalar(const FieldDescriptor& field, const std::string& path, Schema* schema) {
  const google::protobuf::FieldOptions& options = field.options();
  const bool later = options.GetExtension(paddle::fleet::later);
  const bool own = options.GetExtension(paddle::fleet::own);
  const std::string also = join(other_names(field), ", ");
  const std::string help = (own ? "fleetrun's own field" : "Paddle's field of this name") +
                           (also.empty() ? "" : ", also " + also) +
                           (later ? ", of later releases: at its default only" : "");
  constexpr double kLeast = std::numeric_limits<int32_t>::min();
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      schema->boolean(path, field.default_value_bool(), help);
      return;
    case FieldDescriptor::CPPTYPE_INT32:
      schema->integer(path, field.default_value_int32(),
                      bound(options, paddle::fleet::least, kLeast),
                      bound(options, paddle::fleet::most, kMost), help);
      return;
    case FieldDescriptor::CPPTYPE_FLOAT:
      schema->number(path, field.default_value_float(),
                     bound(options, paddle::fleet::least, -kInfinity),
                     bound(options, paddle::fleet::most, kInfinity), help);
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      schema->text(path, field.default_value_string(), help);
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      schema->choice(path, field.default_value_enum()->name(), enum_names(field), help);
      return;
    default:
      FLEET_CHECK(false, "strategy.proto: no schema for " + field.full_name());
  }
}

void add_fields(const Descriptor& message, const std::string& prefix, Schema* schema) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string path = prefix + field.name();
    if (is_left_out(field)) continue;
    if (field.is_repeated()) {
      add_list(field, path, schema);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      add_fields(*field.message_type(), path + ".", schema);
    } else {
      add_scalar(field, path, schema);
    }
  }
}

// --- settings into the message -----------------------------------------------------------------

void set_list(const Settings& settings, const std::string& path, const FieldDescriptor& field,
              Message* message) {
  const Reflection& reflection = *message->GetReflection();
  reflection.ClearField(message, &field);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      for (int64_t value : settings.integers(path)) {
        reflection.AddInt32(message, &field, static_cast<int32_t>(value));
      }
      return;
    case FieldDescriptor::CPPTYPE_FLOAT:
      for (double value : settings.numbers(path)) {
        reflection.AddFloat(message, &field, static_cast<float>(value));
      }
      return;
    default:
      for (const std::string& value : settings.texts(path)) {
        reflection.AddString(message, &field, value);
      }
  }
}

void set_scalar(const Settings& settings, const std::string& path, const FieldDescriptor& field,
                Message* message) {
  const Reflection& reflection = *message->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection.SetBool(message, &field, settings.boolean(path));
      return;
    case FieldDescriptor::CPPTYPE_INT32:
      reflection.SetInt32(message, &field, static_cast<int32_t>(settings.integer(path)));
      return;
    case FieldDescriptor::CPPTYPE_FLOAT:
      reflection.SetFloat(message, &field, static_cast<float>(settings.number(path)));
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.SetEnum(message, &field, field.enum_type()->FindValueByName(settings.text(path)));
      return;
    default:
      reflection.SetString(message, &field, settings.text(path));
  }
}

// A nested message is created only if the user set one of its fields.
bool any_given(const Settings& settings, const std::string& prefix, const Descriptor& message) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (!is_left_out(field) && settings.given(prefix + field.name())) return true;
  }
  return false;
}

void set_fields(const Settings& settings, const std::string& prefix, Message* message) {
  const Descriptor& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = prefix + field.name();
    if (is_left_out(field)) continue;
    if (!field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!any_given(settings, path + ".", *field.message_type())) continue;
      set_fields(settings, path + ".", message->GetReflection()->MutableMessage(message, &field));
    } else if (settings.given(path)) {
      field.is_repeated() ? set_list(settings, path, field, message)
                          : set_scalar(settings, path, field, message);
    }
  }
}

// --- the message into the tree -----------------------------------------------------------------

std::string field_text(const Message& message, const FieldDescriptor& field, int index) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const Reflection& reflection = *message.GetReflection();
    return index < 0 ? reflection.GetString(message, &field)
                     : reflection.GetRepeatedString(message, &field, index);
  }
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(message, &field, index, &text);
  return text;
}

void take_fields(const Message& message, const std::string& prefix, const std::string& origin,
                 ConfigTree* tree) {
  std::vector<const FieldDescriptor*> fields;  // the fields that the message has
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = prefix + field->name();
    if (!field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      take_fields(message.GetReflection()->GetMessage(message, field), path + ".", origin, tree);
    } else if (tree->peek(path)) {
      continue;
    } else if (field->is_repeated()) {
      std::vector<std::string> texts;
      for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
        texts.push_back(field_text(message, *field, i));
      }
      tree->set(path, join(texts, ","), origin);
    } else {
      tree->set(path, field_text(message, *field, -1), origin);
    }
  }
}

}  // namespace

void merge_strategy_file(const std::string& path, StrategyProto* proto) {
  constexpr int64_t kLargest = 4 << 20;  // bytes
  read_strategy_text(read_text_file(path, kLargest), path, proto);
}

Schema strategy_schema() {
  Schema schema;
  schema.text("file", "", "a DistributedStrategy in protobuf's text form; other keys override it")
      .as_path();
  add_fields(*StrategyProto::descriptor(), "", &schema);
  return schema;
}

static void name_value(const std::string& path, const std::string& field, ConfigTree* tree) {
  const FieldDescriptor* found = find_field(field);
  const int value = found ? named_value(*found, tree->peek(path).value_or("")) : -1;
  if (value >= 0) tree->set(path, std::to_string(value), tree->origin(path));
}

void canonicalize_strategy_fields(const std::string& prefix, ConfigTree* tree) {
  if (tree->peek(prefix)) tree->rename(prefix, prefix + ".file");
  for (const std::string& path : tree->paths(prefix + ".")) {
    const std::string typed = path.substr(prefix.size() + 1);
    const std::string field = resolve_field_name(typed);
    if (field.empty()) continue;
    name_value(path, field, tree);
    if (field == typed) continue;
    const std::string place = prefix + "." + field;
    const auto other = tree->peek(place);
    if (other && other != tree->peek(path)) {
      throw Error(ErrorCode::kUsage,
                  "'" + path + "' and '" + place + "' are one field, with two values",
                  tree->origin(path), "remove one of them");
    }
    tree->rename(path, place);
  }
}

void add_strategy_file_fields(const std::string& prefix, ConfigTree* tree) {
  const std::string given = tree->peek(prefix + ".file").value_or("");
  if (given.empty()) return;
  const std::string path = expand_home(given, tree->origin(prefix + ".file"));
  StrategyProto proto;
  merge_strategy_file(path, &proto);
  take_fields(proto, prefix + ".", prefix + ".file " + path, tree);
}

void add_strategy_fields(const StrategyProto& proto, const std::string& prefix,
                         const std::string& origin, ConfigTree* tree) {
  take_fields(proto, prefix + ".", origin, tree);
}

StrategyProto strategy_from(const Settings& section) {
  StrategyProto proto;
  if (!section.text("file").empty()) merge_strategy_file(section.text("file"), &proto);
  set_fields(section, "", &proto);
  return proto;
}

}  // namespace fleet
