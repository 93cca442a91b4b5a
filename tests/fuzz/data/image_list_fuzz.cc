// A list of images with labels. Its files are looked for, and not opened.
#include "data/source.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

// Paths are relative to "/": "proc/self/exe 0" is a file that there is.
FLEET_FUZZ(image_list) {
  using namespace fleet::data;
  const fleet::fuzz::MemoryFile list(bytes);
  const SourceType& type = sources().get("image_list");
  fleet::ConfigTree tree;
  tree.set("list", list.path(), "fuzz");
  SourceContext context;
  context.root = "/";
  context.classes = 10;
  const auto source = type.open(tree.validate(type.schema(true)), context);
  for (int64_t i = 0; i < source->size(); ++i) {
    const int64_t label = source->label(i);
    fleet::fuzz::require(label == context.ignored_label || (label >= 0 && label < 10),
                         "a label is of a class");
    source->name(i);
  }
}
