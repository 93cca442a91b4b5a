// A configuration file, and values from a command line, against a schema with each type of value.
#include "base/config.h"
#include "base/text.h"
#include "tests/fuzz/fuzz.h"

using fleet::ConfigTree;
using fleet::Schema;

static Schema every_type() {
  Schema schema;
  schema.boolean("flag", false, "a flag")
      .integer("size", 1, 0, 1e6, "an integer")
      .number("rate", 0.5, -1, 1, "a number")
      .text("name", "", "a text")
      .choice("kind", "one", {"one", "two"}, "a choice")
      .integers("a.sizes", {}, "integers")
      .numbers("a.rates", {}, "numbers")
      .texts("a.b.names", {}, "texts");
  return schema;
}

// JSON, and behind a zero byte lines of "path=value".
FLEET_FUZZ(config) {
  static const Schema schema = every_type();
  const size_t end = bytes.find('\0');
  ConfigTree tree;
  fleet::fuzz::attempt([&] { tree = ConfigTree::from_json(bytes.substr(0, end), "fuzz.json"); });
  if (end != bytes.npos) {
    for (const std::string& line : fleet::split(bytes.substr(end + 1), '\n')) {
      const size_t equals = line.find('=');
      if (equals == line.npos) continue;
      tree.set(line.substr(0, equals), line.substr(equals + 1), "--set");
    }
  }
  const fleet::Settings settings = tree.validate(schema);
  settings.print();
  fleet::fuzz::require(settings.integer("size") >= 0 && settings.integer("size") <= 1'000'000,
                       "a checked integer is in its range");
  fleet::fuzz::require(settings.number("rate") >= -1 && settings.number("rate") <= 1,
                       "a checked number is in its range");
}
